//! The next deployment waits, and nothing is done twice.

use holdfast_proto::v1;

use super::super::site::Version;
use super::cut::Lost;
use super::story::{Story, TARGET, summary};
use super::words;
use crate::output::{Mark, Table};

/// Gives the label of the one that waits.
pub(super) async fn submit(story: &mut Story<'_>, lost: &Lost) -> anyhow::Result<String> {
    story.narrator.chapter(3, "The next one waits")?;
    let label = story.submit(Version::V1).await?.label;
    story.narrator.fact(Some(Mark::Asked), None, &format!("somebody wants v1 back: {label}"))?;
    let deployment = story.api.deployment(&label).await?;
    let state = summary(&deployment)?.state();
    story.check(state == v1::DeploymentState::Queued, format!("{label} is queued"), words::deployment(state))?;
    story.check(!deployment.waiting.is_empty(), "it says why", "no reason")?;
    story.narrator.detail("waits", &deployment.waiting)?;
    let target = story.api.target(TARGET).await?;
    let listed = target.waiting.iter().any(|waiting| waiting.label == label);
    story.check(listed, format!("{TARGET} lists it"), format!("{} waiting", target.waiting.len()))?;
    nothing_runs(story, lost, &label).await?;
    Ok(label)
}

/// An idle agent could do the work, and is not given it.
async fn nothing_runs(story: &mut Story<'_>, lost: &Lost, waiting: &str) -> anyhow::Result<()> {
    let agents = story
        .look(format!("{} to be told silent", lost.agent), async || {
            let agents = story.api.agents().await?;
            let silent = agents.iter().any(|agent| agent.name == lost.agent && agent.contact() == v1::Contact::Silent);
            Ok(silent.then_some(agents))
        })
        .await?;
    let mut table = Table::new(&["agent", "contact", "holds"]);
    for agent in &agents {
        table.row([&agent.name, &words::contact(agent.contact()), &agent.holds.join(", ")]);
    }
    story.narrator.table(&table)?;
    let idle = agents.iter().find(|agent| agent.name != lost.agent && agent.contact() == v1::Contact::Connected);
    let name = idle.map(|agent| agent.name.clone()).unwrap_or_default();
    story.check(
        idle.is_some_and(|agent| agent.holds.is_empty()),
        format!("{name} is in contact and idle"),
        "no idle agent",
    )?;
    let attempts = story.api.deployment(&lost.label).await?.attempts.len();
    story.check(attempts == 1, format!("{} has one attempt: it is not run again by a timer", lost.label), attempts)?;
    let attempts = story.api.deployment(waiting).await?.attempts.len();
    story.check(attempts == 0, format!("{waiting} has none"), attempts)
}
