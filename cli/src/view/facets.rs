//! The five facets of a deployment: what was asked, who is in contact, what is known of the effect, what is reserved,
//! and what evidence there is. Never mixed: an intent is not an observation.

use holdfast_common::text::{bounded, one_line};
use holdfast_common::time::Millis;
use holdfast_proto::v1::{
    self, AttemptState, CarryState, DecisionKind, DeploymentState, OperationState, RunnerState, StepEffect, StepState,
};

use super::cancellation::asker;
use super::{Canvas, stamp, word};
use crate::output::time;

/// Heartbeats come a few times in a lease; one that did not come is a silence worth naming, with two seconds for the way
/// and for the age of the answer.
const HEARTBEATS_PER_LEASE: u64 = 3;

/// Name and lines of each.
pub(super) fn all(deployment: &v1::Deployment, canvas: Canvas<'_>) -> [(&'static str, Vec<String>); 5] {
    [
        ("Intent", intent(deployment, canvas)),
        ("Contact", contact(deployment, canvas)),
        ("Effect", effect(deployment, canvas)),
        ("Reservation", reservation(deployment, canvas)),
        ("Evidence", evidence(deployment)),
    ]
}

fn intent(deployment: &v1::Deployment, canvas: Canvas<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(summary) = &deployment.summary {
        let at = stamp::aged(summary.submitted_at.as_ref(), canvas).unwrap_or_default();
        lines.push(format!("{} asked for it {at}", one_line(&summary.submitted_by)));
    }
    lines.extend(deployment.rollback.iter().flat_map(goes_back));
    if !deployment.rolled_back_by.is_empty() {
        let by: Vec<String> = deployment.rolled_back_by.iter().map(|label| one_line(label)).collect();
        lines.push(format!("{} goes back over it", by.join(", ")));
    }
    let mut inputs: Vec<String> =
        deployment.inputs.iter().map(|(name, value)| format!("{}={}", one_line(name), one_line(value))).collect();
    inputs.sort();
    inputs.extend(deployment.order.map(|order| format!("order {order}")));
    if !inputs.is_empty() {
        lines.push(format!("with {}", inputs.join(" ")));
    }
    if let Some(cancel) = &deployment.cancellation {
        let at = stamp::near(cancel.requested_at.as_ref(), canvas).unwrap_or_default();
        lines.push(format!("{} asked for a stop {at}: {}", asker(cancel), one_line(&cancel.reason)));
    }
    lines
}

/// What a rollback undoes, why, and on top of what.
fn goes_back(of: &v1::RollbackOf) -> Vec<String> {
    let undoes: Vec<String> = of.undoes.iter().map(|label| one_line(label)).collect();
    let mut lines = vec![format!("to go back over {}: {}", undoes.join(", "), one_line(&of.reason))];
    if !of.attested.is_empty() {
        lines.push(format!("compatible on a person's word: {}", one_line(&of.attested)));
    }
    match v1::RollbackBase::try_from(of.base) {
        Ok(v1::RollbackBase::Unresolved) => lines.push(
            "on top of what is partial or unknown: until a change of its own is applied, only a decision ends it"
                .to_owned(),
        ),
        Ok(v1::RollbackBase::AtRest | v1::RollbackBase::Known | v1::RollbackBase::Unspecified) | Err(_) => {}
    }
    lines
}

/// The silence of a live lease, where it is longer than heartbeats leave.
pub(super) fn silence(attempt: &v1::Attempt) -> Option<Millis> {
    let silent = stamp::span(attempt.silent_for.as_ref())?;
    let lease = stamp::span(attempt.lease_ttl.as_ref())?;
    (silent.0.saturating_mul(HEARTBEATS_PER_LEASE) > lease.0.saturating_add(2_000 * HEARTBEATS_PER_LEASE))
        .then_some(silent)
}

fn contact(deployment: &v1::Deployment, canvas: Canvas<'_>) -> Vec<String> {
    let Some(last) = deployment.attempts.last() else { return vec!["no agent was asked yet".to_owned()] };
    let agent = one_line(&last.agent);
    let line = match (stamp::span(last.lease_ttl.as_ref()), stamp::span(last.silent_for.as_ref()), silence(last)) {
        (Some(lease), _, Some(silent)) => {
            format!("{agent} holds attempt {}, {} of a lease of {lease}", last.number, time::silent(silent))
        }
        (Some(lease), Some(silent), None) => {
            format!("{agent} holds attempt {}, heard {} ago, under a lease of {lease}", last.number, time::span(silent))
        }
        (Some(lease), None, None) => {
            format!("{agent} holds attempt {} under a lease of {lease}; it was not heard yet", last.number)
        }
        (None, _, _) => format!("no lease is live; the last was attempt {} on {agent}", last.number),
    };
    let mut lines = vec![line];
    lines.extend(away(last, canvas));
    lines.extend(tries(deployment));
    lines
}

/// A planned absence of its agent, while it lasts.
pub(super) fn away(attempt: &v1::Attempt, canvas: Canvas<'_>) -> Option<String> {
    let away = attempt.away.as_ref().filter(|away| !away.is_back)?;
    let (since, back_by) = (stamp::near(away.since.as_ref(), canvas)?, stamp::near(away.back_by.as_ref(), canvas)?);
    Some(format!("agent away by plan since {since}, back by {back_by}"))
}

/// How many tries were made, once there was more than one or none is left.
fn tries(deployment: &v1::Deployment) -> Option<String> {
    let (made, max) = (deployment.tries, deployment.max_tries);
    let told = made > 1 || (made > 0 && made >= max && max > 1);
    let state = deployment.summary.as_ref().map_or(0, |summary| summary.state);
    told.then(|| match (max.saturating_sub(made), goes_on_by_itself(state)) {
        (0, _) => format!("{made} tries of {max} are used up"),
        (left, true) => format!("{made} tries of {max} were made, {left} more may follow by themselves"),
        (_, false) => format!("{made} tries of {max} were made"),
    })
}

/// Whether another try may follow without anybody's doing.
fn goes_on_by_itself(state: i32) -> bool {
    match DeploymentState::try_from(state) {
        Ok(DeploymentState::Queued | DeploymentState::Active) => true,
        Ok(
            DeploymentState::Uncertain
            | DeploymentState::Held
            | DeploymentState::Succeeded
            | DeploymentState::Failed
            | DeploymentState::Cancelled
            | DeploymentState::Unspecified,
        )
        | Err(_) => false,
    }
}

const MAY_RUN: &str = "whether it is still at work, and what it left at the target";

/// What is known of one mutating step: its last word over all attempts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Last<'a> {
    Applied,
    /// It was applied, and somebody else has changed it since.
    Disturbed,
    /// Nobody can tell what it came to; `what` is known of it, `open` what is not.
    Open {
        agent: &'a str,
        what: &'static str,
        open: &'static str,
        /// The revision that its agent read after it; empty where none was.
        read: &'a str,
    },
    /// A recorded decision settled what it came to.
    Settled(Option<&'a v1::DecisionRecord>),
    MaybePartial,
    /// It ended so, and the decision that ended the deployment settled what is made of it.
    PartialSettled(Option<&'a v1::DecisionRecord>),
    Ended,
}

impl<'a> Last<'a> {
    /// `None` where the attempt did not begin the step: that says nothing about an attempt before it.
    fn of(deployment: &'a v1::Deployment, attempt: &'a v1::Attempt, step: &'a v1::StepRun) -> Option<Self> {
        let open = |what, open| {
            let settled = attempt.state == AttemptState::Resolved as i32;
            let of_it = || Last::Settled(decision_on(deployment, attempt));
            let read = &step.observed_revision;
            Some(if settled { of_it() } else { Last::Open { agent: &attempt.agent, what, open, read } })
        };
        let decided = deployment.ended_by_decision;
        match StepState::try_from(step.state) {
            Ok(StepState::Carried) if step.carry == CarryState::Differs as i32 => Some(Last::Disturbed),
            Ok(StepState::Carried) if step.carry == CarryState::AsLeft as i32 => Some(Last::Applied),
            Ok(StepState::Applied) => Some(Last::Applied),
            Ok(StepState::Permitted) => open("was permitted and may have begun", MAY_RUN),
            Ok(StepState::Started) => open("has begun", MAY_RUN),
            Ok(StepState::Unknown) => open("ended in a way that nobody can tell", "what it left at the target"),
            Err(_) => open("is in a state that this version does not know", MAY_RUN),
            Ok(StepState::Failed | StepState::Stopped) if step.maybe_partial && decided => {
                Some(Last::PartialSettled(decision_on(deployment, attempt)))
            }
            Ok(StepState::Failed | StepState::Stopped) if step.maybe_partial => Some(Last::MaybePartial),
            Ok(StepState::Failed | StepState::Stopped) => Some(Last::Ended),
            // Nobody looked: what is known is from the attempt before it.
            Ok(StepState::Carried | StepState::Pending | StepState::NotStarted | StepState::Unspecified) => None,
        }
    }
}

/// The decision that settled an attempt: the last one between its offer and the next attempt's.
fn decision_on<'a>(deployment: &'a v1::Deployment, attempt: &v1::Attempt) -> Option<&'a v1::DecisionRecord> {
    let next = deployment.attempts.iter().find(|other| other.number > attempt.number);
    let until = next.and_then(|next| stamp::wall(next.offered_at.as_ref()));
    let from = stamp::wall(attempt.offered_at.as_ref());
    let within = |record: &&v1::DecisionRecord| {
        let at = stamp::wall(record.at.as_ref());
        record.kind != DecisionKind::Note as i32 && at >= from && until.is_none_or(|until| at <= Some(until))
    };
    deployment.decisions.iter().rfind(within)
}

/// What a decision took the step for, and on what ground.
fn settled(record: Option<&v1::DecisionRecord>, canvas: Canvas<'_>) -> String {
    let Some(record) = record else { return "settled by a decision".to_owned() };
    let at = stamp::near(record.at.as_ref(), canvas).unwrap_or_default();
    let who = format!("({}, {at})", one_line(&record.by));
    let fenced_off = record.runner == RunnerState::FencedOff as i32;
    let taken_for = match OperationState::try_from(record.target) {
        Ok(OperationState::Applied) => "decided as applied",
        Ok(OperationState::NotApplied) => "decided as not applied",
        Ok(OperationState::Partial) => "decided as applied in part",
        Ok(OperationState::Applying) => "decided while it was still being applied",
        Ok(OperationState::Unknown | OperationState::Unspecified) | Err(_) => {
            let fenced_off = if fenced_off { ", the runner fenced off" } else { "" };
            let kind = word::decision(record.kind);
            return format!("nobody could tell what it left{fenced_off}; {kind} was decided {who}");
        }
    };
    let revision = match record.observed_revision.as_str() {
        "" => String::new(),
        revision => format!(", revision {}", one_line(revision)),
    };
    let ground = match (record.attested, record.trusted, record.evidence_ids.is_empty()) {
        (true, ..) => ", on a person's attestation",
        (false, true, _) => ", on its agent's own report",
        (false, false, false) if !record.observed_revision.is_empty() => ", on a reading",
        (false, false, false) => ", on what was filed as evidence",
        (false, false, true) => "",
    };
    let fenced_off = if fenced_off { ", the runner fenced off" } else { "" };
    format!("{taken_for}{revision}{ground}{fenced_off} {who}")
}

/// Each mutating step that was begun, in the order of the plan, with its last word.
fn last_words(deployment: &v1::Deployment) -> Vec<(&str, Last<'_>)> {
    let mut words: Vec<(&str, Last<'_>)> = Vec::new();
    for (attempt, step) in mutating(deployment) {
        let Some(last) = Last::of(deployment, attempt, step) else { continue };
        match words.iter_mut().find(|(name, _)| *name == step.name) {
            Some((_, before)) => *before = last,
            None => words.push((&step.name, last)),
        }
    }
    words
}

fn mutating(deployment: &v1::Deployment) -> impl Iterator<Item = (&v1::Attempt, &v1::StepRun)> {
    deployment
        .attempts
        .iter()
        .flat_map(|attempt| attempt.steps.iter().map(move |step| (attempt, step)))
        .filter(|(_, step)| step.effect != StepEffect::None as i32)
}

fn effect(deployment: &v1::Deployment, canvas: Canvas<'_>) -> Vec<String> {
    if !mutating(deployment).any(|(_, step)| step.permitted_at.is_some()) {
        let mut lines = vec!["no step was ever permitted to change anything".to_owned()];
        lines.extend(why_not_well(deployment));
        return lines;
    }
    let words = last_words(deployment);
    let mut lines = Vec::new();
    let mut list = |what: &str, wanted: Last<'_>| {
        let names: Vec<String> =
            words.iter().filter(|(_, last)| *last == wanted).map(|(name, _)| one_line(name)).collect();
        if !names.is_empty() {
            lines.push(format!("{what}: {}", names.join(", ")));
        }
    };
    list("observed as applied", Last::Applied);
    list("applied, and since changed by somebody else", Last::Disturbed);
    list("ended, and may be applied in part", Last::MaybePartial);
    list("ended without being applied", Last::Ended);
    for (name, last) in &words {
        let name = one_line(name);
        match last {
            Last::Open { agent, what, read: "", .. } => {
                lines.push(format!("step {name} on {} {what}; its effect is not known", one_line(agent)));
            }
            Last::Open { agent, what, read, .. } => lines.push(format!(
                "step {name} on {} {what}; its effect is not known, and revision {} was read after it",
                one_line(agent),
                one_line(read)
            )),
            Last::Settled(record) => lines.push(format!("{name}: {}", settled(*record, canvas))),
            Last::PartialSettled(record) => {
                lines.push(format!("{name}: ended, perhaps in part; {}", settled(*record, canvas)));
            }
            Last::Applied | Last::Disturbed | Last::MaybePartial | Last::Ended => {}
        }
    }
    if lines.is_empty() {
        lines.push("every permitted step was never started, and now never can be".to_owned());
    }
    lines.extend(why_not_well(deployment));
    lines.extend(health(deployment));
    lines
}

/// Longest text of a step's own words, in bytes.
const MAX_WHY: usize = 300;

/// The steps of the last attempt that ended otherwise than well. Checks tell that as [`health`].
pub(super) fn not_well(deployment: &v1::Deployment) -> impl Iterator<Item = &v1::StepRun> {
    let steps = deployment.attempts.last().map_or(&[][..], |attempt| &attempt.steps);
    steps.iter().filter(|step| step.looks_at.is_empty()).filter(|step| match StepState::try_from(step.state) {
        Ok(StepState::Failed | StepState::Stopped | StepState::Unknown) => true,
        Ok(
            StepState::Pending
            | StepState::Permitted
            | StepState::Started
            | StepState::Applied
            | StepState::NotStarted
            | StepState::Carried
            | StepState::Unspecified,
        )
        | Err(_) => false,
    })
}

/// What they say of it themselves.
fn why_not_well(deployment: &v1::Deployment) -> Vec<String> {
    let told = not_well(deployment).filter_map(|step| {
        let exit = step.exit.as_ref().map(word::exit).unwrap_or_default();
        let detail = bounded(&one_line(&step.detail), MAX_WHY);
        let why = if detail.is_empty() { exit } else { detail };
        (!why.is_empty()).then(|| format!("step {} {}: {why}", one_line(&step.name), word::step_state(step.state)))
    });
    told.collect()
}

/// What the last attempt saw of the health after the changes, check by check. What was not seen is said.
fn health(deployment: &v1::Deployment) -> Vec<String> {
    let Some(last) = deployment.attempts.last() else { return Vec::new() };
    let checks = last.steps.iter().filter(|step| !step.looks_at.is_empty());
    let runs = last.state == AttemptState::Running as i32;
    let told = checks.map(|step| {
        let (name, detail) = (one_line(&step.name), one_line(&step.detail));
        match StepState::try_from(step.state) {
            Ok(StepState::Applied) => format!("healthy by {name}: {detail}"),
            Ok(StepState::Failed) => format!("not healthy by {name}: {detail}"),
            Ok(StepState::Started) if runs => format!("health is being looked at by {name}"),
            Ok(StepState::Started) => format!("health was being looked at by {name} when contact was lost"),
            Ok(
                StepState::Pending
                | StepState::Permitted
                | StepState::Stopped
                | StepState::Unknown
                | StepState::NotStarted
                | StepState::Carried
                | StepState::Unspecified,
            )
            | Err(_) => format!("health was not seen by {name}"),
        }
    });
    told.collect()
}

fn reservation(deployment: &v1::Deployment, canvas: Canvas<'_>) -> Vec<String> {
    let target = deployment.summary.as_ref().map(|summary| one_line(&summary.target)).unwrap_or_default();
    let state = deployment.summary.as_ref().map_or(0, |summary| summary.state);
    let mut lines = Vec::new();
    if deployment.holds_target {
        let since = stamp::aged(deployment.reserved_at.as_ref(), canvas).unwrap_or_default();
        lines.push(format!("{target} is held for it since {since}"));
    }
    if !deployment.waiting.is_empty() {
        lines.push(format!("waits: {}", one_line(&deployment.waiting)));
    }
    if lines.is_empty() {
        lines.push(match DeploymentState::try_from(state) {
            Ok(DeploymentState::Succeeded | DeploymentState::Failed | DeploymentState::Cancelled) => {
                format!("it does not hold {target} any more")
            }
            Ok(DeploymentState::Queued) => format!("it does not hold {target} yet"),
            Ok(
                DeploymentState::Active
                | DeploymentState::Uncertain
                | DeploymentState::Held
                | DeploymentState::Unspecified,
            )
            | Err(_) => format!("whether it holds {target} was not told ({})", word::deployment_state(state)),
        });
    }
    lines
}

fn evidence(deployment: &v1::Deployment) -> Vec<String> {
    let label = deployment.summary.as_ref().map(|summary| one_line(&summary.label)).unwrap_or_default();
    vec![match deployment.evidence_count {
        0 => "none was filed".to_owned(),
        1 => format!("1 piece: holdfast evidence {label}"),
        more => format!("{more} pieces: holdfast evidence {label}"),
    }]
}

/// What is not known, for the block at the end of a watch.
pub(super) fn open_lines(deployment: &v1::Deployment) -> Vec<String> {
    let open = |(name, last)| match last {
        Last::Open { agent, open, .. } => Some(format!("of step {} on {}: {open}", one_line(name), one_line(agent))),
        Last::Disturbed => Some(format!("of step {}: what somebody else has left at its resource", one_line(name))),
        Last::Applied | Last::Settled(_) | Last::MaybePartial | Last::PartialSettled(_) | Last::Ended => None,
    };
    last_words(deployment).into_iter().filter_map(open).collect()
}

/// The lines of the effect, for the block at the end of a watch.
pub(super) fn effect_lines(deployment: &v1::Deployment, canvas: Canvas<'_>) -> Vec<String> {
    effect(deployment, canvas)
}
