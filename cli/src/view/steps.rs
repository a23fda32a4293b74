//! The steps of one attempt.

use holdfast_common::text::one_line;
use holdfast_proto::v1::{self, StepEffect, StepState};

use super::{Canvas, stamp, word};
use crate::output::{Table, Terminal, Tone};

/// As a table. `live`: their attempt has a live lease, so what runs is known to run.
#[must_use]
pub(super) fn table(steps: &[v1::StepRun], live: bool, canvas: Canvas<'_>) -> String {
    let mut table =
        Table::new(&["step", "state", "effect", "resource", "permitted", "started", "ended", "revision", "note"]);
    for step in steps {
        let expected = |seen: bool, shown: Option<String>| match (shown, seen) {
            (Some(shown), _) => shown,
            (None, true) => stamp::NOT_OBSERVED.to_owned(),
            (None, false) => String::new(),
        };
        let (begun, ended) = expects(step);
        table.row_in_tones([
            (step.name.clone(), Tone::Plain),
            (state(step), tone(step.state)),
            (effect(step), Tone::Quiet),
            (step.resource.clone(), Tone::Quiet),
            (stamp::near(step.permitted_at.as_ref(), canvas).unwrap_or_default(), Tone::Plain),
            (expected(begun, stamp::seen_short(step.started.as_ref(), canvas)), Tone::Plain),
            (expected(ended, stamp::seen_short(step.ended.as_ref(), canvas)), Tone::Plain),
            (step.observed_revision.clone(), Tone::Plain),
            (note(step, live), Tone::Plain),
        ]);
    }
    // Indented by the caller.
    let width = canvas.terminal.width.map(|width| width.saturating_sub(2));
    table.draw(&Terminal { width, ..*canvas.terminal })
}

/// Whether a start and an end should have been seen by now, if all went as planned.
fn expects(step: &v1::StepRun) -> (bool, bool) {
    match StepState::try_from(step.state) {
        Ok(StepState::Permitted | StepState::Started) => (true, true),
        Ok(StepState::Applied | StepState::Failed | StepState::Stopped | StepState::Unknown) => (true, true),
        Ok(StepState::Pending | StepState::NotStarted | StepState::Carried | StepState::Unspecified) | Err(_) => {
            (false, false)
        }
    }
}

fn is_check(step: &v1::StepRun) -> bool {
    !step.looks_at.is_empty()
}

/// A check changes nothing, so nothing of it is applied: it passes.
fn state(step: &v1::StepRun) -> String {
    let passed = is_check(step) && step.state == StepState::Applied as i32;
    if passed { "passed".to_owned() } else { word::step_state(step.state) }
}

fn effect(step: &v1::StepRun) -> String {
    if is_check(step) { "check".to_owned() } else { word::effect(step.effect) }
}

fn note(step: &v1::StepRun, live: bool) -> String {
    let carried = step.state == StepState::Carried as i32;
    let changes = step.effect != StepEffect::None as i32;
    let parts = [
        step.exit.as_ref().map(word::exit).filter(|exit| !exit.is_empty() && !is_check(step)),
        (step.maybe_partial && changes).then(|| "may be applied in part".to_owned()),
        late(step, live).map(str::to_owned),
        carried.then(|| word::carry(step.carry)),
        Some(one_line(if step.detail.is_empty() { &step.looks_at } else { &step.detail }))
            .filter(|detail| !detail.is_empty()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn late(step: &v1::StepRun, live: bool) -> Option<&'static str> {
    match (step.over_deadline, step.ended.is_some(), live) {
        (false, ..) => None,
        (true, false, true) => Some("over its deadline, still running"),
        (true, false, false) => Some("over its deadline, no end was seen"),
        (true, true, _) => Some("ended after its deadline"),
    }
}

fn tone(state: i32) -> Tone {
    match StepState::try_from(state) {
        Ok(StepState::Pending | StepState::NotStarted | StepState::Carried | StepState::Unspecified) => Tone::Quiet,
        Ok(StepState::Permitted | StepState::Started) => Tone::Running,
        Ok(StepState::Applied) => Tone::Good,
        Ok(StepState::Failed | StepState::Stopped) => Tone::Bad,
        Ok(StepState::Unknown) | Err(_) => Tone::Hazard,
    }
}
