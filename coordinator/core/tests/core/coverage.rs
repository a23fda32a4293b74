//! Which rows were reached. The tables come from the enums by exhaustive matches: a new variant does not compile until
//! it has a row, and a row that no run reaches fails the suite.

use std::cell::RefCell;
use std::collections::BTreeMap;

use holdfast_common::outcome::{FailureClass, StepEnd};
use holdfast_common::recovery::DecisionKind;
use holdfast_common::report::{Disposition, FiledReason, PermitDenial};
use holdfast_coordinator_core::invariants::Step;
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::{Answer, Effect, Event, Refusal};

pub type Row = (&'static str, &'static str, &'static str);

thread_local! {
    static REACHED: RefCell<BTreeMap<Row, u64>> = const { RefCell::new(BTreeMap::new()) };
}

pub fn reached(row: Row) {
    REACHED.with_borrow_mut(|rows| *rows.entry(row).or_default() += 1);
}

/// What this thread reached, and forgets it.
pub fn take() -> BTreeMap<Row, u64> {
    REACHED.with_borrow_mut(std::mem::take)
}

/// A match and the list of its names, from one table.
macro_rules! rows {
    ($(fn $name:ident($type:ty) const $all:ident { $($pattern:pat => $text:literal,)* })*) => {$(
        #[allow(dead_code)]
        pub const $all: &[&str] = &[$($text,)*];
        pub fn $name(of: &$type) -> &'static str {
            #[allow(unused_variables)]
            match of { $($pattern => $text,)* }
        }
    )*};
}

rows! {
    fn filed_name(FiledReason) const FILED {
        FiledReason::SupersededFence => "superseded_fence",
        FiledReason::LeaseExpired => "lease_expired",
        FiledReason::AttemptTerminal => "attempt_terminal",
        FiledReason::StepOutOfOrder => "step_out_of_order",
        FiledReason::UnknownAttempt => "unknown_attempt",
        FiledReason::WrongAgent => "wrong_agent",
        FiledReason::WrongIncarnation => "wrong_incarnation",
        FiledReason::WrongFence => "wrong_fence",
        FiledReason::UnknownStep => "unknown_step",
        FiledReason::NotPermitted => "not_permitted",
        FiledReason::SequenceConflict => "sequence_conflict",
    }
    fn denial_name(PermitDenial) const DENIALS {
        PermitDenial::NotYours => "not_yours",
        PermitDenial::NotCurrent => "not_current",
        PermitDenial::LeaseExpired => "lease_expired",
        PermitDenial::CancelRecorded => "cancel_recorded",
        PermitDenial::DeadlinePassed => "deadline_passed",
        PermitDenial::OutOfOrder => "out_of_order",
        PermitDenial::NoSuchMutation => "no_such_mutation",
        PermitDenial::PlanDiffers => "plan_differs",
        PermitDenial::PermitOpen => "permit_open",
        PermitDenial::CarryUnread => "carry_unread",
    }
    fn refusal_name(Refusal) const REFUSALS {
        Refusal::NotDeclared => "not_declared",
        Refusal::TargetInUse { .. } => "target_in_use",
        Refusal::TargetHeld { .. } => "target_held",
        Refusal::QueueFull { .. } => "queue_full",
        Refusal::RevisionMismatch { .. } => "revision_mismatch",
        Refusal::OrderPassed { .. } => "order_passed",
        Refusal::TargetOnHold(_) => "target_on_hold",
        Refusal::NotOnHold => "not_on_hold",
        Refusal::ObservedMissing { .. } => "observed_missing",
        Refusal::NoSuchResource { .. } => "no_such_resource",
        Refusal::DeploymentNotFound(_) => "deployment_not_found",
        Refusal::NothingToReconcile { .. } => "nothing_to_reconcile",
        Refusal::DecisionNotOpen { .. } => "decision_not_open",
        Refusal::EvidenceMoved { .. } => "evidence_moved",
        Refusal::CannotInspect { .. } => "cannot_inspect",
        Refusal::CannotFenceOff { .. } => "cannot_fence_off",
        Refusal::NothingToGoBackTo { .. } => "nothing_to_go_back_to",
        Refusal::CannotGoBack(_) => "cannot_go_back",
        Refusal::PlaceMoved { .. } => "place_moved",
        Refusal::FenceExhausted => "fence_exhausted",
        Refusal::Broken { .. } => "broken",
    }
    fn answer_name(Answer) const ANSWERS {
        Answer::Done => "done",
        Answer::Submitted { .. } => "submitted",
        Answer::Renewed { .. } => "renewed",
        Answer::Superseded => "superseded",
        Answer::Permitted => "permitted",
        Answer::Denied(_) => "denied",
        Answer::Answered(_) => "answered",
        Answer::CancelRecorded => "cancel_recorded",
        Answer::CancelledAtOnce => "cancelled_at_once",
        Answer::CancelTooLate(_) => "cancel_too_late",
        Answer::InquiryOpened(_) => "inquiry_opened",
        Answer::Decided(_) => "decided",
    }
    fn effect_name(Effect) const EFFECTS {
        Effect::Assign { .. } => "assign",
        Effect::Offer { .. } => "offer",
        Effect::Cancel { .. } => "cancel",
        Effect::Inquire { .. } => "inquire",
        Effect::Recover { .. } => "recover",
    }
    fn disposition_name(Disposition) const DISPOSITIONS {
        Disposition::Accepted => "accepted",
        Disposition::Duplicate => "duplicate",
        Disposition::Filed(_) => "filed",
    }
    fn event_name(Event) const EVENTS {
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
        Event::PolicyScheduled { .. } => "policy_scheduled",
        Event::RetryScheduled { class: FailureClass::Transient, .. } => "retry_scheduled_transient",
        Event::RetryScheduled { class: FailureClass::Infrastructure, .. } => "retry_scheduled_infrastructure",
        Event::RetryScheduled { class: FailureClass::Permanent, .. } => "retry_scheduled_permanent",
        Event::Decided { .. } => "decided",
        Event::DeploymentEnded { .. } => "deployment_ended",
        Event::RevisionRecorded { .. } => "revision_recorded",
        Event::HoldPlaced { .. } => "hold_placed",
        Event::HoldEnded { how: HoldEnd::Operator { .. } } => "hold_ended_by_operator",
        Event::HoldEnded { how: HoldEnd::Time } => "hold_ended_by_time",
    }
    fn waiting_name(Waiting) const WAITING {
        Waiting::Reservation { .. } => "reservation",
        Waiting::Turn { .. } => "turn",
        Waiting::Hold { .. } => "hold",
        Waiting::NoEligibleAgent { .. } => "no_eligible_agent",
        Waiting::Backoff { .. } => "backoff",
        Waiting::UnreadRevision { .. } => "unread_revision",
        Waiting::Assignment => "assignment",
    }
    fn body_name(EvidenceBody) const EVIDENCE {
        EvidenceBody::LateReport { .. } => "late_report",
        EvidenceBody::Inspection { .. } => "inspection",
        EvidenceBody::FencedOff { .. } => "fenced_off",
        EvidenceBody::InquiryFailed { .. } => "inquiry_failed",
        EvidenceBody::JournalWord { .. } => "journal_word",
        EvidenceBody::Attested { .. } => "attested",
        EvidenceBody::IdentityLocked { .. } => "identity_locked",
        EvidenceBody::IdentityUnlocked { .. } => "identity_unlocked",
        EvidenceBody::Note { .. } => "note",
    }
    fn decision_name(DecisionKind) const DECISIONS {
        DecisionKind::Retry => "retry",
        DecisionKind::AcceptSucceeded => "accept_succeeded",
        DecisionKind::AcceptFailed => "accept_failed",
        DecisionKind::AcceptCancelled => "accept_cancelled",
        DecisionKind::Rollback => "rollback",
        DecisionKind::Readmit => "readmit",
        DecisionKind::Abandon => "abandon",
        DecisionKind::Note => "note",
    }
    fn cause_name(CancelCause) const CAUSES {
        CancelCause::Operator { .. } => "operator",
        CancelCause::Timeout { .. } => "step_timeout",
        CancelCause::QueueTimeout => "queue_timeout",
        CancelCause::DeploymentTimeout => "deployment_timeout",
    }
    fn deployment_name(DeploymentState) const DEPLOYMENTS {
        DeploymentState::Queued => "queued",
        DeploymentState::Active => "active",
        DeploymentState::Uncertain => "uncertain",
        DeploymentState::Held => "held",
        DeploymentState::Succeeded => "succeeded",
        DeploymentState::Failed => "failed",
        DeploymentState::Cancelled => "cancelled",
    }
    fn attempt_name(AttemptState) const ATTEMPTS {
        AttemptState::Offered => "offered",
        AttemptState::Running => "running",
        AttemptState::Succeeded => "succeeded",
        AttemptState::Failed => "failed",
        AttemptState::Stopped => "stopped",
        AttemptState::Declined(_) => "declined",
        AttemptState::Lapsed => "lapsed",
        AttemptState::Interrupted => "interrupted",
        AttemptState::Uncertain => "uncertain",
        AttemptState::Resolved => "resolved",
    }
    fn step_name(StepState) const STEPS {
        StepState::Pending => "pending",
        StepState::Permitted => "permitted",
        StepState::Started => "started",
        StepState::Ended(StepEnd::Applied) => "applied",
        StepState::Ended(StepEnd::Failed { .. }) => "failed",
        StepState::Ended(StepEnd::Stopped { .. }) => "stopped",
        StepState::Ended(StepEnd::Unknown) => "unknown",
        StepState::Ended(StepEnd::NotStarted) => "not_started",
        StepState::Carried { carry: CarryState::NotRead } => "carried_not_read",
        StepState::Carried { carry: CarryState::Due } => "carried_due",
        StepState::Carried { carry: CarryState::AsLeft } => "carried_as_left",
        StepState::Carried { carry: CarryState::Differs } => "carried_differs",
        StepState::Carried { carry: CarryState::Failed } => "carried_failed",
    }
}

/// The whole state machine: each pair is legal and reached, each other pair is neither. A carried step's are not
/// all: an agent that restarts looks anew, which has its own test.
pub const ATTEMPT_MOVES: &[(&str, &str)] = &[
    ("", "offered"),
    ("offered", "running"),
    ("offered", "declined"),
    ("offered", "lapsed"),
    ("offered", "uncertain"),
    ("running", "succeeded"),
    ("running", "failed"),
    ("running", "stopped"),
    ("running", "lapsed"),
    ("running", "interrupted"),
    ("running", "uncertain"),
    ("uncertain", "resolved"),
];
pub const DEPLOYMENT_MOVES: &[(&str, &str)] = &[
    ("", "queued"),
    ("queued", "active"),
    ("queued", "failed"),
    ("queued", "cancelled"),
    ("queued", "held"),
    ("active", "queued"),
    ("active", "uncertain"),
    ("active", "held"),
    ("active", "succeeded"),
    ("active", "failed"),
    ("active", "cancelled"),
    ("uncertain", "active"),
    ("uncertain", "succeeded"),
    ("uncertain", "failed"),
    ("uncertain", "cancelled"),
    ("held", "active"),
    ("held", "succeeded"),
    ("held", "failed"),
    ("held", "cancelled"),
];
pub const STEP_MOVES: &[(&str, &str)] = &[
    ("pending", "permitted"),
    ("pending", "started"),
    ("pending", "applied"),
    ("pending", "failed"),
    ("pending", "stopped"),
    ("pending", "unknown"),
    ("permitted", "started"),
    ("permitted", "applied"),
    ("permitted", "failed"),
    ("permitted", "stopped"),
    ("permitted", "unknown"),
    ("permitted", "not_started"),
    ("started", "applied"),
    ("started", "failed"),
    ("started", "stopped"),
    ("started", "unknown"),
    ("", "carried_not_read"),
    ("", "carried_due"),
    ("carried_due", "carried_as_left"),
    ("carried_due", "carried_differs"),
    ("carried_due", "carried_failed"),
];

/// Every row that the suite must reach, and those that it must never reach.
pub fn expected() -> (Vec<Row>, Vec<Row>) {
    let named = |kind: &'static str, names: &'static [&'static str]| names.iter().map(move |name| (kind, *name, ""));
    let moves = |kind: &'static str, moves: &'static [(&'static str, &'static str)]| {
        moves.iter().map(move |(from, to)| (kind, *from, *to))
    };
    let all = named("filed", FILED)
        .chain(named("denied", DENIALS))
        .chain(named("refused", REFUSALS))
        .chain(named("answered", ANSWERS))
        .chain(named("due", EFFECTS))
        .chain(named("disposition", DISPOSITIONS))
        .chain(named("event", EVENTS))
        .chain(named("waits", WAITING))
        .chain(named("evidence", EVIDENCE))
        .chain(named("cancelled", CAUSES))
        .chain(named("ended", ENDS))
        .chain(named("decided", DECISIONS))
        .chain(moves("attempt", ATTEMPT_MOVES))
        .chain(moves("deployment", DEPLOYMENT_MOVES))
        .chain(moves("step", STEP_MOVES));
    // A stranger is told what is told of nothing; a decision never contradicts the state; a note is evidence; what would only be
    // repeated is never tried again.
    let never = [
        ("filed", "wrong_agent", ""),
        ("refused", "broken", ""),
        ("decided", "note", ""),
        ("event", "retry_scheduled_permanent", ""),
    ];
    let (never_rows, must): (Vec<Row>, Vec<Row>) = all.partition(|row| never.contains(row));
    (must, never_rows)
}

pub fn refusal(refusal: &Refusal) {
    reached(("refused", refusal_name(refusal), ""));
}

pub fn effect(effect: &Effect) {
    reached(("due", effect_name(effect), ""));
}

pub fn answer(answer: &Answer) {
    reached(("answered", answer_name(answer), ""));
    match answer {
        Answer::Denied(denial) => reached(("denied", denial_name(denial), "")),
        Answer::Answered(disposition) => {
            reached(("disposition", disposition_name(disposition), ""));
            if let Disposition::Filed(reason) = disposition {
                reached(("filed", filed_name(reason), ""));
            }
        }
        _ => {}
    }
}

/// What is told beside an end.
pub const ENDS: &[&str] = &["never_mutated", "cancel_too_late", "after_deadline", "not_healthy"];

fn end(ended: &Ended) {
    let Ended { never_mutated, cancel_too_late, after_deadline, not_healthy, .. } = ended;
    for (name, is) in ENDS.iter().zip([never_mutated, cancel_too_late, after_deadline, not_healthy]) {
        if *is {
            reached(("ended", name, ""));
        }
    }
}

/// What one event moved.
pub fn step(step: &Step<'_>) {
    let event = &step.recorded.event;
    reached(("event", event_name(event), ""));
    match event {
        Event::EvidenceFiled { evidence, .. } => reached(("evidence", body_name(&evidence.body), "")),
        Event::CancelRecorded { cause, .. } => reached(("cancelled", cause_name(cause), "")),
        Event::Decided { record, .. } => reached(("decided", decision_name(&record.kind), "")),
        Event::DeploymentEnded { deployment, state, ended } => {
            let from = step.before.and_then(|before| before.deployment(*deployment)).expect("it was here");
            reached(("deployment", deployment_name(&from.state), deployment_name(state)));
            end(ended);
        }
        _ => {}
    }
    for after in step.after.current.iter().chain(&step.after.queue) {
        let before = step.before.and_then(|before| before.deployment(after.id));
        moved(before, after);
    }
}

fn is_carried(state: StepState) -> bool {
    matches!(state, StepState::Carried { carry: CarryState::Due | CarryState::NotRead })
}

fn moved(before: Option<&Deployment>, after: &Deployment) {
    let from = before.map_or("", |before| deployment_name(&before.state));
    let to = deployment_name(&after.state);
    if from != to {
        reached(("deployment", from, to));
    }
    if let Some(waiting) = &after.waiting {
        reached(("waits", waiting_name(waiting), ""));
    }
    for (at, attempt) in after.attempts.iter().enumerate() {
        let was = before.and_then(|before| before.attempts.get(at));
        let (from, to) = (was.map_or("", |was| attempt_name(&was.state)), attempt_name(&attempt.state));
        if from != to {
            reached(("attempt", from, to));
        }
        for run in attempt.steps.iter().filter(|run| was.is_none() && is_carried(run.state)) {
            reached(("step", "", step_name(&run.state)));
        }
        for (run, was) in attempt.steps.iter().zip(was.map(|was| &was.steps).into_iter().flatten()) {
            if step_name(&was.state) != step_name(&run.state) {
                reached(("step", step_name(&was.state), step_name(&run.state)));
            }
        }
    }
}
