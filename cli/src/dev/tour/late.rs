//! The line comes back.

use holdfast_proto::v1;

use super::cut::Lost;
use super::story::{SWITCH, Story, summary};
use super::words;
use crate::output::Mark;

pub(super) async fn heal(story: &mut Story<'_>, lost: &Lost) -> anyhow::Result<()> {
    story.narrator.chapter(5, "The line comes back")?;
    let before = story.api.deployment(&lost.label).await?;
    story.lines.heal(&lost.agent).await;
    story.narrator.say(&format!("{} is heard again. It has kept every report that was not answered.", lost.agent))?;
    let late = story
        .look(format!("what {} says about the end of {SWITCH}", lost.agent), async || {
            let evidence = story.api.evidence(&lost.label).await?;
            let late: Vec<_> = evidence.into_iter().filter(is_late).collect();
            Ok(late.iter().any(tells_an_end).then_some(late))
        })
        .await?;
    for report in &late {
        story.narrator.fact(Some(Mark::Reported), words::wall(report.said_at), &report.sentence)?;
        let received = words::wall(report.received_at).map(crate::output::time::clock).unwrap_or_default();
        let filed = words::filed(report.filed_as());
        story.narrator.detail("filed", &format!("received {received} under fence {}: {filed}", report.fence_text))?;
    }
    let all = late.iter().all(|report| report.by == lost.agent && report.filed_as() != v1::FiledReason::Unspecified);
    story.check(all, "each is kept as evidence with the reason, and is no authority", "a report without a reason")?;
    let after = story.api.deployment(&lost.label).await?;
    let (before, after) = (summary(&before)?, summary(&after)?);
    let is_same = before.state() == after.state() && before.ended_at == after.ended_at;
    let statement = format!("{} is what it was: {}", lost.label, words::deployment(after.state()));
    story.check(is_same, statement, words::deployment(after.state()))
}

fn is_late(evidence: &v1::Evidence) -> bool {
    evidence.kind == "late_report"
}

fn tells_an_end(evidence: &v1::Evidence) -> bool {
    evidence.step == SWITCH && evidence.body_json.contains("step_ended")
}
