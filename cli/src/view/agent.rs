//! Agents.

use holdfast_proto::v1::{self, Contact};

use super::{Canvas, stamp, word};
use crate::output::{Table, Tone, time};

/// As a table.
#[must_use]
pub fn agents(agents: &[v1::Agent], canvas: Canvas<'_>) -> Table {
    let mut table = Table::new(&["agent", "contact", "heard", "labels", "adapters", "holds", "version"]);
    for agent in agents {
        let heard = stamp::wall(agent.last_heard_at.as_ref()).map(|at| format!("{} ago", time::age(at, canvas.now)));
        let mut labels: Vec<String> = agent.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        labels.sort();
        table.row_in_tones([
            (agent.name.clone(), Tone::Strong),
            (word::contact(agent.contact), tone(agent.contact)),
            (heard.unwrap_or_else(|| "never".to_owned()), Tone::Quiet),
            (labels.join(" "), Tone::Plain),
            (agent.adapters.join(" "), Tone::Plain),
            (agent.holds.join(" "), Tone::Plain),
            (agent.version.clone(), Tone::Quiet),
        ]);
    }
    table
}

fn tone(contact: i32) -> Tone {
    match Contact::try_from(contact) {
        Ok(Contact::Connected) => Tone::Good,
        Ok(Contact::Silent | Contact::Unspecified) | Err(_) => Tone::Hazard,
    }
}
