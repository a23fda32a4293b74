//! Going back: a deployment of its own, over what stands now.

use holdfast_proto::v1;

use super::super::site::Version;
use super::story::{Story, TARGET, summary, untrue};
use crate::output::{Mark, Table};

pub(super) async fn roll_back(story: &mut Story<'_>, latest: &str) -> anyhow::Result<()> {
    story.narrator.chapter(7, "Going back is a deployment of its own")?;
    story.narrator.fact(Some(Mark::Asked), None, &format!("rollback {TARGET}"))?;
    let candidates = story.api.rollback_candidates(TARGET).await?;
    show(story, &candidates)?;
    let Some(nearest) = candidates.first() else { return Err(untrue("a place to go back to", "none")) };
    let revision = nearest.revisions.first().map(|had| had.revision.clone()).unwrap_or_default();
    let is_v2 = nearest.undoes == [latest] && revision == "v2" && nearest.compatible;
    let statement =
        format!("going back over {latest} is compatible: its file declares the way, and v2 is still retained");
    story.check(is_v2, statement, format!("{revision:?}, {}", nearest.why_not))?;
    story.narrator.fact(Some(Mark::Asked), None, &format!("rollback {TARGET} --to v2 --confirm {TARGET}"))?;
    let undone = story.api.deployment(latest).await?;
    let rollback = story.api.rollback(TARGET, "v2", &nearest.numbers, "v2 was the better page").await?;
    let label = summary(&rollback)?.label.clone();
    let rollback = story.until_state(&label, v1::DeploymentState::Succeeded).await?;
    story.check_page(Version::V2)?;
    let of = rollback.rollback.clone().unwrap_or_default();
    let after = story.api.deployment(latest).await?;
    let chained = of.undoes == [latest] && after.rolled_back_by == [label.as_str()];
    let statement = format!("the chain is shown from both ends: {label} goes back over {latest}");
    story.check(chained, statement, format!("{:?} and {:?}", of.undoes, after.rolled_back_by))?;
    let (before, after) = (summary(&undone)?, summary(&after)?);
    let is_same = before.state() == after.state() && before.ended_at == after.ended_at;
    story.check(is_same, format!("no record of {latest} was edited"), &after.because)
}

/// Like `holdfast rollback TARGET`.
fn show(story: &mut Story<'_>, candidates: &[v1::RollbackCandidate]) -> anyhow::Result<()> {
    let mut table = Table::new(&["to", "undoes", "compatible now", "because"]);
    for candidate in candidates {
        let to: Vec<&str> = candidate.revisions.iter().map(|had| had.revision.as_str()).collect();
        let to = if to.concat().is_empty() { "not on record".to_owned() } else { to.join(", ") };
        let answer = if candidate.compatible { "yes" } else { "no" };
        table.row([to.as_str(), &candidate.undoes.join(", "), answer, &candidate.why_not]);
    }
    Ok(story.narrator.table(&table)?)
}
