//! Whether the process of an older session is still there, when another one says that it is the same agent.
//!
//! ```text
//!   newer process          coordinator              older process
//!     Hello  ------------------>
//!                               ------ Ping --------->          asked after the Hello has come,
//!                               <----- Pong ----------          so it is beside the newer one, and one of them is a copy
//!                               <----- end of its connection    it is gone: the newer one is welcome
//!     "try again" <------------ neither                         nobody is welcomed: keepalive ends a connection that leads nowhere
//! ```

use std::time::Duration;

use holdfast_common::id::AgentName;
use holdfast_coordinator_core::identity::Older;
use holdfast_proto::v1;
use tokio::sync::oneshot;

use super::known::Known;
use super::{Directory, Outgoing};

/// Longest wait for the answer. Shorter than an agent waits for its Welcome, and than keepalive takes to end a connection.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

impl Known {
    /// Whether it has a session of another process than this one.
    pub(super) fn is_beside(&self, instance: &str) -> bool {
        let stands = self.live.as_ref().is_some_and(|live| !live.outgoing.is_over());
        stands && self.profile.is_of_another_process(instance)
    }
}

impl Directory {
    /// What there is of an older session, for a Hello of that process. An older one of another process is asked; whoever says the
    /// Hello waits meanwhile.
    pub async fn older(&self, name: &AgentName, instance: &str, newer: &Outgoing) -> Older {
        let (older, pong) = match self.ping(name, instance) {
            Ok(asked) => asked,
            Err(older) => return older,
        };
        tokio::select! {
            // An answer that is here counts, also if the connection has ended since.
            biased;
            pong = pong => if pong.is_ok() { Older::Answers } else { Older::None },
            () = older.over() => Older::None,
            () = newer.over() => Older::Silent,
            () = tokio::time::sleep(ANSWER_WITHIN) => Older::Silent,
        }
    }

    /// The agent's process is there.
    pub fn pong(&self, name: &AgentName, session: holdfast_common::id::SessionId, number: u64) {
        let mut agents = self.lock();
        let live = agents.get_mut(name).and_then(|known| known.live.as_mut());
        let asker = live.filter(|live| live.session == session).and_then(|live| live.pings.remove(&number));
        let _nobody_waits_any_more = asker.map(|asker| asker.send(()));
    }

    fn ping(&self, name: &AgentName, instance: &str) -> Result<(Outgoing, oneshot::Receiver<()>), Older> {
        let mut agents = self.lock();
        let Some(known) = agents.get_mut(name) else { return Err(Older::None) };
        let is_beside = known.is_beside(instance);
        let Some(live) = known.live.as_mut().filter(|live| !live.outgoing.is_over()) else { return Err(Older::None) };
        if !is_beside {
            return Err(Older::Yields);
        }
        live.pings.retain(|_, asker| !asker.is_closed());
        live.pinged += 1;
        let (asker, pong) = oneshot::channel();
        live.pings.insert(live.pinged, asker);
        live.outgoing.send(v1::connect_response::Message::Ping(v1::Ping { number: live.pinged }));
        Ok((live.outgoing.clone(), pong))
    }
}
