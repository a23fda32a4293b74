//! Refusals as gRPC statuses.

use std::collections::HashMap;

use holdfast_common::code::Code;
use holdfast_common::file::Errors;
use holdfast_common::problem::Problem;
use holdfast_common::text::bounded;
use holdfast_proto::convert::Invalid;
use holdfast_proto::problem::{self, DOMAIN};
use tonic::Status;
use tonic::metadata::MetadataMap;
use tonic_types::{ErrorDetails, StatusExt};

const MAX_MESSAGE_BYTES: usize = 500;
const MAX_DETAIL_BYTES: usize = 200;
const MAX_DETAILS: usize = 16;

/// The status that carries a problem: its code as `ErrorInfo.reason`, what to do as `Help`, and the whole of it for our
/// own command line.
#[must_use]
pub fn of(problem: &Problem) -> Status {
    let short = |text: &String| bounded(text, MAX_DETAIL_BYTES);
    let facts: HashMap<String, String> =
        problem.metadata.iter().take(MAX_DETAILS).map(|(key, value)| (short(key), short(value))).collect();
    let mut details = ErrorDetails::with_error_info(problem.code.to_string(), DOMAIN, facts);
    for line in problem.next.iter().take(MAX_DETAILS) {
        details.add_help_link(short(line), "");
    }
    details.add_help_link(problem.more(), "");
    let mut metadata = MetadataMap::new();
    problem::put(problem, &mut metadata);
    let message = bounded(&problem.title, MAX_MESSAGE_BYTES);
    Status::with_error_details_and_metadata(grpc_code(problem.code), message, details, metadata)
}

/// A problem of just a code and a title.
#[must_use]
pub fn plain(code: Code, title: impl AsRef<str>) -> Status {
    of(&Problem::new(code, title))
}

/// A request with a field that can't be taken.
#[must_use]
pub fn invalid(why: &Invalid) -> Status {
    of(&invalid_problem(why))
}

/// A request with a field that can't be taken, named.
#[must_use]
pub fn invalid_problem(why: &Invalid) -> Problem {
    let field = match why {
        Invalid::Missing { field }
        | Invalid::Enum { field, .. }
        | Invalid::Name { field, .. }
        | Invalid::Range { field, .. }
        | Invalid::Json { field, .. } => field,
    };
    Problem::new(Code::InvalidMessage, why.to_string()).so("nothing was changed").with("field", field)
}

/// A file with faults. The first one speaks; the others stand below it.
#[must_use]
pub fn bad_file(errors: &Errors, file: &str) -> Status {
    let mut told = errors.iter();
    let first = told.next().expect("errors are never empty");
    let mut problem = told.fold(first.problem(file), |problem, error| problem.known(error.to_string()));
    problem.code = errors.code();
    if errors.untold() > 0 {
        problem = problem.known(format!("and {} more", errors.untold()));
    }
    of(&problem)
}

/// What gRPC calls it. Only `UNAVAILABLE` is worth another try of the same request.
#[must_use]
pub fn grpc_code(code: Code) -> tonic::Code {
    match code {
        Code::FileSyntax
        | Code::UnknownKey
        | Code::InvalidValue
        | Code::InvalidInput
        | Code::MissingKey
        | Code::TooLarge
        | Code::AmbiguousId
        | Code::NotConfirmed
        | Code::ReasonMissing
        | Code::ObservedMissing
        | Code::BadCertificateRequest
        | Code::InvalidMessage => tonic::Code::InvalidArgument,
        Code::TargetNotFound | Code::DeploymentNotFound | Code::AgentNotFound | Code::TokenNotFound => {
            tonic::Code::NotFound
        }
        Code::NotSupported
        | Code::DataDestroyed
        | Code::RequestIdReused
        | Code::RevisionMismatch
        | Code::OrderPassed
        | Code::TargetOnHold
        | Code::NotOnHold
        | Code::NoEligibleAgent
        | Code::TargetUncertain
        | Code::TargetWaitsForDecision
        | Code::TargetBusy
        | Code::RevisionUnknown
        | Code::TargetInUse
        | Code::ResourceTaken
        | Code::FenceExhausted
        | Code::AlreadyEnded
        | Code::TokenExists
        | Code::NothingToReconcile
        | Code::NothingToGoBackTo
        | Code::CannotGoBack
        | Code::PlaceMoved
        | Code::DecisionNotOpen
        | Code::CannotInspect
        | Code::CannotFenceOff
        | Code::ArchiveMissing
        | Code::ArchiveDiffers
        | Code::ArchiveTooLarge
        | Code::EnrolmentClosed
        | Code::AgentNameTaken
        | Code::IdentityCopied
        | Code::NotLocked
        | Code::ProtocolVersion => tonic::Code::FailedPrecondition,
        Code::QueueFull | Code::DiskFull | Code::OutOfDescriptors | Code::RenewedTooOften => {
            tonic::Code::ResourceExhausted
        }
        Code::EvidenceMoved | Code::SessionReplaced => tonic::Code::Aborted,
        Code::NotSignedIn | Code::TokenExpired | Code::NotAnAgent => tonic::Code::Unauthenticated,
        Code::NotAllowed
        | Code::GrantTooWide
        | Code::HostPolicy
        | Code::JoinTokenUnknown
        | Code::JoinTokenExpired
        | Code::JoinTokenUsed
        | Code::JoinGuessing
        | Code::CertificateRevoked
        | Code::CaPinMismatch => tonic::Code::PermissionDenied,
        Code::NoAnswer => tonic::Code::DeadlineExceeded,
        Code::Internal | Code::StoreFailed | Code::StoreUnsound | Code::Config => tonic::Code::Internal,
        Code::NotServing => tonic::Code::Unavailable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_tells_programs_the_code_and_ours_everything() {
        let problem = Problem::new(Code::TargetUncertain, "shop@prod is held")
            .not_known("whether switch finished")
            .next("holdfast reconcile inspect shop@prod#12")
            .with("target", "shop@prod");
        let status = of(&problem);
        assert_eq!(status.code(), tonic::Code::FailedPrecondition);
        assert_eq!(status.message(), "shop@prod is held");
        let info = status.get_details_error_info().expect("error info");
        assert_eq!((info.reason.as_str(), info.domain.as_str()), ("HF-2031", "holdfast"));
        assert_eq!(info.metadata["target"], "shop@prod");
        let help = status.get_details_help().expect("help");
        let lines: Vec<_> = help.links.iter().map(|link| link.description.as_str()).collect();
        assert_eq!(lines, ["holdfast reconcile inspect shop@prod#12", "holdfast explain HF-2031"]);
        assert_eq!(problem::from_status(&status), Some(problem));
    }

    #[test]
    fn the_whole_status_stays_small_whatever_is_in_the_problem() {
        let long = "%".repeat(10_000);
        let problem = (0..100).fold(Problem::new(Code::InvalidValue, &long), |problem, number| {
            problem.known(&long).next(&long).with(number.to_string(), &long)
        });
        let status = of(&problem);
        assert!(status.message().len() <= MAX_MESSAGE_BYTES);
        assert!(status.details().len() <= 16 * 1024, "{}", status.details().len());
    }

    #[test]
    fn a_bad_field_is_named() {
        let status = invalid(&Invalid::Missing { field: "claim.fence" });
        assert_eq!(status.code(), tonic::Code::InvalidArgument);
        assert_eq!(problem::from_status(&status).expect("ours").metadata["field"], "claim.fence");
    }
}
