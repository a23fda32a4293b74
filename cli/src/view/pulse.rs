//! One line for each deployment that is watched with others: whether anybody is heard.
//!
//! A spinner claims life, so it turns only while the attempt is heard, and freezes into a silence that counts.

use std::time::Duration;

use holdfast_common::text::one_line;
use holdfast_common::time::Millis;
use holdfast_proto::v1;

use super::{facets, stamp, word};
use crate::output::{Mark, Terminal, time};

/// What the line is made of.
#[derive(Clone, Debug, Default)]
pub(super) struct Pulse {
    /// The deployment as last told, and how long ago that was.
    pub(super) told: Option<(v1::Deployment, Duration)>,
    /// How long the coordinator has been silent, where it is.
    pub(super) lost: Option<Duration>,
    /// Counts the lines drawn.
    pub(super) turn: usize,
}

impl Pulse {
    /// On one line, without colours.
    #[must_use]
    pub(super) fn line(&self, terminal: &Terminal) -> String {
        if let Some(lost) = self.lost {
            let mark = Mark::NoContact.symbol(terminal);
            return format!("{mark} no contact with the coordinator, {}", time::silent(millis(lost)));
        }
        let Some((deployment, ago)) = &self.told else { return String::new() };
        let state = deployment.summary.as_ref().map_or(0, |summary| summary.state);
        let Some(attempt) = deployment.attempts.last().filter(|attempt| attempt.lease_ttl.is_some()) else {
            let waits = if deployment.waiting.is_empty() { "" } else { ": " };
            return format!("   {}{waits}{}", word::deployment_state(state), one_line(&deployment.waiting));
        };
        let heard = stamp::span(attempt.silent_for.as_ref()).map(|span| Millis(span.0.saturating_add(millis(*ago).0)));
        let agent = one_line(&attempt.agent);
        let older = v1::Attempt { silent_for: heard.map(holdfast_proto::convert::duration_to_wire), ..attempt.clone() };
        match facets::silence(&older) {
            Some(silent) => format!("{} {agent}: {}", Mark::NoContact.symbol(terminal), time::silent(silent)),
            None => format!("{}  {agent}: {}", self.spinner(terminal), word::attempt_state(attempt.state)),
        }
    }

    fn spinner(&self, terminal: &Terminal) -> char {
        let turns: &[char] = if terminal.unicode { &['◐', '◓', '◑', '◒'] } else { &['|', '/', '-', '\\'] };
        turns[self.turn % turns.len()]
    }
}

fn millis(length: Duration) -> Millis {
    Millis(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
}
