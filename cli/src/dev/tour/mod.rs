//! The first five minutes with Holdfast, played by itself.
//!
//! All that is told is read through the public API with an operator's token, except for the served page, which is read from
//! the file system and said to be. Every statement is checked: the first one that is not true ends the tour.
//!
//! ```text
//! 1 first     v1 is deployed
//! 2 cut       v2 is on its way when the agent's line goes dead: uncertain, the target held
//! 3 waiting   the next deployment waits, and nothing is done twice
//! 4 proof     fence off, inspect, decide: the work goes on where knowledge ends
//! 5 late      the line comes back, and what the first agent says is filed
//! 6 next      the next deployment runs, and the whole history is there
//! 7 back      the release before is put back in place, as a deployment of its own
//! ```

mod back;
mod cut;
mod first;
mod late;
mod next;
mod proof;
mod story;
mod waiting;
mod words;

use std::time::Duration;

use super::api::Api;
use super::folder::Folder;
use super::lines::Lines;
use super::narrator::Narrator;
pub(super) use story::Untrue;
use story::{Sites, Story, untrue};

/// Longest time for all of it, on a machine that is busy with other things.
const LIMIT: Duration = Duration::from_secs(180);

/// Whether the line is cut. Without the cut the tour must not be able to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plot {
    /// As told above.
    Whole,
    /// The line stays whole.
    WithoutCut,
}

/// Plays it. An [`Untrue`] inside the error is a statement that did not hold.
pub(super) async fn play(
    api: &Api,
    lines: &Lines,
    folder: &Folder,
    plot: Plot,
    narrator: &mut Narrator,
) -> anyhow::Result<()> {
    let sites = Sites::pack(folder)?;
    let mut story = Story::new(api, lines, &sites, narrator);
    let begun = std::time::Instant::now();
    match tokio::time::timeout(LIMIT, chapters(&mut story, plot)).await {
        Ok(outcome) => outcome?,
        Err(_) => return Err(untrue(format!("the tour to be over within {LIMIT:?}"), "it was not")),
    }
    let (checked, seconds) = (narrator.checked(), begun.elapsed().as_secs());
    narrator.line(&format!(
        "\nThe tour is over: {checked} statements were checked and all are true. It took {seconds} s."
    ))?;
    Ok(())
}

async fn chapters(story: &mut Story<'_>, plot: Plot) -> anyhow::Result<()> {
    first::deploy(story).await?;
    let lost = cut::deploy(story, plot).await?;
    let waiting = waiting::submit(story, &lost).await?;
    proof::decide(story, &lost).await?;
    late::heal(story, &lost).await?;
    next::run(story, &lost, &waiting).await?;
    back::roll_back(story, &waiting).await
}
