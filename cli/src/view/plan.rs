//! A plan: what would run, on what, and where it would stand if contact were lost.

use holdfast_common::text::one_line;
use holdfast_proto::v1::{self, PinHolds, PlanEntry, RevisionKnowledge};

use super::{Canvas, labelled, labelled_in, stamp, target, word};
use crate::output::{Table, Tone};

const WIDTH: usize = 9;

/// As text.
#[must_use]
pub fn plan(plan: &v1::Plan, canvas: Canvas<'_>) -> String {
    let strong = |text: &str| Tone::Strong.paint(text, canvas.terminal);
    let mut text = format!("{}\n", headline(plan, canvas));
    text.push_str(&facts(plan, canvas));
    text.push_str(&format!("\n{}", steps(plan).draw(canvas.terminal)));
    if !plan.resources.is_empty() {
        text.push_str(&format!("\n{}", resources(plan, canvas).draw(canvas.terminal)));
    }
    text.push_str(&format!("\n{}\n", strong("If contact is lost during")));
    let width = plan.steps.iter().map(|step| one_line(&step.name).chars().count()).max().unwrap_or_default() + 2;
    for step in &plan.steps {
        let clauses = step.if_contact_is_lost.split("; ").map(one_line);
        text.push_str(&labelled(&format!("  {}", one_line(&step.name)), width, clauses));
    }
    if !plan.not_undone.is_empty() {
        text.push_str(&format!("\n{}\n", strong("A rollback would not undo")));
        for line in &plan.not_undone {
            text.push_str(&format!("  {}\n", one_line(line)));
        }
    }
    text
}

/// What would become of it now.
fn headline(plan: &v1::Plan, canvas: Canvas<'_>) -> String {
    let (target, label) = (one_line(&plan.target), one_line(&plan.label));
    let because = one_line(&plan.entry_because);
    let strong = |text: &str| Tone::Strong.paint(text, canvas.terminal);
    let tone = |tone: Tone, text: &str| tone.paint(text, canvas.terminal);
    match PlanEntry::try_from(plan.entry) {
        Ok(PlanEntry::Begins) => {
            format!("{} would be {label} and {}", strong(&target), tone(Tone::Good, "begin at once"))
        }
        Ok(PlanEntry::Waits) => {
            format!("{} would be {label} and {}: {because}", strong(&target), tone(Tone::Running, "wait"))
        }
        Ok(PlanEntry::Refused) => {
            let code = one_line(&plan.refused_code);
            format!("{} would {} ({code}): {because}", strong(&target), tone(Tone::Bad, "be refused"))
        }
        Ok(PlanEntry::Unspecified) | Err(_) => {
            format!("{}: what would become of it now is not told to this version", strong(&target))
        }
    }
}

fn facts(plan: &v1::Plan, canvas: Canvas<'_>) -> String {
    let mut text = String::new();
    let mut fact = |label: &str, lines: Vec<String>| {
        let label = format!("  {label}");
        text.push_str(&labelled_in(Tone::Quiet, canvas.terminal, &label, WIDTH + 2, lines));
    };
    let mut inputs: Vec<String> =
        plan.inputs.iter().map(|(name, value)| format!("{}={}", one_line(name), one_line(value))).collect();
    inputs.sort();
    fact("plan", vec![one_line(&plan.plan_digest)]);
    if !inputs.is_empty() {
        fact("with", vec![inputs.join(" ")]);
    }
    fact("order", plan.order.iter().map(u64::to_string).collect());
    let lease = stamp::span(plan.lease_ttl.as_ref()).map(|ttl| format!("{ttl}, ")).unwrap_or_default();
    let tries = if plan.max_attempts == 1 { "try" } else { "tries" };
    fact("lease", vec![format!("{lease}{} {tries}", plan.max_attempts)]);
    fact("policy", vec![one_line(&plan.policy)]);
    fact("held by", plan.holder.iter().map(summary).collect());
    fact("on hold", plan.hold.iter().map(|hold| target::on_hold(hold, canvas)).collect());
    fact("before it", plan.before.iter().map(summary).collect());
    fact("ends", plan.supersedes.iter().map(|one| format!("{}, superseded by it", one_line(&one.label))).collect());
    fact("agents", agents(plan));
    text
}

fn summary(one: &v1::DeploymentSummary) -> String {
    let because = if one.because.is_empty() { String::new() } else { format!(": {}", one_line(&one.because)) };
    format!("{} ({}){because}", one_line(&one.label), word::deployment_state(one.state))
}

fn agents(plan: &v1::Plan) -> Vec<String> {
    if plan.agents.is_empty() {
        return vec!["none has the labels that the target asks for".to_owned()];
    }
    plan.agents.iter().map(agent).collect()
}

/// The coordinator does not know what a host's own policy allows: that is asked at the offer.
fn agent(agent: &v1::PlannedAgent) -> String {
    let name = one_line(&agent.agent);
    match (agent.why_not.as_str(), agent.declined.as_str()) {
        ("", "") => format!(
            "{name} can run it now, as far as its coordinator knows; the host's own policy is asked at the offer"
        ),
        ("", declined) => {
            format!("{name} could run it now, if its host's policy lets it: it declined {}", one_line(declined))
        }
        (why_not, _) => format!("{name} can't: {}", one_line(why_not)),
    }
}

fn steps(plan: &v1::Plan) -> Table {
    let mut table = Table::new(&["#", "step", "effect", "by", "on", "retry", "timeout", "wanted", "expects"]);
    for (at, step) in plan.steps.iter().enumerate() {
        table.row([
            (at + 1).to_string(),
            one_line(&step.name),
            word::effect(step.effect),
            one_line(&step.adapter),
            one_line(&step.resource),
            word::retry(step.retry),
            stamp::span(step.timeout.as_ref()).map(|span| span.to_string()).unwrap_or_default(),
            one_line(&step.wanted_revision),
            pin(step),
        ]);
    }
    table
}

fn pin(step: &v1::PlannedStep) -> String {
    let expected = one_line(&step.expected_revision);
    match PinHolds::try_from(step.pin) {
        Ok(PinHolds::Unspecified) if expected.is_empty() => String::new(),
        Ok(PinHolds::Yes) => format!("{expected}, as is on record"),
        Ok(PinHolds::No) => format!("{expected}, another is on record"),
        Ok(PinHolds::NotRecorded) => format!("{expected}, judged at the resource"),
        Ok(PinHolds::AfterEarlierStep) => format!("{expected}, after an earlier step"),
        Ok(PinHolds::Unspecified) | Err(_) => format!("{expected}, whether it holds is not told to this version"),
    }
}

fn resources(plan: &v1::Plan, canvas: Canvas<'_>) -> Table {
    let mut table = Table::new(&["resource", "now", "wanted", "recorded", "from"]);
    for one in &plan.resources {
        let now = match RevisionKnowledge::try_from(one.knowledge) {
            Ok(RevisionKnowledge::Recorded) if one.revision.is_empty() => "none told".to_owned(),
            Ok(RevisionKnowledge::Recorded) => one_line(&one.revision),
            Ok(RevisionKnowledge::Never) => "never read".to_owned(),
            Ok(RevisionKnowledge::Unknown | RevisionKnowledge::Unspecified) | Err(_) => "unknown".to_owned(),
        };
        let wanted = if one.wanted_revision.is_empty() { "not told" } else { &one.wanted_revision };
        table.row([
            one_line(&one.resource),
            now,
            one_line(wanted),
            stamp::aged(one.recorded_at.as_ref(), canvas).unwrap_or_default(),
            one_line(&one.source),
        ]);
    }
    table
}
