//! What the coordinator, or the way to it, refused: from a gRPC status to the shape of errors.

use holdfast_common::code::{Code, ExitCode};
use holdfast_common::id::RequestId;
use holdfast_common::problem::Problem;
use holdfast_net::channel;
use tonic::Status;

use crate::failure::Failure;
use crate::output::exit;

/// What a call would have done, for when nobody answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Only reads.
    Reads,
    /// Changes something, and is never repeated without looking first.
    Changes {
        /// The command that looks.
        look: String,
    },
    /// Submits under a request id, which makes repeating safe.
    Submits {
        /// The id.
        request: RequestId,
    },
}

/// Of a status.
#[must_use]
pub fn of(status: &Status, call: &Call) -> Failure {
    let problem = holdfast_proto::problem::from_status(status);
    let exit = problem.as_ref().map_or_else(|| exit::of_status(status), |problem| problem.code.exit());
    let problem = problem.unwrap_or_else(|| bare(status));
    if exit == ExitCode::NoAnswer {
        Failure::exiting(unanswered(problem, call), exit)
    } else {
        Failure::exiting(problem, exit)
    }
}

/// Of a coordinator that could not be reached at all.
#[must_use]
pub fn unreachable(error: &channel::Error, address: &str) -> Failure {
    match error {
        channel::Error::Address { .. } | channel::Error::Count { .. } | channel::Error::Name(_) => {
            Problem::new(Code::Config, error.to_string()).so("nothing was sent").into()
        }
        channel::Error::Dial(dial) => {
            let serves =
                format!("check that a coordinator serves at {address}, and that the CA is the one that signed it");
            let problem = Problem::new(Code::NoAnswer, dial.to_string())
                .known("there was no connection, so nothing was sent")
                .so("whatever runs goes on: nothing stops because a command can't reach the coordinator")
                .with("address", address);
            dial.other_names(address).iter().fold(problem, Problem::next).next(serves).into()
        }
    }
}

fn unanswered(problem: Problem, call: &Call) -> Problem {
    match call {
        Call::Reads => problem.so("nothing was changed: this command only reads").next("try again"),
        Call::Changes { look } => problem
            .not_known("whether the request was taken")
            .so("it is not sent again by itself")
            .next(format!("look before you repeat it: {look}")),
        Call::Submits { request } => problem
            .not_known("whether the request was taken")
            .so("repeated under the same request id it is the same deployment, so nothing happens twice")
            .next(format!("repeat the command with --request-id {request}"))
            .with("request_id", request.to_string()),
    }
}

/// Of a status without a problem of ours: from a proxy on the way, from tonic, or from another version.
fn bare(status: &Status) -> Problem {
    let code = exit::code_of(status).unwrap_or_else(|| by_grpc(status.code()));
    let title = match status.message() {
        "" => code.title().to_owned(),
        message => format!("{}: {message}", code.title()),
    };
    Problem::new(code, title).with("grpc", format!("{:?}", status.code()))
}

fn by_grpc(code: tonic::Code) -> Code {
    match code {
        tonic::Code::Unavailable
        | tonic::Code::DeadlineExceeded
        | tonic::Code::Cancelled
        | tonic::Code::Aborted
        | tonic::Code::Unknown => Code::NoAnswer,
        tonic::Code::InvalidArgument | tonic::Code::OutOfRange => Code::InvalidMessage,
        tonic::Code::Unauthenticated => Code::NotSignedIn,
        tonic::Code::PermissionDenied => Code::NotAllowed,
        tonic::Code::NotFound => Code::DeploymentNotFound,
        tonic::Code::Unimplemented | tonic::Code::FailedPrecondition | tonic::Code::AlreadyExists => {
            Code::ProtocolVersion
        }
        tonic::Code::Ok | tonic::Code::ResourceExhausted | tonic::Code::Internal | tonic::Code::DataLoss => {
            Code::Internal
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic::metadata::MetadataMap;
    use tonic_types::{ErrorDetails, StatusExt};

    use super::*;

    fn one(failure: &Failure) -> (Problem, ExitCode) {
        (failure.problem().expect("a refusal").clone(), failure.exit())
    }

    #[test]
    fn a_whole_problem_is_shown_as_it_was_sent() {
        let sent =
            Problem::new(Code::TargetUncertain, "shop@prod is held").next("holdfast reconcile show shop@prod#12");
        let mut metadata = MetadataMap::new();
        holdfast_proto::problem::put(&sent, &mut metadata);
        let status = Status::with_metadata(tonic::Code::FailedPrecondition, "short", metadata);
        assert_eq!(one(&of(&status, &Call::Reads)), (sent, ExitCode::TargetHeld));
    }

    #[test]
    fn a_stable_code_alone_is_enough_for_the_exit_code() {
        let details = ErrorDetails::with_error_info("HF-3002", "holdfast", HashMap::new());
        let status = Status::with_error_details(tonic::Code::FailedPrecondition, "not open", details);
        let (problem, exit) = one(&of(&status, &Call::Reads));
        assert_eq!((problem.code, exit), (Code::DecisionNotOpen, ExitCode::Precondition));
        assert!(problem.title.contains("not open"), "{problem}");
    }

    #[test]
    fn no_answer_says_what_may_have_happened_and_how_to_repeat() {
        let status = Status::unavailable("connection reset");
        let request: RequestId = "0193a1b2-0000-7000-8000-000000000001".parse().expect("an id");
        let (problem, exit) = one(&of(&status, &Call::Submits { request }));
        assert_eq!(exit, ExitCode::NoAnswer);
        assert!(problem.next[0].ends_with(&format!("--request-id {request}")), "{problem}");
        let (problem, exit) = one(&of(&status, &Call::Changes { look: "holdfast show x".to_owned() }));
        assert_eq!(exit, ExitCode::NoAnswer);
        assert_eq!(problem.not_known, ["whether the request was taken"]);
        let (problem, _) = one(&of(&status, &Call::Reads));
        assert_eq!(problem.not_known, Vec::<String>::new());
    }

    #[test]
    fn text_of_a_status_from_anywhere_is_made_printable() {
        let status = Status::internal("\u{1b}]0;owned\u{7}");
        let (problem, exit) = one(&of(&status, &Call::Reads));
        assert_eq!(exit, ExitCode::Unexpected);
        assert!(!problem.to_string().contains('\u{1b}'));
    }
}
