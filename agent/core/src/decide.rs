//! What follows for one attempt from one input.
//!
//! | phase | input | then |
//! | --- | --- | --- |
//! | ready | lease live, what is carried over was not read again | read it |
//! | ready | it is as it was left | report it; the next one, or go on |
//! | ready | it is otherwise, or could not be read | report it; attempt failed |
//! | ready | lease live, every step was carried over | attempt succeeded |
//! | ready | lease live, step has no effect | `Starting`, launch |
//! | ready | lease live, step puts an archive or an old release in place | examine it |
//! | ready | the archive is refused | the step failed and nothing of it began; attempt failed |
//! | ready | lease live, session up, step mutates | ask for a permit |
//! | ready | stop asked | attempt stopped |
//! | ready | superseded | over, without a word: nothing of it can start any more |
//! | asked | granted in this session, lease live, no stop | `Starting`, launch |
//! | asked | granted otherwise | tombstone |
//! | asked | denied: a stop or a deadline is on record | the same as a stop that was asked for |
//! | asked | denied otherwise | over; attempt stopped after a stop, else failed where the claim is still current |
//! | asked | new session, lease live | ask again: the coordinator runs all its checks again |
//! | asked | superseded | tombstone: the permit may be on record |
//! | starting, running | started | report it |
//! | starting, running | stop asked | stop the process |
//! | starting, running | its stop signal was sent | report that once; later it is no news |
//! | starting, running | nobody could send it yet | report why; the stop stays asked for |
//! | starting, running | lease ran out or superseded, step has no effect | stop the process |
//! | starting, running | lease ran out or superseded, step mutates | nothing: it runs to its end and is reported |
//! | starting, running | ended | report it; next step, or the attempt's end |
//! | after a restart | running, step has no effect | goes on for a moment, in which the lease can be renewed |
//! | after a restart | never started | tombstone |
//! | after a restart | gone without an exit record | ended, `unknown` |

use holdfast_common::id::{Revision, SessionId, StepName};
use holdfast_common::outcome::{AttemptEnd, Exit, FailureClass, StepEnd};
use holdfast_common::report::{PermitDenial, ReportBody, Reread};
use holdfast_common::time::Millis;

use crate::bugs::{self, Bug};
use crate::work::{Boot, Examination, LeaseCount, Phase, Stop, Work};

/// How long a step without effect that was found running after a restart may wait for its lease to be renewed.
pub const RESTART_GRACE: Millis = Millis::from_secs(10);

/// What happened to one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Time has passed, or the agent has just come up: see what may go on.
    Tick,
    /// A session began or was lost.
    Session(Option<SessionId>),
    /// The coordinator renewed the lease, counted from when the heartbeat was sent, margin taken off.
    Renewed {
        /// Live until then.
        until: Boot,
    },
    /// The coordinator said that the attempt is not current.
    Superseded,
    /// A permit came.
    Granted {
        /// For which step.
        step: StepName,
        /// In which session.
        session: SessionId,
    },
    /// A permit was denied.
    Denied {
        /// For which step.
        step: StepName,
        /// Why.
        denial: PermitDenial,
    },
    /// The coordinator asks for a stop.
    StopAsked,
    /// The stop signal of the step at hand was sent.
    StopActed {
        /// What was done, for people.
        detail: String,
    },
    /// The stop signal of the step at hand could not be sent yet.
    StopHeldUp {
        /// Why, for people.
        why: String,
    },
    /// The archive of the step at hand was looked at.
    Examined {
        /// Which step.
        step: StepName,
        /// Why it is refused, where it is.
        refused: Option<Refused>,
    },
    /// The resource of a carried step was read again, or could not be.
    Reread {
        /// Which step.
        step: StepName,
        /// What came of it.
        found: Reread,
    },
    /// The step's start record exists and its body runs.
    Started {
        /// Which step.
        step: StepName,
    },
    /// The step is over, as told by exit and resource.
    Ended {
        /// Which step.
        step: StepName,
        /// How.
        end: StepEnd,
        /// How its process ended.
        exit: Option<Exit>,
        /// Read back.
        observed: Option<Revision>,
        /// For people.
        detail: String,
    },
    /// After a restart: the supervisor found that the step's body had never begun.
    FoundNotStarted,
    /// After a restart: the shim lives.
    FoundRunning,
    /// A tombstone was asked for and stands: the step never began and never can.
    Tombstoned {
        /// Which step.
        step: StepName,
    },
}

/// Why a step can't be carried out, seen before anything of it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Whether another try could go better.
    pub class: FailureClass,
    /// For people.
    pub detail: String,
}

/// What to do, in order. What is to be durable is so before the action after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write the attempt's position and phase durably.
    Journal,
    /// Put a report into the durable outbox, then send it.
    Report(ReportBody),
    /// Look at the archive that the step would put in place. Changes nothing.
    Examine(StepName),
    /// Read the resource of a carried step again. Changes nothing.
    Reread(StepName),
    /// Ask for a permit in the live session.
    AskPermit(StepName),
    /// Launch the step under a shim.
    Launch(StepName),
    /// Stop the step's process group.
    Stop(StepName),
    /// Create the step's start record as "never started".
    Tombstone(StepName),
}

/// Decides and moves the attempt. `now` is CLOCK_BOOTTIME.
#[must_use]
pub fn decide(work: &mut Work, now: Boot, input: Input) -> Vec<Action> {
    match input {
        Input::Tick => go_on(work, now),
        Input::Session(session) => session_changed(work, now, session),
        Input::Renewed { until } => renewed(work, now, until),
        Input::Superseded => superseded(work),
        Input::Granted { step, session } => granted(work, now, &step, session),
        Input::Denied { step, denial } => denied(work, &step, denial),
        Input::StopAsked => stop_asked(work),
        Input::StopActed { detail } => stop_acted(work, detail),
        Input::StopHeldUp { why } => stop_held_up(work, why),
        Input::Examined { step, refused } => examined(work, now, step, refused),
        Input::Reread { step, found } => reread(work, now, step, found),
        Input::Started { step } => started(work, &step),
        Input::Ended { step, end, exit, observed, detail } => {
            ended(work, now, &step, end, ReportBody::StepEnded { step: step.clone(), end, exit, observed, detail })
        }
        Input::FoundNotStarted => found_not_started(work),
        Input::FoundRunning => found_running(work, now),
        Input::Tombstoned { step } => tombstoned(work, &step),
    }
}

/// Starts what may start, stops what may not go on.
fn go_on(work: &mut Work, now: Boot) -> Vec<Action> {
    let lives = work.lease_lives(now);
    if let Some(carry) = work.unread() {
        let step = carry.step.clone();
        return if lives && work.has_room && !work.is_reading { read_again(work, step) } else { Vec::new() };
    }
    let Some(step) = work.step().map(|step| step.name.clone()) else { return nothing_left(work, lives) };
    match work.phase {
        // It waits under its lease: what begins must be able to end on record.
        Phase::Ready if !work.has_room => Vec::new(),
        Phase::Ready if lives && !work.mutates() => launch(work, step),
        Phase::Ready if lives && work.is_unexamined() => examine(work, step),
        Phase::Ready if lives && bugs::on(Bug::PermitNotAsked) => launch(work, step),
        Phase::Ready if lives => ask(work, step),
        Phase::Starting | Phase::Running if !lives && !work.mutates() && !work.has_grace(now) => {
            vec![Action::Stop(step)]
        }
        Phase::Ready | Phase::Asked { .. } | Phase::Starting | Phase::Running | Phase::Over => Vec::new(),
    }
}

/// Every step was applied in earlier attempts: nothing is to be begun, and that is said.
fn nothing_left(work: &mut Work, lives: bool) -> Vec<Action> {
    if work.phase == Phase::Ready && lives { end(work, AttemptEnd::Succeeded) } else { Vec::new() }
}

fn launch(work: &mut Work, step: StepName) -> Vec<Action> {
    work.phase = Phase::Starting;
    vec![Action::Journal, Action::Launch(step)]
}

fn examine(work: &mut Work, step: StepName) -> Vec<Action> {
    if work.examined == Examination::UnderWay {
        return Vec::new();
    }
    work.examined = Examination::UnderWay;
    vec![Action::Examine(step)]
}

fn read_again(work: &mut Work, step: StepName) -> Vec<Action> {
    work.is_reading = true;
    vec![Action::Reread(step)]
}

/// Where somebody else was at work meanwhile, nothing of this attempt begins.
fn reread(work: &mut Work, now: Boot, step: StepName, found: Reread) -> Vec<Action> {
    let Some(carry) = work.unread().filter(|carry| work.is_reading && carry.step == step) else { return Vec::new() };
    let as_left = match &found {
        Reread::Read { reading } => reading.is_as_left(carry.left.as_ref()),
        Reread::Failed { .. } => false,
    };
    work.is_reading = false;
    let mut actions = vec![Action::Report(ReportBody::Reread { step, found })];
    if as_left {
        work.reread += 1;
        actions.extend(go_on(work, now));
    } else {
        actions.extend(end(work, AttemptEnd::Failed));
    }
    actions
}

/// What is refused here is refused before the permit: the coordinator then knows that nothing of the step began.
fn examined(work: &mut Work, now: Boot, step: StepName, refused: Option<Refused>) -> Vec<Action> {
    if work.phase != Phase::Ready || !is_at(work, &step) {
        return Vec::new();
    }
    let Some(Refused { class, detail }) = refused else {
        work.examined = Examination::Passed;
        return go_on(work, now);
    };
    let end = StepEnd::Failed { maybe_partial: false, class };
    let report = ReportBody::StepEnded { step, end, exit: None, observed: None, detail };
    let mut actions = vec![Action::Report(report)];
    actions.extend(self::end(work, AttemptEnd::Failed));
    actions
}

/// "Asked" is journaled first: from then on only a tombstone can say "not started".
fn ask(work: &mut Work, step: StepName) -> Vec<Action> {
    if work.session.is_none() {
        return Vec::new();
    }
    work.phase = Phase::Asked { session: work.session };
    vec![Action::Journal, Action::AskPermit(step)]
}

fn session_changed(work: &mut Work, now: Boot, session: Option<SessionId>) -> Vec<Action> {
    work.session = session;
    match work.phase {
        Phase::Asked { .. } => ask_again(work, now),
        Phase::Ready | Phase::Starting | Phase::Running | Phase::Over => go_on(work, now),
    }
}

fn ask_again(work: &mut Work, now: Boot) -> Vec<Action> {
    let stale = matches!(work.phase, Phase::Asked { session } if session != work.session);
    match work.step().map(|step| step.name.clone()) {
        Some(step) if stale && work.has_room && work.lease_lives(now) => ask(work, step),
        Some(_) | None => Vec::new(),
    }
}

fn renewed(work: &mut Work, now: Boot, until: Boot) -> Vec<Action> {
    if work.lease != LeaseCount::Superseded {
        work.lease = LeaseCount::Until(until);
    }
    match work.phase {
        Phase::Asked { .. } => ask_again(work, now),
        Phase::Ready | Phase::Starting | Phase::Running | Phase::Over => go_on(work, now),
    }
}

fn superseded(work: &mut Work) -> Vec<Action> {
    work.lease = LeaseCount::Superseded;
    let Some(step) = work.step().map(|step| step.name.clone()) else {
        return if work.phase == Phase::Ready { over(work, Vec::new()) } else { Vec::new() };
    };
    match work.phase {
        Phase::Ready => over(work, Vec::new()),
        Phase::Asked { .. } => vec![Action::Tombstone(step)],
        Phase::Starting | Phase::Running if !work.mutates() => vec![Action::Stop(step)],
        Phase::Starting | Phase::Running | Phase::Over => Vec::new(),
    }
}

fn granted(work: &mut Work, now: Boot, step: &StepName, session: SessionId) -> Vec<Action> {
    let Phase::Asked { session: asked } = work.phase else { return Vec::new() };
    if !is_at(work, step) {
        return Vec::new();
    }
    let lives = work.lease_lives(now) || bugs::on(Bug::PermitUsedAfterLease);
    let usable = lives
        && asked == Some(session)
        && work.session == Some(session)
        && work.stop == Stop::NotAsked
        && work.has_room;
    if usable { launch(work, step.clone()) } else { vec![Action::Tombstone(step.clone())] }
}

fn denied(work: &mut Work, step: &StepName, denial: PermitDenial) -> Vec<Action> {
    if !matches!(work.phase, Phase::Asked { .. }) || !is_at(work, step) {
        return Vec::new();
    }
    match denial {
        PermitDenial::CancelRecorded | PermitDenial::DeadlinePassed if work.stop == Stop::NotAsked => {
            work.phase = Phase::Ready;
            stop_asked(work)
        }
        PermitDenial::CancelRecorded | PermitDenial::DeadlinePassed => end(work, AttemptEnd::Stopped),
        PermitDenial::NotYours | PermitDenial::NotCurrent | PermitDenial::LeaseExpired => {
            work.lease = LeaseCount::Superseded;
            vec![Action::Tombstone(step.clone())]
        }
        PermitDenial::OutOfOrder
        | PermitDenial::NoSuchMutation
        | PermitDenial::PlanDiffers
        | PermitDenial::PermitOpen
        | PermitDenial::CarryUnread => end(work, AttemptEnd::Failed),
    }
}

fn stop_asked(work: &mut Work) -> Vec<Action> {
    if work.stop != Stop::NotAsked {
        return Vec::new();
    }
    work.stop = Stop::Asked;
    let received = Action::Report(ReportBody::cancel_received());
    match (&work.phase, work.step().map(|step| step.name.clone())) {
        (Phase::Starting | Phase::Running, Some(step)) => vec![Action::Journal, received, Action::Stop(step)],
        // The answer to the permit decides: a denial ends the attempt, a grant is met with a tombstone.
        (Phase::Asked { .. }, _) => vec![Action::Journal, received, nothing_to_stop(work)],
        (Phase::Ready, _) => {
            let mut actions = vec![received, nothing_to_stop(work)];
            actions.extend(end(work, AttemptEnd::Stopped));
            actions
        }
        (Phase::Over | Phase::Starting | Phase::Running, _) => vec![received],
    }
}

/// A step is also stopped because its lease ran out: that answers no request. Whoever asked for the signal and whoever saw
/// the end it led to both tell of it: the first is reported.
fn stop_acted(work: &mut Work, detail: String) -> Vec<Action> {
    match work.stop {
        Stop::Asked => {
            work.stop = Stop::Acted;
            vec![Action::Journal, Action::Report(ReportBody::CancelActed { detail })]
        }
        Stop::Acted | Stop::NotAsked => Vec::new(),
    }
}

/// Told, and nothing is claimed by it: whoever acts later is told then. A stop that nobody asked for has nobody to be told.
fn stop_held_up(work: &Work, held_up: String) -> Vec<Action> {
    match work.stop {
        Stop::Asked => vec![Action::Report(ReportBody::CancelReceived { held_up })],
        Stop::Acted | Stop::NotAsked => Vec::new(),
    }
}

fn nothing_to_stop(work: &mut Work) -> Action {
    work.stop = Stop::Acted;
    Action::Report(ReportBody::CancelActed { detail: "no step was running".to_owned() })
}

fn started(work: &mut Work, step: &StepName) -> Vec<Action> {
    if work.phase != Phase::Starting || !is_at(work, step) {
        return Vec::new();
    }
    work.phase = Phase::Running;
    vec![Action::Journal, Action::Report(ReportBody::StepStarted { step: step.clone() })]
}

fn ended(work: &mut Work, now: Boot, step: &StepName, end: StepEnd, report: ReportBody) -> Vec<Action> {
    if !work.may_run() || !is_at(work, step) {
        return Vec::new();
    }
    let mut actions = vec![Action::Report(report)];
    match end {
        StepEnd::Applied => actions.extend(next(work, now)),
        StepEnd::Failed { .. } => actions.extend(self::end(work, AttemptEnd::Failed)),
        StepEnd::Stopped { .. } => actions.extend(self::end(work, AttemptEnd::Stopped)),
        // Whoever can't tell how it ended has no authority left to say more.
        StepEnd::Unknown | StepEnd::NotStarted => actions = over(work, actions),
    }
    actions
}

/// On to the next step, in one breath with the report of this one.
fn next(work: &mut Work, now: Boot) -> Vec<Action> {
    work.at += 1;
    work.examined = Examination::Due;
    work.skip_carried();
    work.phase = Phase::Ready;
    match (work.step(), work.stop) {
        (None, _) => end(work, AttemptEnd::Succeeded),
        (Some(_), Stop::Asked | Stop::Acted) => end(work, AttemptEnd::Stopped),
        (Some(_), Stop::NotAsked) if work.lease == LeaseCount::Superseded => over(work, Vec::new()),
        (Some(_), Stop::NotAsked) => {
            let mut actions = go_on(work, now);
            if actions.first() != Some(&Action::Journal) {
                actions.insert(0, Action::Journal);
            }
            actions
        }
    }
}

fn found_not_started(work: &mut Work) -> Vec<Action> {
    match work.step().map(|step| step.name.clone()) {
        Some(step) if work.may_run() => vec![Action::Tombstone(step)],
        Some(_) | None => Vec::new(),
    }
}

/// The count of the lease was lost with the agent's last life, which is no news of the lease: a step without effect goes on
/// until the coordinator can have answered.
fn found_running(work: &mut Work, now: Boot) -> Vec<Action> {
    work.grace = Some(Boot(now.0.saturating_add(RESTART_GRACE.0)));
    let Some(step) = work.step().map(|step| step.name.clone()) else { return Vec::new() };
    let mut actions = started(work, &step);
    match work.stop {
        // The signal may be lost with the agent that sent it: asking again changes nothing where it was not.
        Stop::Asked | Stop::Acted => actions.push(Action::Stop(step)),
        Stop::NotAsked => actions.extend(go_on(work, now)),
    }
    actions
}

/// A step without a permit has no tombstone to report; a mutating one closes its permit with it. The lease is left to lapse:
/// the coordinator then knows that nothing began, and another attempt may follow.
fn tombstoned(work: &mut Work, step: &StepName) -> Vec<Action> {
    if matches!(work.phase, Phase::Ready | Phase::Over) || !is_at(work, step) {
        return Vec::new();
    }
    let mut actions = Vec::new();
    if work.mutates() {
        actions.push(Action::Report(ReportBody::StepEnded {
            step: step.clone(),
            end: StepEnd::NotStarted,
            exit: None,
            observed: None,
            detail: "a tombstone stands in the place of its start record".to_owned(),
        }));
    }
    match work.stop {
        Stop::Asked | Stop::Acted => {
            actions.extend(end(work, AttemptEnd::Stopped));
            actions
        }
        Stop::NotAsked => over(work, actions),
    }
}

fn end(work: &mut Work, end: AttemptEnd) -> Vec<Action> {
    let report = Action::Report(ReportBody::AttemptEnded { end });
    over(work, vec![report])
}

/// The phase is journaled with the last reports, in one write.
fn over(work: &mut Work, mut actions: Vec<Action>) -> Vec<Action> {
    work.phase = Phase::Over;
    actions.push(Action::Journal);
    actions
}

fn is_at(work: &Work, step: &StepName) -> bool {
    work.step().is_some_and(|at| &at.name == step)
}

/// How a step is told whose process is gone and left no exit record.
#[must_use]
pub fn gone() -> StepEnd {
    if bugs::on(Bug::GoneIsFailed) {
        return StepEnd::Failed { maybe_partial: false, class: FailureClass::Infrastructure };
    }
    StepEnd::Unknown
}
