//! The checklist, in its order: the runner, then the target, then how the two relate, then what may be decided.

use holdfast_common::text::one_line;
use holdfast_proto::v1::{self, RunnerState};

use super::{Canvas, stamp, word};
use crate::output::{Table, Tone};

/// As text.
#[must_use]
pub fn reconciliation(list: &v1::Reconciliation, canvas: Canvas<'_>) -> String {
    let about = list.deployment.clone().unwrap_or_default();
    let label = one_line(&about.label);
    let strong = |text: &str| Tone::Strong.paint(text, canvas.terminal);
    let state = stamp::state_tone(about.state).paint(&word::deployment_state(about.state), canvas.terminal);
    let mut text = format!("{}  {state}  {}\n\n", strong(&label), one_line(&about.because));

    let runner = Tone::Strong.paint(&word::runner(list.runner), canvas.terminal);
    text.push_str(&format!("{}    {runner}{}\n", strong("1 Runner"), because(&list.runner_because)));

    text.push_str(&format!("{}\n", strong("2 Target")));
    if list.open_steps.is_empty() {
        text.push_str("    no step is open\n");
    }
    for step in &list.open_steps {
        text.push_str(&open_step(step, is_out(list.runner), canvas));
    }

    text.push_str(&format!("{}  {}\n\n", strong("3 Relation"), one_line(&list.relation)));
    text.push_str(&decisions(&list.options, canvas));
    text.push_str(&format!("\nshown up to evidence {}", list.evidence_sequence));
    if list.evidence_sequence > 0 {
        text.push_str(&format!(" (holdfast evidence {label})"));
    }
    if !list.who_can_act.is_empty() {
        text.push_str(&format!("; can act: {}", one_line(&list.who_can_act)));
    }
    text.push('\n');
    for line in next(list, &label, &one_line(&about.target)) {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

fn because(sentence: &str) -> String {
    if sentence.is_empty() { String::new() } else { format!(": {}", one_line(sentence)) }
}

/// What is read at a target while its runner may still be at work may be old a moment later.
fn open_step(step: &v1::OpenStep, runner_out: bool, canvas: Canvas<'_>) -> String {
    let state = Tone::Strong.paint(&word::operation(step.state), canvas.terminal);
    let revision = match step.observed_revision.as_str() {
        "" => String::new(),
        revision => format!(", revision {}", one_line(revision)),
    };
    let active = match step.active_operation.as_str() {
        "" => String::new(),
        operation => format!(", being changed by {}", one_line(operation)),
    };
    let provisional = if runner_out { "" } else { " (not final: the runner is not known to be out)" };
    format!(
        "    step {} at {} on {} under fence {}: {state}{revision}{active}{provisional}\n      {}\n{}",
        one_line(&step.step),
        one_line(&step.resource),
        one_line(&step.agent),
        one_line(&step.fence_text),
        one_line(&step.because),
        by_hand(step)
    )
}

/// What may be half done, and how a person looks.
fn by_hand(step: &v1::OpenStep) -> String {
    let half_done = (!step.half_done.is_empty()).then(|| format!("      half done?  {}\n", one_line(&step.half_done)));
    let look = step.look.iter().map(|look| format!("      look        {}\n", one_line(look)));
    half_done.into_iter().chain(look).collect()
}

fn is_out(runner: i32) -> bool {
    match RunnerState::try_from(runner) {
        Ok(RunnerState::Stopped | RunnerState::FencedOff | RunnerState::HostGone) => true,
        Ok(RunnerState::StillRunning | RunnerState::Unknown | RunnerState::Unspecified) | Err(_) => false,
    }
}

fn decisions(options: &[v1::DecisionOption], canvas: Canvas<'_>) -> String {
    let mut table = Table::new(&["decision", "allowed", "why not, or what follows"]);
    for option in options {
        let (answer, tone, text) =
            if option.allowed { ("yes", Tone::Good, &option.leads_to) } else { ("no", Tone::Quiet, &option.why_not) };
        table.row_in_tones([
            (word::decision(option.kind), Tone::Plain),
            (answer.to_owned(), tone),
            (text.clone(), Tone::Plain),
        ]);
    }
    table.draw(canvas.terminal)
}

fn next(list: &v1::Reconciliation, label: &str, target: &str) -> Vec<String> {
    let waits = list.deployment.as_ref().is_some_and(|about| about.state == v1::DeploymentState::Queued as i32);
    if waits {
        return vec![format!("holdfast target show {target}, for what it waits for and who can act")];
    }
    let mut lines = Vec::new();
    if !is_out(list.runner) && list.open_steps.iter().any(|step| step.can_fence_off) {
        lines.push(format!("holdfast reconcile fence-off {label} --reason TEXT --confirm {target}"));
    }
    if list.open_steps.iter().any(|step| step.can_inspect) {
        lines.push(format!("holdfast reconcile inspect {label}"));
    }
    lines.push(format!("holdfast reconcile decide {label} --as DECISION --reason TEXT --confirm {target}"));
    lines.push(format!(
        "holdfast reconcile attest {label} --runner ... --target-state ... --how TEXT --confirm {target}, for what nobody can \
         prove and a person knows"
    ));
    lines
}
