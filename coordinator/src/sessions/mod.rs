//! Agents and their live sessions.
//!
//! An agent has at most one live session: a newer `Hello` of the same process takes the older one's place, one of another
//! process only what has ended: see [`beside`]. The driver sends through here on its own thread, so nothing here waits: a
//! message goes into the session's bounded queue or is lost, and what is lost is derived again from the committed state.

mod beside;
mod fit;
mod known;
pub mod mass_loss;
mod message;
mod offers;
mod outgoing;
mod pattern;
mod profile;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdfast_common::code::Code;
use holdfast_common::id::{AgentName, EvidenceId, IncarnationId, SessionId, TargetName};
use holdfast_common::text::{bounded, one_line};
use holdfast_common::time::Wall;
use holdfast_coordinator_core::input::Finding;
use holdfast_coordinator_core::{Effect, TargetState};
use holdfast_proto::v1;
use tokio::sync::oneshot;

use crate::crash::{CrashPoint, reached};
use known::{Known, Live};
use mass_loss::MassLoss;

pub use known::{Absence, AgentStatus, Drained, Standing};
pub use mass_loss::{Bounds, Change, Suspicion};
pub use outgoing::{Answers, Outgoing, QUEUE};
pub(crate) use pattern::fits;
pub use profile::{Profile, Unfit};

/// Longest text that is kept of what an agent has no room for, in bytes.
const LONGEST_WHY: usize = 256;

/// Every agent that was ever heard of, and the session of those in contact.
#[derive(Debug)]
pub struct Directory {
    agents: Mutex<BTreeMap<AgentName, Known>>,
    /// Locked after the agents, where both are.
    mass_loss: Mutex<MassLoss>,
    /// How often an agent could not take what looked for one, by [`Unfit::WORDS`].
    passed_over: [AtomicU64; Unfit::WORDS.len()],
    since: Instant,
}

impl Default for Directory {
    fn default() -> Self {
        Self::new(Bounds::default())
    }
}

impl Directory {
    /// Of nobody yet.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self {
            agents: Mutex::default(),
            mass_loss: Mutex::new(MassLoss::new(bounds)),
            passed_over: Default::default(),
            since: Instant::now(),
        }
    }

    /// Lets an agent have nothing new, or new work again; the agent is told. False if there is no such agent.
    pub fn drain(&self, name: &AgentName, drained: Option<Drained>) -> bool {
        let mut agents = self.lock();
        let Some(known) = agents.get_mut(name) else { return false };
        if let Some(live) = &known.live {
            live.outgoing.send(Drained::message(drained.as_ref()));
        }
        known.drained = drained;
        true
    }

    /// The agent's session is ending, and it said when it will be back.
    pub fn absent(&self, name: &AgentName, absence: Absence) {
        if let Some(known) = self.lock().get_mut(name) {
            known.absence = Some(absence);
        }
    }

    /// The agent answered an offer. Says whether it gets offers again that it did not get before.
    pub fn offer_answered(&self, name: &AgentName, session: SessionId) -> bool {
        let mut agents = self.lock();
        let live = agents.get_mut(name).and_then(|known| known.live.as_mut());
        live.filter(|live| live.session == session).is_some_and(|live| live.offers.answered(Instant::now()))
    }

    /// Puts an agent in that the store knows from earlier runs. It has no contact until it speaks.
    pub fn remember(&self, name: AgentName, profile: Profile, last_heard: Wall) {
        self.lock().entry(name).or_insert_with(|| Known::new(profile, last_heard));
    }

    /// What the agent's identity is now. Of one that was never heard of, nothing is kept: it is told at its Hello.
    pub fn stand(&self, name: &AgentName, standing: Standing) {
        if let Some(known) = self.lock().get_mut(name) {
            known.standing = standing;
        }
    }

    /// Begins a session of an agent that said this of itself, and is that. `welcome` is its first message; an older session of
    /// the agent is told that it was replaced. False, and nothing is begun, where one of another process has come meanwhile.
    #[must_use]
    pub fn attach(
        &self,
        name: &AgentName,
        hello: (Profile, Standing),
        session: SessionId,
        outgoing: &Outgoing,
        welcome: v1::Welcome,
        now: Wall,
    ) -> bool {
        let (profile, standing) = hello;
        let mut agents = self.lock();
        if agents.get(name).is_some_and(|known| known.is_beside(&profile.instance)) {
            return false;
        }
        outgoing.send(v1::connect_response::Message::Welcome(welcome));
        let drained = agents.get(name).and_then(|known| known.drained.clone());
        if drained.is_some() {
            outgoing.send(Drained::message(drained.as_ref()));
        }
        let live = Some(Live::new(session, outgoing.clone()));
        let known = Known { spoke: true, live, standing, drained, ..Known::new(profile, now) };
        let older = agents.insert(name.clone(), known).and_then(|known| known.live);
        if older.is_none() {
            self.losses().came(name);
        }
        drop(agents);
        if let Some(older) = older {
            tracing::info!(agent = %name, "a newer session of the agent takes over");
            older.outgoing.bye(Code::SessionReplaced, Code::SessionReplaced.title());
        }
        true
    }

    /// An agent came and speaks none of our versions. It has no session, and is shown with why. Says whether that is news.
    pub fn speaks_otherwise(&self, name: &AgentName, profile: Profile, versions: Vec<u32>, now: Wall) -> bool {
        let mut agents = self.lock();
        let known = agents.entry(name.clone()).or_insert_with(|| Known::new(profile, now));
        // Another process with its certificate says nothing of the one in contact.
        if known.live.is_some() || known.speaks.as_ref() == Some(&versions) {
            return false;
        }
        known.speaks = Some(versions);
        true
    }

    /// The driver knows of the agent's session.
    pub fn stands(&self, name: &AgentName) {
        if let Some(live) = self.lock().get_mut(name).and_then(|known| known.live.as_mut()) {
            live.stands = true;
        }
    }

    /// Ends a session, unless another one of the agent has taken its place. Says whether it did.
    pub fn detach(&self, name: &AgentName, session: SessionId) -> bool {
        let mut agents = self.lock();
        let Some(known) = agents.get_mut(name) else { return false };
        match &known.live {
            Some(live) if live.session == session => {
                live.outgoing.close();
                known.live = None;
                match known.absence {
                    Some(_) => self.losses().left(),
                    None => self.losses().fell_silent(name, self.since.elapsed()),
                }
                true
            }
            Some(_) | None => false,
        }
    }

    /// Notes a sign of life, for people.
    pub fn heard(&self, name: &AgentName, session: SessionId, now: Wall) {
        if let Some(known) = self.lock().get_mut(name)
            && known.live.as_ref().is_some_and(|live| live.session == session)
        {
            known.last_heard = now;
        }
    }

    /// What its host has no room for, as a heartbeat of this session said. The text is made fit for people.
    pub fn has_room(&self, name: &AgentName, session: SessionId, no_room: Option<v1::NoRoom>) {
        if let Some(known) = self.lock().get_mut(name)
            && known.live.as_ref().is_some_and(|live| live.session == session)
        {
            let fit = |said: v1::NoRoom| v1::NoRoom { why: bounded(&one_line(&said.why), LONGEST_WHY), ..said };
            known.no_room = no_room.map(fit);
        }
    }

    /// What the agent's host has no room for, while it is in contact.
    #[must_use]
    pub fn no_room(&self, name: &AgentName) -> Option<v1::NoRoom> {
        self.lock().get(name).filter(|known| known.live.is_some())?.no_room.clone()
    }

    /// The journal of the agent's last `Hello` to this coordinator, in contact or not.
    #[must_use]
    pub fn last_incarnation(&self, name: &AgentName) -> Option<IncarnationId> {
        let agents = self.lock();
        agents.get(name).filter(|known| known.spoke).map(|known| known.profile.incarnation)
    }

    /// Whether the agent has a session now.
    #[must_use]
    pub fn is_in_contact(&self, name: &AgentName) -> bool {
        self.lock().get(name).is_some_and(|known| known.live.is_some())
    }

    /// When the agent was last heard, for people.
    #[must_use]
    pub fn last_heard(&self, name: &AgentName) -> Option<Wall> {
        self.lock().get(name).map(|known| known.last_heard)
    }

    /// The target of an inquiry that was sent in this session; `None` for any other.
    #[must_use]
    pub fn asked(&self, name: &AgentName, session: SessionId, inquiry: EvidenceId) -> Option<TargetName> {
        let agents = self.lock();
        let live = agents.get(name)?.live.as_ref().filter(|live| live.session == session)?;
        live.asked.get(&inquiry).cloned()
    }

    /// Asks an agent in contact for a look that nothing hangs on. Nobody hears of it if the session ends.
    #[must_use]
    pub fn look(&self, name: &AgentName, id: EvidenceId, inquiry: v1::Inquiry) -> Option<oneshot::Receiver<Finding>> {
        let mut agents = self.lock();
        let live = agents.get_mut(name)?.live.as_mut()?;
        live.looks.retain(|_, waiting| !waiting.is_closed());
        if live.looks.len() >= known::MAX_ASKED {
            return None;
        }
        let (answer, waiting) = oneshot::channel();
        live.looks.insert(id, answer);
        live.outgoing.send(v1::connect_response::Message::Inquiry(inquiry));
        Some(waiting)
    }

    /// Gives an answer to whoever waits for that look in this session; gives it back where nobody does.
    pub fn looked(&self, name: &AgentName, session: SessionId, id: EvidenceId, finding: Finding) -> Option<Finding> {
        let mut agents = self.lock();
        let live = agents.get_mut(name).and_then(|known| known.live.as_mut());
        match live.filter(|live| live.session == session).and_then(|live| live.looks.remove(&id)) {
            Some(waiting) => {
                let _nobody_waits_any_more = waiting.send(finding);
                None
            }
            None => Some(finding),
        }
    }

    /// Looks again whether so many fell silent at once that the coordinator is to suspect itself.
    pub fn look_for_mass_loss(&self) -> Option<Change> {
        self.losses().look(self.since.elapsed())
    }

    /// Whether the coordinator suspects itself.
    #[must_use]
    pub fn suspicion(&self) -> Option<Suspicion> {
        self.losses().suspicion()
    }

    /// How many agents were ever heard of.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// Every agent, by name.
    #[must_use]
    pub fn list(&self) -> Vec<AgentStatus> {
        self.lock().iter().map(|(name, known)| known.status(name)).collect()
    }

    /// Ends every session with a word.
    pub fn close_all(&self, code: Code, detail: &str) {
        let live: Vec<Live> = self.lock().values_mut().filter_map(|known| known.live.take()).collect();
        live.iter().for_each(|live| live.outgoing.bye(code, detail));
    }

    /// Puts the message of an effect into its agent's session; without one it is lost.
    pub fn send(&self, state: &TargetState, effect: &Effect) {
        use CrashPoint as P;
        let (agent, incarnation, inquiry, before, after) = match effect {
            Effect::Assign { .. } | Effect::Recover { .. } => return,
            Effect::Offer { agent, incarnation, .. } => {
                (agent, Some(*incarnation), None, P::BeforeOffer, P::AfterOffer)
            }
            Effect::Cancel { agent, .. } => (agent, None, None, P::BeforeCancel, P::AfterCancel),
            Effect::Inquire { agent, inquiry, .. } => (agent, None, Some(*inquiry), P::BeforeInquiry, P::AfterInquiry),
        };
        let mut agents = self.lock();
        let Some(known) = agents.get_mut(agent) else { return };
        if incarnation.is_some_and(|wanted| wanted != known.profile.incarnation) {
            return;
        }
        let standing = known.live.as_mut().filter(|live| live.stands);
        let (Some(live), Some(message)) = (standing, message::of(state, effect)) else { return };
        if let v1::connect_response::Message::Offer(offer) = &message {
            live.offers
                .sent(Instant::now(), offer.ttl.map(Duration::try_from).and_then(Result::ok).unwrap_or_default());
        }
        if let Some(inquiry) = inquiry {
            live.remember(inquiry, state.spec.name.clone());
        }
        reached(before);
        live.outgoing.send(message);
        reached(after);
    }

    fn losses(&self) -> MutexGuard<'_, MassLoss> {
        self.mass_loss.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AgentName, Known>> {
        // Nothing in here leaves an entry half changed when it panics.
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
