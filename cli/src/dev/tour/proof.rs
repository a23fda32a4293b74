//! Fence off, inspect, decide.

use holdfast_common::code::Code;
use holdfast_proto::v1;

use super::cut::Lost;
use super::story::{SWITCH, Story, TARGET, step_of, untrue};
use super::words;
use crate::output::{Mark, Table};

pub(super) async fn decide(story: &mut Story<'_>, lost: &Lost) -> anyhow::Result<()> {
    story.narrator.chapter(4, "Fence off, inspect, decide")?;
    let checklist = story.api.reconciliation(&lost.label).await?;
    show(story, &checklist)?;
    let open = allowed(&checklist);
    let early = [v1::DecisionKind::Retry, v1::DecisionKind::AcceptSucceeded, v1::DecisionKind::AcceptFailed];
    let none = early.iter().all(|kind| !open.contains(kind));
    story.check(none, "without proof nothing that settles it is allowed", named(&open))?;
    too_early(story, lost, checklist.evidence_sequence).await?;
    fence_off(story, lost).await?;
    inspect(story, lost).await?;
    let checklist = story.api.reconciliation(&lost.label).await?;
    show(story, &checklist)?;
    let runner = checklist.runner();
    story.check(runner == v1::RunnerState::FencedOff, "the runner is fenced off", words::runner(runner))?;
    let open = allowed(&checklist);
    story.check(open.contains(&v1::DecisionKind::Retry), "with this proof retry is allowed", named(&open))?;
    retry(story, lost, checklist.evidence_sequence).await
}

/// Like `holdfast reconcile show`.
fn show(story: &mut Story<'_>, checklist: &v1::Reconciliation) -> anyhow::Result<()> {
    let runner = words::runner(checklist.runner());
    story.narrator.detail("1 runner", &format!("{runner}: {}", checklist.runner_because))?;
    for step in &checklist.open_steps {
        let state = words::operation(step.state());
        story.narrator.detail("2 target", &format!("{} {state}: {}", step.step, step.because))?;
    }
    story.narrator.detail("3 relation", &checklist.relation)?;
    let mut table = Table::new(&["decision", "allowed", "why not, or what follows"]);
    for option in &checklist.options {
        let (allowed, because) = if option.allowed { ("yes", &option.leads_to) } else { ("no", &option.why_not) };
        table.row([words::decision(option.kind()).as_str(), allowed, because]);
    }
    Ok(story.narrator.table(&table)?)
}

fn allowed(checklist: &v1::Reconciliation) -> Vec<v1::DecisionKind> {
    checklist.options.iter().filter(|option| option.allowed).map(v1::DecisionOption::kind).collect()
}

fn named(kinds: &[v1::DecisionKind]) -> String {
    let names: Vec<String> = kinds.iter().map(|kind| words::decision(*kind)).collect();
    format!("allowed: {}", names.join(", "))
}

/// Who tries all the same is told why not.
async fn too_early(story: &mut Story<'_>, lost: &Lost, shown: u64) -> anyhow::Result<()> {
    story.narrator.fact(Some(Mark::Asked), None, &format!("reconcile decide {} --as retry", lost.label))?;
    let tried = story.api.decide(&lost.label, TARGET, v1::DecisionKind::Retry, shown, "just try it again").await;
    let Err(refusal) = tried else {
        return Err(untrue("a decision without proof to be refused", "it was recorded"));
    };
    let code = refusal.code().map(|code| code.to_string()).unwrap_or_default();
    story.narrator.detail("refused", &format!("error[{code}]: {}", refusal.message()))?;
    let statement = format!("a decision without proof is refused with {}", Code::DecisionNotOpen);
    story.check(refusal.code() == Some(Code::DecisionNotOpen), statement, code)
}

async fn fence_off(story: &mut Story<'_>, lost: &Lost) -> anyhow::Result<()> {
    let command = format!("reconcile fence-off {} --confirm {TARGET}", lost.label);
    story.narrator.fact(Some(Mark::Asked), None, &command)?;
    let answer = story.api.fence_off(&lost.label, TARGET, "the first agent is silent").await?;
    let evidence = answer.ok_or_else(|| untrue("the resource to confirm its new fence", "no answer in time"))?;
    tell(story, &evidence)?;
    let is_other = evidence.by != lost.agent && evidence.kind == "fenced_off";
    let statement = format!("{} raised the fence at the resource to {}", evidence.by, evidence.fence_text);
    story.check(is_other && evidence.fence > 0, statement, &evidence.sentence)
}

async fn inspect(story: &mut Story<'_>, lost: &Lost) -> anyhow::Result<()> {
    story.narrator.fact(Some(Mark::Asked), None, &format!("reconcile inspect {}", lost.label))?;
    let answer = story.api.inspect(&lost.label).await?;
    let evidence = answer.ok_or_else(|| untrue("the resource to be read", "no answer in time"))?;
    tell(story, &evidence)?;
    let reading = evidence.reading.clone().ok_or_else(|| untrue("a reading", &evidence.sentence))?;
    let state = words::operation(reading.state());
    let is_applied = reading.state() == v1::OperationState::Applied && reading.revision == "v2";
    let statement = format!("the resource itself tells that {SWITCH} is applied, and v2 is there");
    story.check(is_applied, statement, format!("{state}, revision {:?}", reading.revision))
}

fn tell(story: &mut Story<'_>, evidence: &v1::Evidence) -> anyhow::Result<()> {
    Ok(story.narrator.fact(Some(Mark::Read), words::wall(evidence.received_at), &evidence.sentence)?)
}

/// The work goes on where knowledge ends: the applied step is carried, the step after it runs on the other agent.
async fn retry(story: &mut Story<'_>, lost: &Lost, shown: u64) -> anyhow::Result<()> {
    let reason = "v2 is there, only the smoke check is missing";
    // What the questions recorded was told with their answers.
    story.skip(&lost.label).await?;
    story.api.decide(&lost.label, TARGET, v1::DecisionKind::Retry, shown, reason).await?;
    let deployment = story.until_state(&lost.label, v1::DeploymentState::Succeeded).await?;
    let [first, second] = deployment.attempts.as_slice() else {
        return Err(untrue("two attempts", deployment.attempts.len()));
    };
    let resolved = words::attempt(first.state());
    story.check(first.state() == v1::AttemptState::Resolved, "the first attempt is resolved, by decision", resolved)?;
    let carried = step_of(second, SWITCH)?.state();
    let is_carried = carried == v1::StepState::Carried && second.agent != lost.agent;
    let statement = format!("the second ran on {}, and {SWITCH} was carried over, not run again", second.agent);
    story.check(is_carried, statement, format!("{SWITCH} {} on {}", words::step(carried), second.agent))?;
    let statement = format!("its fence {} is above {}", second.fence_text, first.fence_text);
    story.check(second.fence > first.fence, statement, &second.fence_text)
}
