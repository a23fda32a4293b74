//! Targets: who holds what, since when, why, who waits.

use holdfast_common::fence::Fence;
use holdfast_common::text::one_line;
use holdfast_proto::v1::{self, RevisionKnowledge};

use super::{Canvas, labelled, list, stamp, word};
use crate::output::{Table, Tone, time};

const WIDTH: usize = 9;

/// All, as a table.
#[must_use]
pub fn targets(targets: &[v1::Target], canvas: Canvas<'_>) -> Table {
    let mut table = Table::new(&["target", "held by", "state", "since", "waiting", "revisions", "because"]);
    for target in targets {
        let holder = target.holder.as_ref();
        let since = stamp::wall(target.held_since.as_ref()).map(|at| time::age(at, canvas.now));
        let state = holder.map_or(0, |holder| holder.state);
        table.row_in_tones([
            (target.name.clone(), Tone::Strong),
            (holder.map(|holder| holder.label.clone()).unwrap_or_default(), Tone::Plain),
            (
                holder.map_or_else(|| free(target).to_owned(), |_| word::deployment_state(state)),
                stamp::state_tone(state),
            ),
            (since.unwrap_or_default(), Tone::Quiet),
            (target.waiting.len().to_string(), Tone::Plain),
            (revisions(target), Tone::Plain),
            (because(target), Tone::Plain),
        ]);
    }
    table
}

fn free(target: &v1::Target) -> &'static str {
    if target.hold.is_some() { "on hold" } else { "free" }
}

/// Why it is held, and by whom it is on hold.
fn because(target: &v1::Target) -> String {
    let hold =
        target.hold.as_ref().map(|hold| format!("on hold by {}: {}", one_line(&hold.by), one_line(&hold.reason)));
    let held = (!target.held_because.is_empty()).then(|| target.held_because.clone());
    held.into_iter().chain(hold).collect::<Vec<_>>().join("; ")
}

/// By whom, since when, until when, why.
pub(super) fn on_hold(hold: &v1::TargetHold, canvas: Canvas<'_>) -> String {
    let since = stamp::aged(hold.since.as_ref(), canvas).map(|since| format!(" since {since}")).unwrap_or_default();
    let until = match stamp::wall(hold.until.as_ref()) {
        // Serving time stands still while no coordinator runs: it ends late after that.
        Some(at) if at <= canvas.now => {
            format!(", until {} and as long as no coordinator served", time::near(at, canvas.now))
        }
        Some(at) => format!(", until {}", time::near(at, canvas.now)),
        None => String::new(),
    };
    format!("by {}{since}{until}: {}", one_line(&hold.by), one_line(&hold.reason))
}

fn revisions(target: &v1::Target) -> String {
    let one = |status: &v1::ResourceStatus| {
        let name = status.resource.as_ref().map(|resource| one_line(&resource.name)).unwrap_or_default();
        format!("{name}={}", revision(status))
    };
    target.resources.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn revision(status: &v1::ResourceStatus) -> String {
    match RevisionKnowledge::try_from(status.knowledge) {
        Ok(RevisionKnowledge::Recorded) if status.revision.is_empty() => "none told".to_owned(),
        Ok(RevisionKnowledge::Recorded) => one_line(&status.revision),
        Ok(RevisionKnowledge::Never) => "never read".to_owned(),
        Ok(RevisionKnowledge::Unknown | RevisionKnowledge::Unspecified) | Err(_) => "unknown".to_owned(),
    }
}

/// One, as text.
#[must_use]
pub fn target(target: &v1::Target, canvas: Canvas<'_>) -> String {
    let strong = |text: &str| Tone::Strong.paint(text, canvas.terminal);
    let mut text = format!("{}  {}\n", strong(&one_line(&target.name)), holder(target, canvas));
    let mut labels: Vec<String> =
        target.agents.iter().map(|(key, value)| format!("{}={}", one_line(key), one_line(value))).collect();
    labels.sort();
    text.push_str(&labelled("  agents", WIDTH, [labels.join(" ")]));
    text.push_str(&labelled("  policy", WIDTH, [one_line(&target.policy)]));
    let fence = if target.fence == 0 { "none yet".to_owned() } else { one_line(&target.fence_text) };
    text.push_str(&labelled("  fence", WIDTH, [fence]));
    text.push_str(&labelled("  queue", WIDTH, (!target.queue.is_empty()).then(|| one_line(&target.queue))));
    text.push_str(&labelled("  on hold", WIDTH, target.hold.iter().map(|hold| on_hold(hold, canvas))));
    if !target.who_can_act.is_empty() {
        text.push_str(&labelled("  to act", WIDTH, [one_line(&target.who_can_act)]));
    }
    text.push('\n');
    text.push_str(&resources(target, canvas).draw(canvas.terminal));
    if !target.waiting.is_empty() {
        text.push_str(&format!("\n{}\n", strong("Waiting, in order")));
        text.push_str(&list::deployments(&target.waiting, canvas).draw(canvas.terminal));
    }
    text
}

fn holder(target: &v1::Target, canvas: Canvas<'_>) -> String {
    let Some(holder) = &target.holder else { return free(target).to_owned() };
    let state = stamp::state_tone(holder.state).paint(&word::deployment_state(holder.state), canvas.terminal);
    let since = stamp::aged(target.held_since.as_ref(), canvas).unwrap_or_default();
    let because = match target.held_because.as_str() {
        "" => String::new(),
        because => format!(": {}", one_line(because)),
    };
    format!("held by {} ({state}) since {since}{because}", one_line(&holder.label))
}

fn resources(target: &v1::Target, canvas: Canvas<'_>) -> Table {
    let mut table = Table::new(&["resource", "adapter", "reach", "revision", "recorded", "from", "on"]);
    for status in &target.resources {
        let resource = status.resource.clone().unwrap_or_default();
        let adapter = match &resource.adapter {
            Some(v1::resource::Adapter::Command(_)) => "command".to_owned(),
            Some(v1::resource::Adapter::Release(release)) => format!("release {}", one_line(&release.root)),
            Some(v1::resource::Adapter::System(system)) => one_line(&system.adapter),
            None => "not told".to_owned(),
        };
        table.row([
            one_line(&resource.name),
            adapter,
            word::reach(resource.reach),
            revision(status),
            stamp::aged(status.recorded_at.as_ref(), canvas).unwrap_or_default(),
            one_line(&status.source),
            one_line(&status.home),
        ]);
    }
    table
}

/// What was read of a target's resources just now, and of whose step the state speaks.
#[must_use]
pub fn readings(readings: &[v1::ResourceReading]) -> Table {
    let mut table = Table::new(&["resource", "read by", "state", "of", "revision", "changed by", "fence", "note"]);
    for one in readings {
        let reading = one.reading.clone().unwrap_or_default();
        let state =
            one.reading.as_ref().map_or_else(|| "not read".to_owned(), |reading| word::operation(reading.state));
        let told =
            [&one.detail, &reading.detail].into_iter().filter(|text| !text.is_empty()).map(|text| one_line(text));
        let retained: Vec<String> = reading.retained.iter().map(|revision| one_line(revision)).collect();
        let retains = (!retained.is_empty()).then(|| format!("retains {}", retained.join(", ")));
        let note: Vec<String> = told.chain(retains).collect();
        table.row([
            one_line(&one.resource),
            one_line(&one.agent),
            state,
            [&one.deployment, &one.step].map(|word| one_line(word)).join(" ").trim().to_owned(),
            one_line(&reading.revision),
            one_line(&reading.active_operation),
            Fence::from_u64(reading.highest_fence).map(|fence| fence.to_string()).unwrap_or_default(),
            note.join("; "),
        ]);
    }
    table
}
