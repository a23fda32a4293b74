//! The next deployment runs, and the whole history is there.

use holdfast_common::text::bounded;
use holdfast_proto::v1;

use super::super::site::Version;
use super::cut::Lost;
use super::story::{Story, last_attempt, untrue};
use super::words;
use crate::output::{Table, time};

/// Of a sentence in the history, in bytes.
const WIDEST: usize = 100;

pub(super) async fn run(story: &mut Story<'_>, lost: &Lost, waiting: &str) -> anyhow::Result<()> {
    story.narrator.chapter(6, "The next one runs, and nothing is forgotten")?;
    let next = story.until_state(waiting, v1::DeploymentState::Succeeded).await?;
    story.check_page(Version::V1)?;
    let deployment = story.api.deployment(&lost.label).await?;
    let (old, new) = (last_attempt(&deployment)?, last_attempt(&next)?);
    let statement = format!("its fence {} is above every fence of {}", new.fence_text, lost.label);
    story.check(new.fence > old.fence, statement, &new.fence_text)?;
    history(story, &lost.label).await?;
    for decision in &deployment.decisions {
        let at = words::wall(decision.at).map(time::clock).unwrap_or_default();
        let kind = words::decision(decision.kind());
        story.narrator.detail("decided", &format!("{at} {kind} by {}: {}", decision.by, decision.reason))?;
    }
    let decided = deployment.decisions.len();
    story.check(decided == 1, format!("{} keeps its one decision, with the proof it rests on", lost.label), decided)
}

/// Every event of the deployment, from the first.
async fn history(story: &mut Story<'_>, label: &str) -> anyhow::Result<()> {
    let mut events = story.api.events(label, 1, false).await?;
    let mut all: Vec<v1::Event> = Vec::new();
    while let Some(event) = events.next().await? {
        all.push(event);
    }
    let mut table = Table::new(&["event", "at", "hash", "what was recorded"]);
    for event in &all {
        let at = words::wall(event.at).map(time::clock).unwrap_or_default();
        let hash: String = event.hash.chars().take(8).collect();
        table.row([&event.sequence.to_string(), &at, &hash, &bounded(&event.sentence, WIDEST)]);
    }
    story.narrator.table(&table)?;
    let grows = all.windows(2).all(|pair| pair[0].sequence < pair[1].sequence);
    let has = |kind: &str| all.iter().any(|event| event.kind == kind);
    let kinds =
        ["submitted", "reserved", "permit_granted", "attempt_ended", "decided", "evidence_filed", "deployment_ended"];
    let missing: Vec<&str> = kinds.into_iter().filter(|kind| !has(kind)).collect();
    if all.is_empty() {
        return Err(untrue(format!("a history of {label}"), "nothing"));
    }
    let statement = format!("the history of {label} is whole and in order: {} events", all.len());
    story.check(grows && missing.is_empty(), statement, format!("missing: {}", missing.join(", ")))
}
