//! What is known and not known of a deployment, in the shape in which refusals tell it.

use holdfast_common::text::one_line;
use holdfast_proto::v1::{self, DeploymentState, ExitKind};

use super::cancellation::is_deadline;
use super::{Canvas, facets, labelled, stamp, word};
use crate::output::Tone;

const WIDTH: usize = 11;

/// As text.
#[must_use]
pub fn summary(deployment: &v1::Deployment, canvas: Canvas<'_>) -> String {
    let Some(about) = &deployment.summary else { return String::new() };
    let label = one_line(&about.label);
    let state = stamp::state_tone(about.state).paint(&word::deployment_state(about.state), canvas.terminal);
    let because = match about.because.as_str() {
        "" => String::new(),
        because => format!(": {}", one_line(because)),
    };
    let mut text = format!("{} {} {state}{because}\n", Tone::Strong.paint(&label, canvas.terminal), verb(about.state));
    text.push_str(&labelled("  known", WIDTH, known(deployment, canvas)));
    text.push_str(&labelled("  not known", WIDTH, facets::open_lines(deployment)));
    text.push_str(&labelled("  so", WIDTH, so(deployment, about)));
    text.push_str(&labelled("  next", WIDTH, next(deployment, about)));
    text
}

/// What stands before the word of a state in a sentence.
fn verb(state: i32) -> &'static str {
    match DeploymentState::try_from(state) {
        Ok(DeploymentState::Succeeded | DeploymentState::Failed) => "has",
        Ok(DeploymentState::Cancelled) => "was",
        Ok(
            DeploymentState::Queued
            | DeploymentState::Active
            | DeploymentState::Uncertain
            | DeploymentState::Held
            | DeploymentState::Unspecified,
        )
        | Err(_) => "is",
    }
}

fn known(deployment: &v1::Deployment, canvas: Canvas<'_>) -> Vec<String> {
    let mut lines = facets::effect_lines(deployment, canvas);
    if deployment.ended_by_decision {
        lines.push("a decision ended it; who took it and why is in its history".to_owned());
    }
    let by_deadline = deployment.cancellation.as_ref().is_some_and(is_deadline);
    if deployment.after_deadline {
        lines.push("it succeeded after a deadline of it had passed".to_owned());
    }
    if deployment.cancel_too_late && !by_deadline {
        lines.push("a cancel was asked for and came too late".to_owned());
    }
    if deployment.not_healthy {
        lines.push("every change was applied, and a check after them failed: it is not taken back".to_owned());
    }
    lines
}

fn so(deployment: &v1::Deployment, about: &v1::DeploymentSummary) -> Vec<String> {
    let target = one_line(&about.target);
    if deployment.holds_target {
        return vec![format!("{target} stays held for it; nothing else starts there")];
    }
    if deployment.waiting.is_empty() {
        Vec::new()
    } else {
        vec![format!("it waits: {}", one_line(&deployment.waiting))]
    }
}

/// Whether a process of a step that did not end well ran, so that it may have written why.
fn has_output(deployment: &v1::Deployment) -> bool {
    facets::not_well(deployment).any(|step| {
        step.exit.as_ref().is_some_and(|exit| match ExitKind::try_from(exit.kind) {
            Ok(ExitKind::Exited | ExitKind::Signaled | ExitKind::OutOfMemory) => true,
            Ok(ExitKind::NotSpawned | ExitKind::Unknown | ExitKind::Unspecified) | Err(_) => false,
        })
    })
}

fn next(deployment: &v1::Deployment, about: &v1::DeploymentSummary) -> Vec<String> {
    let label = one_line(&about.label);
    match DeploymentState::try_from(about.state) {
        Ok(DeploymentState::Uncertain | DeploymentState::Held) => vec![format!("holdfast reconcile show {label}")],
        Ok(DeploymentState::Failed) if deployment.not_healthy => {
            let target = one_line(&about.target);
            vec![
                format!("holdfast show {label}"),
                format!("holdfast rollback {target}, which lists where it can go back to, and why not elsewhere"),
            ]
        }
        Ok(DeploymentState::Failed) if has_output(deployment) => vec![format!("holdfast logs {label}")],
        Ok(DeploymentState::Failed) => vec![format!("holdfast show {label}")],
        Ok(DeploymentState::Queued | DeploymentState::Active) => vec![format!("holdfast watch {label}")],
        Ok(DeploymentState::Succeeded | DeploymentState::Cancelled | DeploymentState::Unspecified) | Err(_) => {
            Vec::new()
        }
    }
}
