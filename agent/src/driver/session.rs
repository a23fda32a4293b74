//! The live session, and what ends it.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_agent_core::Input;
use holdfast_agent_core::work::Boot;
use holdfast_common::id::{AttemptId, SessionId};
use holdfast_common::time::Millis;
use holdfast_proto::v1::{ConnectRequest, connect_request};
use tokio::sync::mpsc;

use super::batch::Batch;
use super::{Clock, Driver, Hands};
use crate::journal::Position;
use crate::session::Welcome;

/// The live session.
pub(super) struct Live {
    pub(super) id: SessionId,
    outgoing: mpsc::Sender<ConnectRequest>,
    pub(super) heartbeat: Millis,
    pub(super) max_text: usize,
    pub(super) next_heartbeat: Boot,
    pub(super) number: u64,
    /// When each unanswered heartbeat was sent: leases count from then.
    pub(super) sent: BTreeMap<u64, Boot>,
    /// Attempts whose lease was given or renewed in this session: its Hello said nothing of their loss.
    pub(super) leased: BTreeSet<AttemptId>,
}

impl<H: Hands, C: Clock> Driver<H, C> {
    pub(super) fn is_live(&self, session: SessionId) -> bool {
        self.session.as_ref().is_some_and(|live| live.id == session)
    }

    /// A coordinator that is behind what was seen has travelled in time: this agent says nothing to it.
    pub(super) fn up(&mut self, welcome: Welcome, outgoing: mpsc::Sender<ConnectRequest>, batch: &mut Batch) {
        let position = Position { store: welcome.store, epoch: welcome.epoch, commit: welcome.commit };
        if let Some(seen) = self.position.filter(|seen| is_behind(position, *seen)) {
            tracing::error!(?seen, ?position, "the coordinator is behind what this agent has seen: not talking to it");
            return;
        }
        if self.exit.going.is_cancelled() {
            return;
        }
        let now = self.clock.boot();
        self.token = welcome.token;
        self.position = Some(position);
        batch.welcomed = true;
        self.metrics.session_began();
        // Who is drained hears of it in each session.
        self.drained = None;
        self.session = Some(Live {
            id: welcome.session,
            outgoing,
            heartbeat: welcome.heartbeat,
            max_text: welcome.max_text_bytes,
            next_heartbeat: now,
            number: 0,
            sent: BTreeMap::new(),
            leased: BTreeSet::new(),
        });
        batch.replay = true;
        self.session_is(Some(welcome.session), batch);
    }

    pub(super) fn session_is(&mut self, session: Option<SessionId>, batch: &mut Batch) {
        if session.is_none() {
            self.session = None;
        }
        for attempt in self.works.keys().copied().collect::<Vec<_>>() {
            self.decide(attempt, Input::Session(session), batch);
        }
    }

    /// A full or closed session is no session: what was to be said is in the outbox, or is asked again in the next one.
    pub(super) fn say(&mut self, message: connect_request::Message) {
        let Some(live) = &self.session else { return };
        if live.outgoing.try_send(ConnectRequest { message: Some(message) }).is_err() {
            tracing::warn!(session = %live.id, "the session takes no more messages: leaving it");
            self.session = None;
        }
    }
}

fn is_behind(position: Position, seen: Position) -> bool {
    position.store != seen.store || (position.epoch, position.commit) < (seen.epoch, seen.commit)
}
