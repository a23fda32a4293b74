//! What a command exits with.

use holdfast_common::code::{Code, ExitCode};
use tonic_types::StatusExt;

/// For `main` to return.
#[must_use]
pub fn process(code: ExitCode) -> std::process::ExitCode {
    std::process::ExitCode::from(code as u8)
}

/// Of several targets: the highest.
#[must_use]
pub fn highest(codes: impl IntoIterator<Item = ExitCode>) -> ExitCode {
    codes.into_iter().max().unwrap_or(ExitCode::Done)
}

/// The stable code that a refusal carries, if it is one of ours.
#[must_use]
pub fn code_of(status: &tonic::Status) -> Option<Code> {
    status.get_details_error_info().and_then(|info| Code::parse(&info.reason))
}

/// Of a call that failed: by its stable code, else by its gRPC status. Without either an answer, or with one that only
/// says that something went wrong on the way, the request may have been taken.
#[must_use]
pub fn of_status(status: &tonic::Status) -> ExitCode {
    code_of(status).map_or_else(|| by_grpc(status.code()), Code::exit)
}

fn by_grpc(code: tonic::Code) -> ExitCode {
    match code {
        tonic::Code::Ok => ExitCode::Done,
        tonic::Code::Unavailable
        | tonic::Code::DeadlineExceeded
        | tonic::Code::Cancelled
        | tonic::Code::Aborted
        | tonic::Code::Unknown => ExitCode::NoAnswer,
        tonic::Code::InvalidArgument | tonic::Code::OutOfRange => ExitCode::Usage,
        tonic::Code::NotFound => ExitCode::NotFound,
        tonic::Code::Unauthenticated | tonic::Code::PermissionDenied => ExitCode::NotAllowed,
        tonic::Code::FailedPrecondition | tonic::Code::AlreadyExists | tonic::Code::Unimplemented => {
            ExitCode::Precondition
        }
        tonic::Code::ResourceExhausted | tonic::Code::Internal | tonic::Code::DataLoss => ExitCode::Unexpected,
    }
}

/// Whether writing failed only because the reader has had enough, as `head` does: no reason to complain.
#[must_use]
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic_types::ErrorDetails;

    use super::*;

    #[test]
    fn numbers_are_those_of_the_reference() {
        for (code, number) in [
            (ExitCode::Done, 0),
            (ExitCode::Unexpected, 1),
            (ExitCode::Usage, 2),
            (ExitCode::NotFound, 3),
            (ExitCode::NotAllowed, 4),
            (ExitCode::NoAnswer, 5),
            (ExitCode::Failed, 10),
            (ExitCode::Cancelled, 11),
            (ExitCode::NeedsDecision, 12),
            (ExitCode::CancelTooLate, 13),
            (ExitCode::ClientTimeout, 14),
            (ExitCode::TargetHeld, 15),
            (ExitCode::Precondition, 16),
            (ExitCode::WaitingForApproval, 17),
            (ExitCode::Interrupted, 130),
        ] {
            assert_eq!(code as u8, number);
            assert_eq!(format!("{:?}", process(code)), format!("{:?}", std::process::ExitCode::from(number)));
        }
    }

    #[test]
    fn several_targets_exit_with_the_highest() {
        assert_eq!(highest([]), ExitCode::Done);
        assert_eq!(highest([ExitCode::Done, ExitCode::NeedsDecision, ExitCode::Failed]), ExitCode::NeedsDecision);
    }

    #[test]
    fn a_stable_code_beats_the_grpc_status() {
        let details = ErrorDetails::with_error_info("HF-2031", "holdfast", HashMap::new());
        let status = tonic::Status::with_error_details(tonic::Code::FailedPrecondition, "held", details);
        assert_eq!(code_of(&status), Some(Code::TargetUncertain));
        assert_eq!(of_status(&status), ExitCode::TargetHeld);
        assert_eq!(of_status(&tonic::Status::unavailable("gone")), ExitCode::NoAnswer);
        assert_eq!(of_status(&tonic::Status::unauthenticated("who")), ExitCode::NotAllowed);
    }

    #[test]
    fn a_closed_pipe_is_found_behind_its_context() {
        let pipe = anyhow::Error::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe)).context("could not print");
        assert!(is_closed_pipe(&pipe));
        assert!(!is_closed_pipe(&anyhow::anyhow!("broken pipe")));
    }
}
