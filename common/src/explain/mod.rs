//! What each code and each state means, for whoever meets it at three in the morning.
//!
//! Every text says what happened, what is still true of the target, and what to do next. A code without one does not
//! compile; a state word without one fails a test.

mod access;
mod files;
mod reasons;
mod reconciling;
mod states;
mod targets;

use serde::de::IntoDeserializer;
use serde::de::value::{Error as NoSuchWord, StrDeserializer};
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::report::{DeclineReason, FiledReason, PermitDenial};

/// A few plain sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// What it means.
    pub what: &'static str,
    /// What is still true of the target and of what was recorded.
    pub still_true: &'static str,
    /// What to do.
    pub next: &'static str,
}

/// Of a code.
#[must_use]
pub fn explain(code: Code) -> Explanation {
    match code {
        Code::FileSyntax => files::SYNTAX,
        Code::UnknownKey => files::UNKNOWN_KEY,
        Code::InvalidValue => files::INVALID_VALUE,
        Code::InvalidInput => files::INVALID_INPUT,
        Code::MissingKey => files::MISSING_KEY,
        Code::TooLarge => files::TOO_LARGE,
        Code::NotSupported => files::NOT_SUPPORTED,
        Code::TargetNotFound => targets::TARGET_NOT_FOUND,
        Code::DeploymentNotFound => targets::DEPLOYMENT_NOT_FOUND,
        Code::AmbiguousId => targets::AMBIGUOUS_ID,
        Code::AgentNotFound => targets::AGENT_NOT_FOUND,
        Code::RequestIdReused => targets::REQUEST_ID_REUSED,
        Code::RevisionMismatch => targets::REVISION_MISMATCH,
        Code::OrderPassed => targets::ORDER_PASSED,
        Code::NoEligibleAgent => targets::NO_ELIGIBLE_AGENT,
        Code::TargetUncertain => targets::TARGET_UNCERTAIN,
        Code::TargetWaitsForDecision => targets::TARGET_WAITS_FOR_DECISION,
        Code::TargetBusy => targets::TARGET_BUSY,
        Code::RevisionUnknown => targets::REVISION_UNKNOWN,
        Code::TargetOnHold => targets::TARGET_ON_HOLD,
        Code::NotOnHold => targets::NOT_ON_HOLD,
        Code::TargetInUse => targets::TARGET_IN_USE,
        Code::ResourceTaken => targets::RESOURCE_TAKEN,
        Code::FenceExhausted => targets::FENCE_EXHAUSTED,
        Code::AlreadyEnded => targets::ALREADY_ENDED,
        Code::QueueFull => targets::QUEUE_FULL,
        Code::ArchiveMissing => targets::ARCHIVE_MISSING,
        Code::ArchiveDiffers => targets::ARCHIVE_DIFFERS,
        Code::ArchiveTooLarge => targets::ARCHIVE_TOO_LARGE,
        Code::NothingToReconcile => reconciling::NOTHING_TO_RECONCILE,
        Code::DecisionNotOpen => reconciling::DECISION_NOT_OPEN,
        Code::EvidenceMoved => reconciling::EVIDENCE_MOVED,
        Code::NotConfirmed => reconciling::NOT_CONFIRMED,
        Code::CannotInspect => reconciling::CANNOT_INSPECT,
        Code::CannotFenceOff => reconciling::CANNOT_FENCE_OFF,
        Code::ReasonMissing => reconciling::REASON_MISSING,
        Code::ObservedMissing => reconciling::OBSERVED_MISSING,
        Code::NotSignedIn => access::NOT_SIGNED_IN,
        Code::TokenExpired => access::TOKEN_EXPIRED,
        Code::NotAllowed => access::NOT_ALLOWED,
        Code::NotAnAgent => access::NOT_AN_AGENT,
        Code::NoAnswer => access::NO_ANSWER,
        Code::InvalidMessage => access::INVALID_MESSAGE,
        Code::ProtocolVersion => access::PROTOCOL_VERSION,
        Code::SessionReplaced => access::SESSION_REPLACED,
        Code::Internal => access::INTERNAL,
        Code::StoreFailed => access::STORE_FAILED,
        Code::Config => access::CONFIG,
        Code::NotServing => access::NOT_SERVING,
    }
}

/// Of a state, a stage, a disposition or a reason, by its word. Case does not matter, `-` and a space stand for `_`.
#[must_use]
pub fn explain_state(name: &str) -> Option<Explanation> {
    let word = name.trim().to_lowercase().replace(['-', ' '], "_");
    let state = states::STATES.iter().find(|(state, _)| *state == word).map(|(_, explanation)| *explanation);
    state
        .or_else(|| read::<FiledReason>(&word).map(reasons::filed))
        .or_else(|| read::<PermitDenial>(&word).map(reasons::denied))
        .or_else(|| read::<DeclineReason>(&word).map(reasons::declined))
}

/// The words of states and stages, in the order of a deployment's life. Reasons are not among them.
pub fn state_words() -> impl Iterator<Item = &'static str> {
    states::STATES.iter().map(|(word, _)| *word)
}

fn read<'de, T: Deserialize<'de>>(word: &'de str) -> Option<T> {
    let word: StrDeserializer<'de, NoSuchWord> = word.into_deserializer();
    T::deserialize(word).ok()
}

#[cfg(test)]
mod tests;
