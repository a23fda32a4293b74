//! A stop that was asked for: what it waits for is told, and the last word is said.

use holdfast_agent_core::leave::{self, Asked, Held, Leave, Word};
use holdfast_common::time::Millis;
use holdfast_proto::convert::{claim_to_wire, duration_to_wire};
use holdfast_proto::v1::{self, connect_request};

use super::{Clock, Driver, Hands};
use crate::standing::{Leaving, Stands};

impl<H: Hands, C: Clock> Driver<H, C> {
    /// After each turn: how the agent stands is told, and it goes when it is asked to and may.
    pub(super) fn leave_if_asked(&mut self) {
        let held: Vec<Held> = self.works.values().map(Held::from).collect();
        let (now, contact) = (self.clock.boot(), self.session.is_some());
        let left = self.exit.going.is_cancelled();
        let unsent = if self.asked == Asked::No { 0 } else { self.hands.unsent() };
        // With each step that runs goes one: they are told where nothing else is waited for.
        let outputs =
            (held.is_empty() && unsent > 0).then(|| format!("outputs that are not sent yet (attempts: {unsent})"));
        let names = held.iter().map(ToString::to_string).chain(outputs.clone()).collect();
        let leave = leave::leave(self.config.stop.manner(), self.asked, now, held, unsent > 0, contact);
        let leaving = match (&leave, left) {
            (Leave::Stay, false) => Leaving::No,
            (Leave::Wait { .. }, false) => Leaving::Waits,
            (Leave::Go(_), _) | (_, true) => Leaving::Goes,
        };
        let stands = Stands { contact, held: names, drained: self.drained.clone(), leaving };
        let changed = self.standing.set(stands);
        match leave {
            Leave::Wait { held, until } if changed && !left => {
                tell_wait(Millis(until.0.saturating_sub(now.0)), &held, outputs.as_deref());
            }
            Leave::Go(word) if !left => self.go(word),
            Leave::Stay | Leave::Wait { .. } | Leave::Go(_) => {}
        }
    }

    fn go(&mut self, word: Word) {
        let hurry = self.asked == Asked::Again;
        match word {
            Word::None => tracing::info!(works = self.works.len(), hurry, "stopping"),
            Word::Detach { away } => {
                tracing::info!(works = self.works.len(), %away, hurry, "stopping; work under way goes on under its shims");
                let claims = self.works.values().filter(|work| work.wants_lease());
                let claims = claims.map(|work| claim_to_wire(work.assignment.claim)).collect();
                let reason = "it is stopped, and will be back".to_owned();
                let away = Some(duration_to_wire(away));
                self.say(connect_request::Message::Detach(v1::Detach { reason, away, claims }));
            }
        }
        self.exit.going.cancel();
        // Without its sending end the session ends once all is said.
        if self.session.take().is_none() || word == Word::None {
            self.exit.stop.cancel();
        }
    }
}

fn tell_wait(left: Millis, held: &[Held], outputs: Option<&str>) {
    for held in held {
        tracing::info!(deployment = %held.deployment, %left, "to stop: waiting, {held}");
    }
    if let Some(outputs) = outputs {
        tracing::info!(%left, "to stop: waiting, {outputs}");
    }
}
