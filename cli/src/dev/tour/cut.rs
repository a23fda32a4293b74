//! The line of an agent goes dead in the middle of a change.
//!
//! How the cut meets the middle on any machine: both lines are slow first, so an answer to the agent and its next word
//! take two delays in all. When the permit for the step is on record, whatever the agent says from then on vanishes,
//! while the answer still reaches it. So it goes on, makes the change, and can't say so.

use std::time::Duration;

use holdfast_proto::v1;

use super::super::site::Version;
use super::Plot;
use super::story::{SWITCH, Story, TARGET, last_attempt, step_named, step_of, summary};
use super::words;
use crate::output::Mark;

/// Each way. Twice as long is the time that the tour has to notice the permit.
const SLOW: Duration = Duration::from_secs(1);

/// What was lost.
pub(super) struct Lost {
    /// The deployment.
    pub(super) label: String,
    /// The agent whose line is dead.
    pub(super) agent: String,
}

pub(super) async fn deploy(story: &mut Story<'_>, plot: Plot) -> anyhow::Result<Lost> {
    story.narrator.chapter(2, "The line goes dead in the middle of a change")?;
    story.narrator.say("Both lines are slow now, one second each way, as lines are before they fail. Then v2.")?;
    story.lines.slow(SLOW);
    let label = story.submit(Version::V2).await?.label;
    let permit = format!("a permit for the step {SWITCH} of {label}");
    story.until(&label, permit, is_permit).await?;
    match plot {
        Plot::Whole => {}
        Plot::WithoutCut => story.narrator.say("The line stays whole: this tour must fail.")?,
    }
    let agent = last_attempt(&story.api.deployment(&label).await?)?.agent.clone();
    if plot == Plot::Whole {
        cut(story, &agent).await?;
    }
    let deployment = story.until_state(&label, v1::DeploymentState::Uncertain).await?;
    held(story, &deployment, &agent).await?;
    Ok(Lost { label, agent })
}

fn is_permit(event: &v1::Event) -> bool {
    event.kind == "permit_granted" && step_named(event).as_deref() == Some(SWITCH)
}

async fn cut(story: &mut Story<'_>, agent: &str) -> anyhow::Result<()> {
    story.lines.mute(agent);
    story.narrator.fact(
        Some(Mark::NoContact),
        None,
        &format!("the tour cuts the line: from here on nothing that {agent} says arrives"),
    )?;
    story
        .look("the page of v2, switched by the agent that nobody hears", async || {
            Ok((story.page() == Version::V2.index()).then_some(()))
        })
        .await?;
    story.lines.silence(agent);
    story.lines.heal_others(agent).await;
    story
        .narrator
        .say(&format!("{agent} had its permit and went on alone. The change is made; the coordinator can't know:"))?;
    story.check_page(Version::V2)
}

/// Uncertain means: nobody claims anything, and nobody else gets in.
async fn held(story: &mut Story<'_>, deployment: &v1::Deployment, agent: &str) -> anyhow::Result<()> {
    let label = &summary(deployment)?.label;
    let attempt = last_attempt(deployment)?;
    let state = words::attempt(attempt.state());
    let statement = format!("its attempt on {agent} under fence {} is uncertain", attempt.fence_text);
    story.check(attempt.state() == v1::AttemptState::Uncertain && attempt.agent == agent, statement, state)?;
    let step = step_of(attempt, SWITCH)?;
    let is_open = step.state() == v1::StepState::Permitted && step.ended.is_none();
    let statement = format!("the step {SWITCH} was permitted, and nobody claims that it ended, or how");
    story.check(is_open, statement, words::step(step.state()))?;
    let target = story.api.target(TARGET).await?;
    let holder = target.holder.as_ref().map(|holder| holder.label.clone()).unwrap_or_default();
    story.check(&holder == label && deployment.holds_target, format!("{TARGET} is held for {label}"), &holder)?;
    story.narrator.detail("held", &target.held_because)?;
    story.narrator.detail("who can act", &target.who_can_act)?;
    Ok(())
}
