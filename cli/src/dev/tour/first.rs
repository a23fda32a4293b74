//! The first release.

use holdfast_proto::v1;

use super::super::site::Version;
use super::story::untrue;
use super::story::{Story, TARGET, is_terminal, last_attempt};
use crate::output::Mark;

pub(super) async fn deploy(story: &mut Story<'_>) -> anyhow::Result<()> {
    story.narrator.chapter(1, "The first release")?;
    let target = story.api.apply_target(&story.sites.target_file).await?;
    story.narrator.fact(
        Some(Mark::Asked),
        None,
        &format!("target apply: {}, changed by any agent with its labels", target.name),
    )?;
    if let Some(holder) = target.holder.as_ref().filter(|holder| !is_terminal(holder.state())) {
        return Err(untrue(format!("{TARGET} to be free"), format!("it is held by {}", holder.label)));
    }
    let submitted = story.submit(Version::V1).await?;
    let deployment = story.until_state(&submitted.label, v1::DeploymentState::Succeeded).await?;
    show_output(story, &deployment).await?;
    let target = story.api.target(TARGET).await?;
    let revision = target.resources.first().map(|resource| resource.revision.clone()).unwrap_or_default();
    story.check(revision == "v1", format!("the revision on record of {TARGET} is v1"), &revision)?;
    story.check_page(Version::V1)
}

/// What the check saw: it reads the page that is served.
async fn show_output(story: &mut Story<'_>, deployment: &v1::Deployment) -> anyhow::Result<()> {
    let label = deployment.summary.as_ref().map(|summary| summary.label.clone()).unwrap_or_default();
    let number = last_attempt(deployment)?.number;
    let printed = story
        .look("what the check smoke saw", async || {
            let text = story.api.log(&label, "smoke", number).await?;
            Ok(text.lines().find(|line| line.ends_with(": ok")).map(str::to_owned))
        })
        .await?;
    story.narrator.detail("smoke saw", &printed)?;
    story.check(printed.contains("Revision v1"), "the check smoke has found v1 served", &printed)
}
