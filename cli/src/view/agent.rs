//! Agents.

use holdfast_common::text::one_line;
use holdfast_proto::v1::{self, Contact};

use super::{Canvas, stamp, word};
use crate::output::{Table, Tone, time};

/// Columns of a terminal that has room for all that is told of agents in one line each.
const WIDE: u16 = 100;

/// As a table.
#[must_use]
pub fn agents(agents: &[v1::Agent], canvas: Canvas<'_>) -> Table {
    let why = agents.iter().any(gets_nothing);
    // A narrow terminal has what matters; `agent show` has the rest.
    let wide = canvas.terminal.width.is_none_or(|width| width >= WIDE);
    let mut columns = vec!["agent", "contact", "heard", "labels", "holds"];
    if wide {
        columns.extend(["adapters", "version"]);
    }
    let ends = agents.iter().any(|agent| certificate(agent, canvas).is_some_and(|said| said.tone == Tone::Hazard));
    columns.extend(why.then_some("nothing new because"));
    columns.extend(ends.then_some("certificate"));
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
            (agent.holds.join(" "), Tone::Plain),
        ];
        if wide {
            row.extend([(agent.adapters.join(" "), Tone::Plain), (agent.version.clone(), Tone::Quiet)]);
        }
        row.extend(why.then(|| (because(agent, canvas), Tone::Plain)));
        let said =
            || certificate(agent, canvas).map_or_else(|| (String::new(), Tone::Plain), |said| (said.text, said.tone));
        row.extend(ends.then(said));
        table.row_in_tones(row);
    }
    table
}

/// What keeps an agent from work comes before whether it is heard.
fn contact(agent: &v1::Agent) -> (String, Tone) {
    match (agent.removed, &agent.lock) {
        (true, _) => ("removed".to_owned(), Tone::Hazard),
        (false, Some(_)) => (format!("{}, locked", word::contact(agent.contact)), Tone::Hazard),
        (false, None) if agent.last_heard_at.is_none() => ("never heard".to_owned(), Tone::Quiet),
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
        ("contact", contact(agent).0),
        ("heard", at(agent.last_heard_at.as_ref())),
        ("labels", labels.join(" ")),
        ("adapters", agent.adapters.join(" ")),
        ("holds", agent.holds.join(" ")),
        ("journal", agent.incarnation.clone()),
        ("version", agent.version.clone()),
    ];
    if let Some(enrolment) = &agent.enrolment {
        let v1::Enrolment { at: joined, token } = enrolment;
        let labels = if agent.labels.is_empty() { "without labels" } else { "its labels are that token's" };
        rows.push(("enrolled", format!("{} with join token {token}; {labels}", at(joined.as_ref()))));
    }
    if let Some(said) = certificate(agent, canvas) {
        rows.push(("certified", said.text));
        rows.push(("", format!("sha256:{}", agent.fingerprint)));
    }
    if agent.certificate_revoked_at.is_some() && agent.renewed_until.is_none() && !agent.removed {
        let lines =
            "holdfast agent remove {0} --confirm {0} --reason TEXT, then holdfast agent token create --name {0}";
        rows.push(("next", lines.replace("{0}", &agent.name)));
    }
    if gets_nothing(agent) {
        rows.push(("new work", format!("none: {}", because(agent, canvas))));
    }
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
            format!(
                "find the copy and stop it, then: holdfast agent unlock {0} --reason TEXT --confirm {0}",
                agent.name
            ),
        ));
    }
    let lines = rows.iter().filter(|(_, value)| !value.is_empty());
    lines.map(|(name, value)| format!("{name:<9} {}\n", one_line(value))).collect()
}

/// How long its certificate is good, and whether that is a worry.
struct Certified {
    text: String,
    tone: Tone,
}

/// A certificate is renewed when two thirds of its life are over. One that was not is told as a hazard, so that somebody looks
/// before it ends.
fn certificate(agent: &v1::Agent, canvas: Canvas<'_>) -> Option<Certified> {
    if let Some(at) = stamp::near(agent.certificate_revoked_at.as_ref(), canvas) {
        return Some(Certified { text: format!("revoked {at}; {}", others(agent, canvas)), tone: Tone::Hazard });
    }
    let until = stamp::wall(agent.certificate_expires_at.as_ref())?;
    let near = stamp::near(agent.certificate_expires_at.as_ref(), canvas).unwrap_or_default();
    let since = stamp::wall(agent.certificate_since.as_ref());
    let renewed = stamp::wall(agent.renewed_until.as_ref()).is_some_and(|newest| newest > until);
    let over = until <= canvas.now;
    let last_third = since.is_some_and(|since| {
        let (life, left) = (until.0.saturating_sub(since.0), until.0.saturating_sub(canvas.now.0));
        left < life / 3
    });
    let next = if renewed { "; the next one was signed, and counts from its next connection on" } else { "" };
    let (text, tone) = match (over, last_third && !renewed) {
        (true, _) => (format!("ended {near}{next}"), if renewed { Tone::Plain } else { Tone::Hazard }),
        (false, true) => (format!("ends {near}, and was not renewed"), Tone::Hazard),
        (false, false) => (format!("until {near}{next}"), Tone::Plain),
    };
    Some(Certified { text, tone })
}

/// What an agent has beside a certificate that opens nothing any more.
fn others(agent: &v1::Agent, canvas: Canvas<'_>) -> String {
    match stamp::near(agent.renewed_until.as_ref(), canvas) {
        Some(until) => format!("another one was signed for it, until {until}, and counts from its next connection on"),
        None => "no other was signed for it here: nobody hears of it until it has joined anew".to_owned(),
    }
}

fn gets_nothing(agent: &v1::Agent) -> bool {
    agent.drained.is_some() || agent.away.is_some() || agent.no_room.is_some()
}

/// Why it gets no new work, where somebody said so: an operator, or the agent itself.
fn because(agent: &v1::Agent, canvas: Canvas<'_>) -> String {
    let near = |at| stamp::near(at, canvas).unwrap_or_default();
    let drained = agent.drained.as_ref().map(|drained| {
        let v1::Drained { since, by, reason } = drained;
        format!("drained since {} by {by}: {reason}", near(since.as_ref()))
    });
    let away = agent.away.as_ref().map(|away| format!("away by plan, back by {}", near(away.back_by.as_ref())));
    let no_room = agent.no_room.as_ref().map(|no_room| {
        let steps = if no_room.begins_no_step { ", and no step of what it holds begins" } else { "" };
        format!("no room on its host{steps}: {}", no_room.why)
    });
    drained.into_iter().chain(away).chain(no_room).collect::<Vec<_>>().join("; ")
}

fn tone(contact: i32) -> Tone {
    match Contact::try_from(contact) {
        Ok(Contact::Connected) => Tone::Good,
        Ok(Contact::Silent | Contact::Unspecified) | Err(_) => Tone::Hazard,
    }
}
