//! Agents.

use holdfast_common::text::one_line;
use holdfast_proto::v1::{self, Contact};

use super::{Canvas, stamp, word};
use crate::output::{Table, Tone, time};

/// As a table.
#[must_use]
pub fn agents(agents: &[v1::Agent], canvas: Canvas<'_>) -> Table {
    let why = agents.iter().any(|agent| agent.drained.is_some() || agent.away.is_some());
    let mut columns = vec!["agent", "contact", "heard", "labels", "adapters", "holds", "version"];
    columns.extend(why.then_some("nothing new because"));
    let mut table = Table::new(&columns);
    for agent in agents {
        let heard = stamp::wall(agent.last_heard_at.as_ref()).map(|at| format!("{} ago", time::age(at, canvas.now)));
        let mut labels: Vec<String> = agent.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        labels.sort();
        let mut row = vec![
            (agent.name.clone(), Tone::Strong),
            contact(agent),
            (heard.unwrap_or_else(|| "never".to_owned()), Tone::Quiet),
            (labels.join(" "), Tone::Plain),
            (agent.adapters.join(" "), Tone::Plain),
            (agent.holds.join(" "), Tone::Plain),
            (agent.version.clone(), Tone::Quiet),
        ];
        row.extend(why.then(|| (because(agent, canvas), Tone::Plain)));
        table.row_in_tones(row);
    }
    table
}

/// What keeps an agent from work comes before whether it is heard.
fn contact(agent: &v1::Agent) -> (String, Tone) {
    match (agent.removed, &agent.lock) {
        (true, _) => ("removed".to_owned(), Tone::Hazard),
        (false, Some(_)) => (format!("{}, locked", word::contact(agent.contact)), Tone::Hazard),
        (false, None) => (word::contact(agent.contact), tone(agent.contact)),
    }
}

/// Everything about one.
#[must_use]
pub fn one_agent(agent: &v1::Agent, canvas: Canvas<'_>) -> String {
    let at = |time| stamp::near(time, canvas).unwrap_or_else(|| "never".to_owned());
    let mut labels: Vec<String> = agent.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    labels.sort();
    let mut rows = vec![
        ("agent", agent.name.clone()),
        ("contact", word::contact(agent.contact)),
        ("heard", at(agent.last_heard_at.as_ref())),
        ("labels", labels.join(" ")),
        ("adapters", agent.adapters.join(" ")),
        ("holds", agent.holds.join(" ")),
        ("journal", agent.incarnation.clone()),
        ("identity", certificate(agent, canvas)),
        ("version", agent.version.clone()),
    ];
    if agent.moved_at.is_some() {
        rows.push(("moved", format!("to another machine, {}", at(agent.moved_at.as_ref()))));
    }
    if agent.removed {
        rows.push(("removed", "its certificates open nothing any more".to_owned()));
    }
    if let Some(lock) = &agent.lock {
        rows.push(("locked", format!("{}: {} was seen", at(lock.since.as_ref()), lock.why)));
        rows.push(("so", "it gets no new work, and its journal's word proves nothing".to_owned()));
        rows.push((
            "next",
            format!("find the copy and stop it, then: holdfast agent unlock {} --reason TEXT", agent.name),
        ));
    }
    let lines = rows.iter().filter(|(_, value)| !value.is_empty());
    lines.map(|(name, value)| format!("{name:<9} {}\n", one_line(value))).collect()
}

/// The certificate that it was last seen with.
fn certificate(agent: &v1::Agent, canvas: Canvas<'_>) -> String {
    let end = stamp::near(agent.certificate_expires_at.as_ref(), canvas);
    let end = end.map(|end| format!(", good until {end}")).unwrap_or_default();
    if agent.fingerprint.is_empty() { String::new() } else { format!("certificate sha256:{}{end}", agent.fingerprint) }
}

/// Why it gets no new work, where somebody said so.
fn because(agent: &v1::Agent, canvas: Canvas<'_>) -> String {
    let near = |at| stamp::near(at, canvas).unwrap_or_default();
    let drained = agent.drained.as_ref().map(|drained| {
        let v1::Drained { since, by, reason } = drained;
        format!("drained since {} by {by}: {reason}", near(since.as_ref()))
    });
    let away = agent.away.as_ref().map(|away| format!("away by plan, back by {}", near(away.back_by.as_ref())));
    drained.into_iter().chain(away).collect::<Vec<_>>().join("; ")
}

fn tone(contact: i32) -> Tone {
    match Contact::try_from(contact) {
        Ok(Contact::Connected) => Tone::Good,
        Ok(Contact::Silent | Contact::Unspecified) | Err(_) => Tone::Hazard,
    }
}
