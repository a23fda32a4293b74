//! One deployment, whole: headline, five facets, attempts with their steps, cancel, decisions.

use holdfast_common::text::one_line;
use holdfast_proto::v1;

use super::{Canvas, cancellation, facets, labelled_in, stamp, steps, word};
use crate::output::{Mark, Tone};

/// Columns of a facet's name.
const FACET: usize = 11;

/// As text.
#[must_use]
pub fn deployment(deployment: &v1::Deployment, canvas: Canvas<'_>) -> String {
    let mut text = headline(deployment, canvas);
    text.push('\n');
    for (name, lines) in facets::all(deployment, canvas) {
        text.push_str(&labelled_in(Tone::Strong, canvas.terminal, name, FACET, lines));
    }
    for attempt in &deployment.attempts {
        text.push('\n');
        text.push_str(&attempt_text(attempt, canvas));
    }
    if let Some(cancel) = &deployment.cancellation {
        text.push('\n');
        text.push_str(&cancellation(deployment, cancel, canvas));
    }
    if !deployment.decisions.is_empty() {
        text.push_str(&format!("\n{}\n", Tone::Strong.paint("Decisions", canvas.terminal)));
        deployment.decisions.iter().for_each(|record| text.push_str(&decision(record, canvas)));
    }
    text
}

fn headline(deployment: &v1::Deployment, canvas: Canvas<'_>) -> String {
    let Some(summary) = &deployment.summary else { return String::new() };
    let state = word::deployment_state(summary.state);
    let shown = stamp::state_tone(summary.state).paint(&state, canvas.terminal);
    let label = Tone::Strong.paint(&one_line(&summary.label), canvas.terminal);
    let because = match summary.because.as_str() {
        "" => String::new(),
        because => format!("  {}", one_line(because)),
    };
    format!("{label}  {shown}{because}\n{}\n", one_line(&summary.id))
}

fn attempt_text(attempt: &v1::Attempt, canvas: Canvas<'_>) -> String {
    let declined = match attempt.decline_reason.as_str() {
        "" => String::new(),
        reason => format!(": {}", one_line(reason)),
    };
    let offered = stamp::near(attempt.offered_at.as_ref(), canvas).unwrap_or_default();
    let heading = Tone::Strong.paint(&format!("Attempt {}", attempt.number), canvas.terminal);
    let state = word::attempt_state(attempt.state);
    let (agent, fence) = (one_line(&attempt.agent), one_line(&attempt.fence_text));
    let head = format!("{heading}  {state}{declined}  on {agent}  under fence {fence}  offered {offered}\n");
    let table: String = steps::table(&attempt.steps, canvas).lines().map(|line| format!("  {line}\n")).collect();
    head + &table
}

fn decision(record: &v1::DecisionRecord, canvas: Canvas<'_>) -> String {
    let at = stamp::near(record.at.as_ref(), canvas).unwrap_or_default();
    let ground = match (record.attested, record.trusted) {
        (true, _) => ", on a person's attestation",
        (false, true) => ", on its agent's own report",
        (false, false) => "",
    };
    format!(
        "  {} {at}  {}  by {}{ground}: {} (runner {}, target {}, evidence up to {})\n",
        Mark::Decided.symbol(canvas.terminal),
        word::decision(record.kind),
        one_line(&record.by),
        one_line(&record.reason),
        word::runner(record.runner),
        word::operation(record.target),
        record.evidence_sequence,
    )
}
