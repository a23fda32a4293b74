//! The API's answers, drawn for people. Pure: an answer, the time and a terminal in, text out.
//!
//! Text of the answer is data: it is made printable on one line wherever it is put in. What was not observed is said to be
//! not observed, never left out. A sentence claims no more than the answer does.

mod agent;
mod audit;
mod cancellation;
mod candidates;
mod deployment;
mod evidence;
mod facets;
mod fleet;
mod join_token;
mod list;
mod plan;
mod progress;
mod pulse;
mod reconciliation;
pub mod stamp;
mod steps;
mod summary;
mod target;
#[cfg(test)]
mod tests;
mod token;
pub mod word;

pub use agent::{agents, one_agent};
pub use audit::audit;
pub use cancellation::{Stage, cancellation, stages};
pub use candidates::{candidates, own_way};
pub use deployment::deployment;
pub use evidence::{evidence, one_evidence};
pub use fleet::{fleet_line, one_line_of};
pub use join_token::{join_token_about, join_tokens};
pub use list::deployments;
pub use plan::plan;
pub use progress::Progress;
pub use reconciliation::reconciliation;
pub use summary::summary;
pub use target::{readings, target, targets};
pub use token::{grants, tokens};

use crate::output::{Terminal, Tone};
use holdfast_common::time::Wall;

use pulse::Pulse;

/// For whom something is drawn, and when.
#[derive(Clone, Copy, Debug)]
pub struct Canvas<'a> {
    /// What the stream can show.
    pub terminal: &'a Terminal,
    /// Now, for ages.
    pub now: Wall,
}

/// `1 target`, `2 targets`.
pub(crate) fn count(number: u64, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

/// A label and its lines, the label before the first one only.
fn labelled(label: &str, width: usize, lines: impl IntoIterator<Item = String>) -> String {
    labelled_in(Tone::Plain, &Terminal::PLAIN, label, width, lines)
}

/// The same with the label in a tone.
fn labelled_in(
    tone: Tone,
    terminal: &Terminal,
    label: &str,
    width: usize,
    lines: impl IntoIterator<Item = String>,
) -> String {
    lines
        .into_iter()
        .enumerate()
        .map(|(index, line)| {
            let label = if index == 0 { label } else { "" };
            let label = tone.paint(&format!("{label:<width$}"), terminal);
            format!("{label}  {line}").trim_end().to_owned() + "\n"
        })
        .collect()
}
