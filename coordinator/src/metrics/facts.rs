//! What there is to count in the events of one write, and in an answer. Pure.

use holdfast_common::code::Code;
use holdfast_common::id::DeploymentId;
use holdfast_common::outcome::{AttemptEnd, StepEnd};
use holdfast_common::report::{DeclineReason, FiledReason, PermitDenial, ReportBody};
use holdfast_common::time::Wall;
use holdfast_coordinator_core::Answer;
use holdfast_coordinator_core::event::{Event, Recorded};
use holdfast_coordinator_core::state::{
    Attempt, AttemptState, CancelCause, Deployment, DeploymentState, EvidenceBody, StepState,
};

use crate::grpc::view::enums::state_word;
use crate::grpc::view::sentence::decision_word;

/// One thing to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// An event of this kind.
    Event(&'static str),
    /// A deployment ended so.
    Ended(&'static str),
    /// A deployment moved there.
    Moved {
        /// The state.
        word: &'static str,
        /// Which became uncertain, and when.
        uncertain: Option<(DeploymentId, Wall)>,
    },
    /// A report was kept as evidence only.
    Late(Agrees),
    /// Something came under another fence or attempt than the current one.
    Stale(Place),
    /// A lease lapsed in this phase.
    Expired(&'static str),
    /// A person asked for a stop, with this result.
    CancelAsked(&'static str),
    /// A deployment with a request on record ended so.
    CancelEnded(&'static str),
    /// A person decided so.
    Decided(&'static str),
}

/// Whether a late report agrees with what is on record by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agrees {
    /// It says the same.
    Yes,
    /// It says something else.
    No,
    /// Nothing is on record that it could be compared with.
    Unknown,
}

impl Agrees {
    pub(super) fn word(self) -> &'static str {
        match self {
            Agrees::Yes => "yes",
            Agrees::No => "no",
            Agrees::Unknown => "unknown",
        }
    }

    fn of(same: bool) -> Self {
        if same { Agrees::Yes } else { Agrees::No }
    }
}

/// Where something stale was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A report: it was kept as evidence.
    Report,
    /// A request to begin a step.
    Permit,
    /// A renewal.
    Heartbeat,
    /// By the agent: it had seen a higher fence than the offer's.
    Agent,
}

impl Place {
    pub(super) fn word(self) -> &'static str {
        match self {
            Place::Report => "report",
            Place::Permit => "permit",
            Place::Heartbeat => "heartbeat",
            Place::Agent => "agent",
        }
    }
}

/// The kinds of events, as they are stored.
pub const EVENTS: &[&str] = &[
    "target_declared",
    "submitted",
    "reserved",
    "waits",
    "lease_granted",
    "lease_renewed",
    "agent_away",
    "offer_accepted",
    "offer_declined",
    "permit_granted",
    "report_accepted",
    "attempt_ended",
    "evidence_filed",
    "inquiry_opened",
    "cancel_recorded",
    "cancel_after_end",
    "deadline_passed",
    "deployment_deadline_passed",
    "deployment_moved",
    "decided",
    "deployment_ended",
    "revision_recorded",
    "policy_scheduled",
    "retry_scheduled",
    "hold_placed",
    "hold_ended",
];

/// An event's kind.
#[must_use]
pub fn kind(event: &Event) -> &'static str {
    match event {
        Event::TargetDeclared { .. } => "target_declared",
        Event::Submitted { .. } => "submitted",
        Event::Reserved { .. } => "reserved",
        Event::Waits { .. } => "waits",
        Event::LeaseGranted { .. } => "lease_granted",
        Event::LeaseRenewed { .. } => "lease_renewed",
        Event::AgentAway { .. } => "agent_away",
        Event::OfferAccepted { .. } => "offer_accepted",
        Event::OfferDeclined { .. } => "offer_declined",
        Event::PermitGranted { .. } => "permit_granted",
        Event::ReportAccepted { .. } => "report_accepted",
        Event::AttemptEnded { .. } => "attempt_ended",
        Event::EvidenceFiled { .. } => "evidence_filed",
        Event::InquiryOpened { .. } => "inquiry_opened",
        Event::CancelRecorded { .. } => "cancel_recorded",
        Event::CancelAfterEnd { .. } => "cancel_after_end",
        Event::DeadlinePassed { .. } => "deadline_passed",
        Event::DeploymentDeadlinePassed { .. } => "deployment_deadline_passed",
        Event::DeploymentMoved { .. } => "deployment_moved",
        Event::Decided { .. } => "decided",
        Event::DeploymentEnded { .. } => "deployment_ended",
        Event::RevisionRecorded { .. } => "revision_recorded",
        Event::PolicyScheduled { .. } => "policy_scheduled",
        Event::RetryScheduled { .. } => "retry_scheduled",
        Event::HoldPlaced { .. } => "hold_placed",
        Event::HoldEnded { .. } => "hold_ended",
    }
}

/// Everything to count in the events of one write. `ended` are the deployments that ended with them; `agrees` looks up
/// what a late report is compared with.
pub fn of<E>(
    events: &[Recorded],
    ended: &[Deployment],
    mut agrees: impl FnMut(DeploymentId, &holdfast_common::claim::Claim, &ReportBody) -> Result<Agrees, E>,
) -> Result<Vec<Fact>, E> {
    let mut facts = Vec::with_capacity(events.len() + 2);
    for Recorded { event, at, .. } in events {
        facts.push(Fact::Event(kind(event)));
        match event {
            Event::DeploymentEnded { deployment, state, ended: how } => {
                facts.push(Fact::Ended(state_word(*state)));
                let asked = ended.iter().find(|ended| ended.id == *deployment).and_then(|ended| ended.cancel.as_ref());
                if asked.is_some_and(|asked| matches!(asked.cause, CancelCause::Operator { .. })) {
                    let late = how.cancel_too_late || *state == DeploymentState::Succeeded;
                    facts.push(Fact::CancelEnded(if late { "too_late" } else { state_word(*state) }));
                }
            }
            Event::DeploymentMoved { deployment, state, .. } => {
                let uncertain = (*state == DeploymentState::Uncertain).then_some((*deployment, *at));
                facts.push(Fact::Moved { word: state_word(*state), uncertain });
            }
            Event::EvidenceFiled { deployment, evidence } => {
                let EvidenceBody::LateReport { claim, report, filed, .. } = &evidence.body else { continue };
                facts.push(Fact::Late(agrees(*deployment, claim, &report.body)?));
                if matches!(filed, FiledReason::SupersededFence | FiledReason::WrongFence) {
                    facts.push(Fact::Stale(Place::Report));
                }
            }
            Event::OfferDeclined { reason: DeclineReason::FenceRegression, .. } => {
                facts.push(Fact::Stale(Place::Agent));
            }
            Event::AttemptEnded { state, .. } => facts.extend(expired(*state, events)),
            Event::CancelRecorded { deployment, cause: CancelCause::Operator { .. }, .. } => {
                let at_once = events.iter().any(|other| is_end_of(&other.event, *deployment));
                facts.push(Fact::CancelAsked(if at_once { "cancelled_at_once" } else { "recorded" }));
            }
            Event::CancelAfterEnd { .. } => facts.push(Fact::CancelAsked("already_ended")),
            Event::Decided { record, .. } => facts.push(Fact::Decided(decision_word(record.kind))),
            Event::OfferDeclined { .. }
            | Event::CancelRecorded { .. }
            | Event::TargetDeclared { .. }
            | Event::Submitted { .. }
            | Event::Reserved { .. }
            | Event::Waits { .. }
            | Event::LeaseGranted { .. }
            | Event::LeaseRenewed { .. }
            | Event::AgentAway { .. }
            | Event::OfferAccepted { .. }
            | Event::PermitGranted { .. }
            | Event::ReportAccepted { .. }
            | Event::InquiryOpened { .. }
            | Event::DeadlinePassed { .. }
            | Event::DeploymentDeadlinePassed { .. }
            | Event::RevisionRecorded { .. }
            | Event::PolicyScheduled { .. }
            | Event::RetryScheduled { .. }
            | Event::HoldPlaced { .. }
            | Event::HoldEnded { .. } => {}
        }
    }
    Ok(facts)
}

fn is_end_of(event: &Event, of: DeploymentId) -> bool {
    matches!(event, Event::DeploymentEnded { deployment, .. } if *deployment == of)
}

/// An attempt that ended beside an accepted report ended by a word; one without ended by silence.
fn expired(state: AttemptState, events: &[Recorded]) -> Option<Fact> {
    let word = match state {
        AttemptState::Lapsed => "unpermitted",
        AttemptState::Interrupted => "between_permits",
        AttemptState::Uncertain => "permit_open",
        AttemptState::Offered
        | AttemptState::Running
        | AttemptState::Succeeded
        | AttemptState::Failed
        | AttemptState::Stopped
        | AttemptState::Declined(_)
        | AttemptState::Resolved => return None,
    };
    let told = events.iter().any(|other| matches!(other.event, Event::ReportAccepted { .. }));
    (!told).then_some(Fact::Expired(word))
}

/// What there is to count in an answer: what was refused leaves no event.
#[must_use]
pub fn of_answer(answer: &Answer) -> Option<Fact> {
    match answer {
        Answer::Superseded => Some(Fact::Stale(Place::Heartbeat)),
        Answer::Denied(PermitDenial::NotCurrent) => Some(Fact::Stale(Place::Permit)),
        Answer::Denied(
            PermitDenial::NotYours
            | PermitDenial::LeaseExpired
            | PermitDenial::CancelRecorded
            | PermitDenial::DeadlinePassed
            | PermitDenial::OutOfOrder
            | PermitDenial::NoSuchMutation
            | PermitDenial::PlanDiffers
            | PermitDenial::PermitOpen
            | PermitDenial::CarryUnread,
        )
        | Answer::Done
        | Answer::Submitted { .. }
        | Answer::Renewed { .. }
        | Answer::Permitted
        | Answer::Answered(_)
        | Answer::CancelRecorded
        | Answer::CancelledAtOnce
        | Answer::CancelTooLate(_)
        | Answer::InquiryOpened(_)
        | Answer::Decided(_) => None,
    }
}

/// Compares a late report with its attempt as it stands, or with what its deployment ended as.
#[must_use]
pub fn agrees(said: &ReportBody, attempt: Option<&Attempt>, ended_as: Option<DeploymentState>) -> Agrees {
    match said {
        ReportBody::AttemptEnded { end } => match (attempt.and_then(|attempt| observed(attempt.state)), ended_as) {
            (Some(observed), _) => Agrees::of(observed == *end),
            (None, Some(state)) => Agrees::of(wanted(*end) == state),
            (None, None) => Agrees::Unknown,
        },
        ReportBody::StepEnded { step, end, .. } => {
            let on_record = attempt.and_then(|attempt| attempt.step(step)).map(|run| run.state);
            match (on_record, end) {
                (_, StepEnd::Unknown) | (Some(StepState::Ended(StepEnd::Unknown)), _) => Agrees::Unknown,
                (Some(StepState::Ended(told)), said) => {
                    Agrees::of(std::mem::discriminant(&told) == std::mem::discriminant(said))
                }
                (Some(StepState::Pending | StepState::Permitted | StepState::Started), _) => Agrees::Unknown,
                (Some(StepState::Carried { .. }), said) => Agrees::of(*said == StepEnd::Applied),
                // A success needs every step; other ends say nothing about one of them.
                (None, said) if ended_as == Some(DeploymentState::Succeeded) => Agrees::of(*said == StepEnd::Applied),
                (None, _) => Agrees::Unknown,
            }
        }
        ReportBody::StepStarted { .. }
        | ReportBody::CancelReceived { .. }
        | ReportBody::CancelActed { .. }
        | ReportBody::Reread { .. } => Agrees::Unknown,
    }
}

fn observed(state: AttemptState) -> Option<AttemptEnd> {
    match state {
        AttemptState::Succeeded => Some(AttemptEnd::Succeeded),
        AttemptState::Failed => Some(AttemptEnd::Failed),
        AttemptState::Stopped => Some(AttemptEnd::Stopped),
        AttemptState::Offered
        | AttemptState::Running
        | AttemptState::Declined(_)
        | AttemptState::Lapsed
        | AttemptState::Interrupted
        | AttemptState::Uncertain
        | AttemptState::Resolved => None,
    }
}

fn wanted(end: AttemptEnd) -> DeploymentState {
    match end {
        AttemptEnd::Succeeded => DeploymentState::Succeeded,
        AttemptEnd::Failed => DeploymentState::Failed,
        AttemptEnd::Stopped => DeploymentState::Cancelled,
    }
}

/// Why a host was not taken in.
#[must_use]
pub fn join_refusal(code: Code) -> &'static str {
    [
        (Code::JoinTokenUnknown, "unknown"),
        (Code::JoinTokenExpired, "expired"),
        (Code::JoinTokenUsed, "used"),
        (Code::NotAllowed, "other_name"),
        (Code::AgentNameTaken, "name_taken"),
        (Code::JoinGuessing, "guessing"),
        (Code::EnrolmentClosed, "closed"),
    ]
    .into_iter()
    .find_map(|(of, word)| (of == code).then_some(word))
    .unwrap_or("other")
}

/// The code of a refusal that a call was answered with.
#[must_use]
pub fn refusal(status: &tonic::Status) -> Option<Code> {
    holdfast_proto::problem::from_status(status).map(|problem| problem.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_of_events_are_those_that_are_stored() {
        let event = Event::OfferAccepted { attempt: holdfast_common::id::AttemptId(uuid::Uuid::nil()), deadline: None };
        let stored = serde_json::to_value(&event).unwrap();
        assert_eq!(stored["event"], kind(&event));
        assert!(EVENTS.contains(&kind(&event)));
        let distinct: std::collections::BTreeSet<_> = EVENTS.iter().collect();
        assert_eq!(distinct.len(), EVENTS.len());
    }

    #[test]
    fn a_late_success_is_compared_with_what_was_decided_and_never_with_silence() {
        let said = |end| ReportBody::AttemptEnded { end };
        use DeploymentState as D;
        for (end, ended_as, expected) in [
            (AttemptEnd::Succeeded, Some(D::Succeeded), Agrees::Yes),
            (AttemptEnd::Succeeded, Some(D::Failed), Agrees::No),
            (AttemptEnd::Stopped, Some(D::Cancelled), Agrees::Yes),
            (AttemptEnd::Failed, Some(D::Cancelled), Agrees::No),
            (AttemptEnd::Succeeded, None, Agrees::Unknown),
        ] {
            assert_eq!(agrees(&said(end), None, ended_as), expected, "{end:?} {ended_as:?}");
        }
        assert_eq!(agrees(&ReportBody::cancel_received(), None, Some(D::Failed)), Agrees::Unknown);
    }
}
