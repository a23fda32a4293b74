//! Heartbeats, and the leases that their answers renew.

use holdfast_agent_core::work::{Boot, LeaseCount};
use holdfast_agent_core::{Input, Work};
use holdfast_common::claim::Claim;
use holdfast_common::id::AttemptId;
use holdfast_common::time::Millis;
use holdfast_proto::convert::claim_to_wire;
use holdfast_proto::v1::{self, connect_request};

use super::batch::Batch;
use super::{Clock, Driver, Hands};

/// Unanswered heartbeats that are remembered. An answer to an older one renews nothing.
const UNANSWERED: usize = 1024;

impl<H: Hands, C: Clock> Driver<H, C> {
    /// One heartbeat renews every lease that is still wanted.
    pub(super) fn beat(&mut self) {
        let now = self.clock.boot();
        let claims = self.works.values().filter(|work| work.wants_lease());
        let claims = claims.map(|work| claim_to_wire(work.assignment.claim)).collect();
        let Some(live) = self.session.as_mut().filter(|live| live.next_heartbeat <= now) else { return };
        live.number += 1;
        live.next_heartbeat = Boot(now.0 + live.heartbeat.0);
        live.sent.insert(live.number, now);
        while live.sent.len() > UNANSWERED {
            live.sent.pop_first();
        }
        let begins_no_step = !self.verdict.can_begin;
        let no_room = self.room.lack().map(|why| v1::NoRoom { why, begins_no_step });
        let heartbeat = v1::Heartbeat { number: live.number, claims, no_room };
        self.say(connect_request::Message::Heartbeat(heartbeat));
    }

    /// Leases count from when the heartbeat was sent, less a margin: the coordinator counts from its receipt, plus one.
    pub(super) fn renewed(&mut self, number: u64, leases: Vec<(Claim, Option<Millis>)>, batch: &mut Batch) {
        let Some(live) = &mut self.session else { return };
        let sent = live.sent.remove(&number);
        live.sent.retain(|earlier, _| *earlier > number);
        let mut lost_with_process = false;
        for (claim, ttl) in leases.into_iter().filter(|(claim, _)| self.holds(*claim)).collect::<Vec<_>>() {
            let input = match (ttl, sent) {
                (Some(ttl), Some(sent)) => {
                    self.is_leased(claim.attempt);
                    Input::Renewed { until: until(sent, ttl) }
                }
                // An answer to no heartbeat of this session renews nothing.
                (Some(_), None) => continue,
                (None, _) => {
                    let lost_here = sent.is_some() && self.was_leased_here(claim.attempt);
                    lost_with_process |= lost_here && self.may_be_changing(claim);
                    Input::Superseded
                }
            };
            self.decide(claim.attempt, input, batch);
        }
        if lost_with_process {
            self.leave();
        }
    }

    pub(super) fn is_leased(&mut self, attempt: AttemptId) {
        if let Some(live) = &mut self.session {
            live.leased.insert(attempt);
        }
    }

    fn was_leased_here(&self, attempt: AttemptId) -> bool {
        self.session.as_ref().is_some_and(|live| live.leased.contains(&attempt))
    }

    fn may_be_changing(&self, claim: Claim) -> bool {
        self.works.get(&claim.attempt).is_some_and(|work| work.may_run() && work.mutates())
    }

    /// The lease lapsed in a session that outlived it, as when this host stood still: that the process still runs is said by a
    /// Hello alone, and somebody may wait for it. What is unsaid is in the outbox.
    fn leave(&mut self) {
        if let Some(live) = self.session.take() {
            tracing::info!(session = %live.id, "an attempt lost its lease while its process may run: a new session tells of it");
        }
    }
}

/// The agent's own count ends a tenth early, and never less than a fifth of a second.
pub(super) fn until(from: Boot, ttl: Millis) -> Boot {
    let margin = (ttl.0 / 10).max(200);
    Boot(from.0.saturating_add(ttl.0.saturating_sub(margin)))
}

/// When the agent's own count of the lease ends.
pub(super) fn lease_end(work: &Work) -> Option<Boot> {
    match work.lease {
        LeaseCount::Until(until) => Some(until),
        LeaseCount::NotLive | LeaseCount::Superseded => None,
    }
}
