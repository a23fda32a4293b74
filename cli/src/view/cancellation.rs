//! A cancel: a timeline of five stages, never an outcome.

use holdfast_common::text::one_line;
use holdfast_proto::v1::{self, DeploymentState};

use super::{Canvas, stamp, word};
use crate::output::{Mark, Tone};

/// One stage, and when it was seen; `None` where it was not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its word.
    pub name: &'static str,
    /// How it comes to be known.
    pub mark: Mark,
    /// When, as text.
    pub at: Option<String>,
    /// Why it was not seen yet, where somebody said so.
    pub held_up: Option<String>,
}

/// The five, in order.
#[must_use]
pub fn stages(cancel: &v1::Cancellation, canvas: Canvas<'_>) -> [Stage; 5] {
    let stage = |name, mark, at| Stage { name, mark, at, held_up: None };
    let acted = stage("acted", Mark::Reported, stamp::seen(cancel.acted.as_ref(), canvas));
    let cause = if cancel.cause == "timeout" { Mark::Deadline } else { Mark::Asked };
    [
        stage("requested", cause, stamp::near(cancel.requested_at.as_ref(), canvas)),
        stage("recorded", Mark::Decided, stamp::near(cancel.recorded_at.as_ref(), canvas)),
        stage("delivered", Mark::Reported, stamp::seen(cancel.delivered.as_ref(), canvas)),
        Stage { held_up: held_up(cancel, canvas).filter(|_| acted.at.is_none()), ..acted },
        stage("observed", Mark::Reported, stamp::seen(cancel.observed.as_ref(), canvas)),
    ]
}

fn held_up(cancel: &v1::Cancellation, canvas: Canvas<'_>) -> Option<String> {
    let at = stamp::seen(cancel.held_up_at.as_ref(), canvas)?;
    Some(format!("as told {at}: {}", one_line(&cancel.held_up)))
}

impl Stage {
    /// On one line.
    #[must_use]
    pub fn line(&self, canvas: Canvas<'_>) -> String {
        let at = self.at.as_deref().unwrap_or(stamp::NOT_OBSERVED);
        let held_up = self.held_up.as_deref().map(|why| format!(", {why}")).unwrap_or_default();
        format!("  {} {:<10} {at}{held_up}", self.mark.symbol(canvas.terminal), self.name)
    }
}

/// As text: who asked, the five stages, and how the deployment stands.
#[must_use]
pub fn cancellation(deployment: &v1::Deployment, cancel: &v1::Cancellation, canvas: Canvas<'_>) -> String {
    let head = Tone::Strong.paint("Cancel", canvas.terminal);
    let mut text = format!("{head}  asked for by {}: {}\n", asker(cancel), one_line(&cancel.reason));
    for stage in stages(cancel, canvas) {
        text.push_str(&stage.line(canvas));
        text.push('\n');
    }
    text.push_str(&format!("  {}\n", standing(deployment)));
    text
}

/// Who or what asked.
#[must_use]
pub(super) fn asker(cancel: &v1::Cancellation) -> String {
    match (is_deadline(cancel), cancel.by.as_str()) {
        (false, by) => one_line(by),
        (true, "queue") => "the end of its time in the queue".to_owned(),
        (true, "deployment") => "its own deadline".to_owned(),
        (true, step) => format!("the deadline of {}", one_line(step)),
    }
}

/// Whether a deadline asked, and no person.
#[must_use]
pub(super) fn is_deadline(cancel: &v1::Cancellation) -> bool {
    cancel.cause == "timeout"
}

/// What the request has come to.
fn standing(deployment: &v1::Deployment) -> String {
    let state = deployment.summary.as_ref().map_or(0, |summary| summary.state);
    let deadline = deployment.cancellation.as_ref().is_some_and(is_deadline);
    match DeploymentState::try_from(state) {
        Ok(DeploymentState::Succeeded) if deadline => {
            "it succeeded after its deadline: the stop came too late".to_owned()
        }
        Ok(DeploymentState::Failed) if deployment.not_healthy => "it ended as applied, not healthy".to_owned(),
        Ok(DeploymentState::Active) if deadline => {
            "a deadline is no outcome: still running, no end was seen".to_owned()
        }
        Ok(DeploymentState::Succeeded) => "the cancel came too late: it succeeded".to_owned(),
        Ok(DeploymentState::Cancelled) if deployment.never_mutated => {
            "cancelled, and it never changed anything".to_owned()
        }
        Ok(DeploymentState::Cancelled) => "cancelled; what was applied before stays applied".to_owned(),
        Ok(DeploymentState::Failed) => "it ended as failed".to_owned(),
        Ok(DeploymentState::Uncertain) => "uncertain: whether anything stopped is not known".to_owned(),
        Ok(DeploymentState::Held) => "held: it has ended, and what it left must be looked at".to_owned(),
        Ok(DeploymentState::Queued | DeploymentState::Active) => "a request is no outcome: it has not ended".to_owned(),
        Ok(DeploymentState::Unspecified) | Err(_) => format!("it is {}", word::deployment_state(state)),
    }
}
