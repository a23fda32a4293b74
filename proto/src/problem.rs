//! How a [`Problem`] travels in a gRPC status.
//!
//! The status has the title as its message, `google.rpc.ErrorInfo` and `Help` in its details for programs of other
//! makers, and the whole problem as JSON under [`METADATA_KEY`] for ours.

use holdfast_common::problem::Problem;
use holdfast_common::text::bounded;
use tonic::metadata::{BinaryMetadataValue, MetadataMap, MetadataValue};

/// The trailer that holds the whole problem as JSON.
pub const METADATA_KEY: &str = "holdfast-problem-bin";

/// `ErrorInfo.domain` of every problem.
pub const DOMAIN: &str = "holdfast";

/// Trailers are bounded by the other side; a problem that is larger than this is cut.
const MAX_JSON_BYTES: usize = 16 * 1024;
const MAX_LINES: usize = 8;
const MAX_LINE_BYTES: usize = 200;

/// Puts a problem into a status's metadata.
pub fn put(problem: &Problem, metadata: &mut MetadataMap) {
    metadata.insert_bin(METADATA_KEY, value(problem));
}

/// The problem that a status carries, where it carries a whole one of a code that this version knows.
#[must_use]
pub fn from_status(status: &tonic::Status) -> Option<Problem> {
    let bytes = status.metadata().get_bin(METADATA_KEY)?.to_bytes().ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn value(problem: &Problem) -> BinaryMetadataValue {
    let whole = json(problem);
    let bytes = if whole.len() <= MAX_JSON_BYTES { whole } else { json(&cut(problem)) };
    MetadataValue::from_bytes(&bytes)
}

fn json(problem: &Problem) -> Vec<u8> {
    serde_json::to_vec(problem).expect("plain data serializes")
}

fn cut(problem: &Problem) -> Problem {
    let line = |text: &String| bounded(text, MAX_LINE_BYTES);
    let lines = |all: &[String]| all.iter().take(MAX_LINES).map(line).collect();
    Problem {
        code: problem.code,
        title: line(&problem.title),
        known: lines(&problem.known),
        not_known: lines(&problem.not_known),
        so: lines(&problem.so),
        next: lines(&problem.next),
        metadata: problem.metadata.iter().take(MAX_LINES).map(|(key, value)| (line(key), line(value))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use holdfast_common::code::Code;

    use super::*;

    fn carried(problem: &Problem) -> Option<Problem> {
        let mut metadata = MetadataMap::new();
        put(problem, &mut metadata);
        from_status(&tonic::Status::with_metadata(tonic::Code::FailedPrecondition, "x", metadata))
    }

    #[test]
    fn a_problem_arrives_as_it_was_sent() {
        let problem = Problem::new(Code::TargetUncertain, "held ünd \"quoted\"")
            .known("a")
            .not_known("b")
            .so("c")
            .next("d")
            .with("target", "shop@prod");
        assert_eq!(carried(&problem), Some(problem));
    }

    #[test]
    fn a_problem_without_bound_is_cut_and_still_arrives() {
        let long = "\\\"x".repeat(5_000);
        let problem = (0..50).fold(Problem::new(Code::InvalidValue, &long), |problem, number| {
            problem.known(&long).not_known(&long).so(&long).next(&long).with(format!("{number}{long}"), &long)
        });
        let arrived = carried(&problem).expect("arrives");
        assert_eq!(arrived.code, Code::InvalidValue);
        assert!(arrived.title.ends_with("[cut]"));
        assert!(json(&arrived).len() <= 2 * MAX_JSON_BYTES, "{}", json(&arrived).len());
    }

    #[test]
    fn a_status_of_somebody_else_has_no_problem() {
        assert_eq!(from_status(&tonic::Status::unavailable("gone")), None);
        let mut metadata = MetadataMap::new();
        metadata.insert_bin(METADATA_KEY, MetadataValue::from_bytes(br#"{"code":"HF-9999","title":"x"}"#));
        assert_eq!(from_status(&tonic::Status::with_metadata(tonic::Code::Internal, "x", metadata)), None);
    }
}
