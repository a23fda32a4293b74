//! What each code and each state means, for whoever meets it at three in the morning.
//!
//! Every text says what happened, what is still true of the target, and what to do next. A code without one does not
//! compile; a state word without one fails a test.

mod access;
mod decisions;
mod enrolment;
mod exits;
mod files;
mod reasons;
mod reconciling;
mod roles;
mod states;
mod targets;
mod terms;
mod waiting;

use serde::de::IntoDeserializer;
use serde::de::value::{Error as NoSuchWord, StrDeserializer};
use serde::{Deserialize, Serialize};

use crate::code::{Code, ExitCode};
use crate::recovery::{DecisionKind, Policy};
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
        Code::DataDestroyed => files::DATA_DESTROYED,
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
        Code::NothingToGoBackTo => targets::NOTHING_TO_GO_BACK_TO,
        Code::CannotGoBack => targets::CANNOT_GO_BACK,
        Code::PlaceMoved => targets::PLACE_MOVED,
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
        Code::TokenExists => access::TOKEN_EXISTS,
        Code::TokenNotFound => access::TOKEN_NOT_FOUND,
        Code::GrantTooWide => access::GRANT_TOO_WIDE,
        Code::EnrolmentClosed => enrolment::CLOSED,
        Code::JoinTokenUnknown => enrolment::TOKEN_UNKNOWN,
        Code::JoinTokenExpired => enrolment::TOKEN_EXPIRED,
        Code::JoinTokenUsed => enrolment::TOKEN_USED,
        Code::AgentNameTaken => enrolment::NAME_TAKEN,
        Code::JoinGuessing => enrolment::GUESSING,
        Code::BadCertificateRequest => enrolment::BAD_REQUEST,
        Code::CertificateRevoked => enrolment::REVOKED,
        Code::IdentityCopied => enrolment::COPIED,
        Code::CaPinMismatch => enrolment::PIN,
        Code::NotLocked => enrolment::NOT_LOCKED,
        Code::RenewedTooOften => enrolment::RENEWED_TOO_OFTEN,
        Code::HostPolicy => access::HOST_POLICY,
        Code::NoAnswer => access::NO_ANSWER,
        Code::InvalidMessage => access::INVALID_MESSAGE,
        Code::ProtocolVersion => access::PROTOCOL_VERSION,
        Code::SessionReplaced => access::SESSION_REPLACED,
        Code::Internal => access::INTERNAL,
        Code::StoreFailed => access::STORE_FAILED,
        Code::Config => access::CONFIG,
        Code::NotServing => access::NOT_SERVING,
        Code::DiskFull => access::DISK_FULL,
        Code::OutOfDescriptors => access::OUT_OF_DESCRIPTORS,
        Code::StoreUnsound => access::STORE_UNSOUND,
    }
}

/// Of what a command exits with.
#[must_use]
pub fn explain_exit(code: ExitCode) -> Explanation {
    exits::exit(code)
}

/// What kind of word it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Of a deployment, an attempt, a step, a cancel, a report, a runner or a resource.
    State,
    /// Why a deployment waits.
    Waiting,
    /// Why a report is evidence only.
    Filed,
    /// Why a permit was denied.
    Denied,
    /// Why an agent declined.
    Declined,
    /// What can be decided.
    Decision,
    /// Who decides when contact was lost.
    Policy,
    /// What a token can be made for.
    Role,
    /// What files, adapters and reports say.
    Term,
}

impl Kind {
    /// As people read it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Kind::State => "state",
            Kind::Waiting => "waits because",
            Kind::Filed => "filed because",
            Kind::Denied => "denied because",
            Kind::Declined => "declined because",
            Kind::Decision => "decision",
            Kind::Policy => "policy",
            Kind::Role => "role",
            Kind::Term => "term",
        }
    }
}

/// Every word that is explained, kind by kind. A word that is used in two ways stands once, under the first.
#[must_use]
pub fn words() -> Vec<(Kind, &'static str, Explanation)> {
    let table = |kind, table: &'static [(&'static str, Explanation)]| {
        table.iter().map(move |(word, explanation)| (kind, *word, *explanation))
    };
    let read = |kind, words: &'static [&'static str]| {
        words.iter().filter_map(move |word| Some((kind, *word, of_reason(word)?)))
    };
    let all = table(Kind::State, states::STATES)
        .chain(table(Kind::Waiting, waiting::WAITING))
        .chain(read(Kind::Filed, reasons::FILED_WORDS))
        .chain(read(Kind::Denied, reasons::DENIED_WORDS))
        .chain(read(Kind::Declined, reasons::DECLINED_WORDS))
        .chain(read(Kind::Decision, reasons::DECISION_WORDS))
        .chain(read(Kind::Policy, reasons::POLICY_WORDS))
        .chain(table(Kind::Role, roles::ROLES))
        .chain(table(Kind::Term, terms::TERMS));
    let mut once: Vec<(Kind, &'static str, Explanation)> = Vec::new();
    for word in all {
        if !once.iter().any(|(_, other, _)| *other == word.1) {
            once.push(word);
        }
    }
    once
}

fn of_reason(word: &str) -> Option<Explanation> {
    read::<FiledReason>(word)
        .map(reasons::filed)
        .or_else(|| read::<PermitDenial>(word).map(reasons::denied))
        .or_else(|| read::<DeclineReason>(word).map(reasons::declined))
        .or_else(|| read::<DecisionKind>(word).map(decisions::decision))
        .or_else(|| read::<Policy>(&word.replace('_', "-")).map(decisions::policy))
}

/// Of any word that has a meaning here: a state, a stage, a reason, a decision, a role. Case does not matter, `-` and a
/// space stand for `_`.
#[must_use]
pub fn explain_state(name: &str) -> Option<Explanation> {
    let word = name.trim().to_lowercase().replace(['-', ' '], "_");
    words().into_iter().find(|(_, other, _)| *other == word).map(|(_, _, explanation)| explanation)
}

fn read<'de, T: Deserialize<'de>>(word: &'de str) -> Option<T> {
    let word: StrDeserializer<'de, NoSuchWord> = word.into_deserializer();
    T::deserialize(word).ok()
}

#[cfg(test)]
mod tests;
