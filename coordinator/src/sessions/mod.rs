//! Agents and their live sessions.
//!
//! An agent has at most one live session: a newer `Hello` of the same process takes the older one's place, one of another
//! process only what has ended: see [`beside`]. The driver sends through here on its own thread, so nothing here waits: a message goes into the session's bounded queue
//! or is lost, and what is lost is derived again from the committed state.

mod beside;
pub mod mass_loss;
mod message;
mod offers;
mod outgoing;
mod pattern;
mod profile;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use holdfast_common::adapter::Adapter;
use holdfast_common::code::Code;
use holdfast_common::id::{AgentName, EvidenceId, IncarnationId, OperatorName, ResourceName, SessionId, TargetName};
use holdfast_common::spec::{Reach, TargetSpec};
use holdfast_common::text::{bounded, one_line};
use holdfast_common::time::Wall;
use holdfast_coordinator_core::identity::{Identity, Lock};
use holdfast_coordinator_core::input::{Candidate, Finding};
use holdfast_coordinator_core::{Effect, TargetState};
use holdfast_proto::convert::wall_to_wire;
use holdfast_proto::v1;
use tokio::sync::oneshot;

use crate::crash::{CrashPoint, reached};
use crate::grpc::view::instant;
use mass_loss::MassLoss;
use offers::Offers;

pub use mass_loss::{Bounds, Change, Suspicion};
pub use outgoing::{Answers, Outgoing, QUEUE};
pub(crate) use pattern::fits;
pub use profile::{Profile, Unfit};

/// Inquiries that a session remembers to have been asked.
const MAX_ASKED: usize = 1024;

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

/// One agent.
#[derive(Debug)]
struct Known {
    profile: Profile,
    /// Whether the profile is from a `Hello` of this run, not from the store.
    spoke: bool,
    last_heard: Wall,
    live: Option<Live>,
    standing: Standing,
    /// An operator lets it have nothing new.
    drained: Option<Drained>,
    /// It said that it goes and will be back, and was not heard since.
    absence: Option<Absence>,
    /// The versions of the protocol that its last Hello named, where none of them is ours.
    speaks: Option<Vec<u32>>,
    /// What its host has no room for, as its last heartbeat said.
    no_room: Option<v1::NoRoom>,
}

/// What of an agent's identity decides whether it gets work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// A copy of it was seen.
    pub lock: Option<Lock>,
    /// When its machine was last seen to be another one, for people.
    pub moved_at: Option<Wall>,
    /// Its certificates open nothing any more.
    pub removed: bool,
    /// Of its join token: what targets select it by, whatever it says of itself.
    pub labels: Option<BTreeMap<String, String>>,
}

impl From<&Identity> for Standing {
    fn from(identity: &Identity) -> Self {
        Self {
            lock: identity.lock.clone(),
            moved_at: identity.moved_at,
            removed: identity.removed.is_some(),
            labels: identity.enrolled.as_ref().map(|enrolled| enrolled.labels.clone()),
        }
    }
}

impl Standing {
    /// Why it gets no work, in words.
    fn unfit(&self) -> Option<String> {
        match (self.removed, &self.lock) {
            (true, _) => Some("it was removed".to_owned()),
            (false, Some(lock)) => Some(format!("identity locked: {} was seen", lock.copied.words())),
            (false, None) => None,
        }
    }
}

/// An operator lets an agent have nothing new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Who said so.
    pub by: OperatorName,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: Wall,
}

impl Drained {
    fn message(drained: Option<&Self>) -> v1::connect_response::Message {
        let drain = match drained {
            Some(Drained { by, reason, since }) => v1::Drain {
                drained: true,
                by: by.to_string(),
                reason: reason.clone(),
                since: Some(wall_to_wire(*since)),
            },
            None => v1::Drain::default(),
        };
        v1::connect_response::Message::Drain(drain)
    }
}

/// A planned absence of an agent, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Absence {
    /// When it said so.
    pub since: Wall,
    /// When it should be back, as it said.
    pub back_by: Wall,
}

#[derive(Debug)]
struct Live {
    session: SessionId,
    outgoing: Outgoing,
    /// Whether the driver knows of it. Until then nothing that is due is sent: all of it is, once it does.
    stands: bool,
    asked: BTreeMap<EvidenceId, TargetName>,
    offers: Offers,
    /// Looks that somebody waits for; their answers are shown and not kept.
    looks: BTreeMap<EvidenceId, oneshot::Sender<Finding>>,
    /// Those who asked whether its process is still there.
    pings: BTreeMap<u64, oneshot::Sender<()>>,
    /// How often that was asked.
    pinged: u64,
}

/// What is known of an agent, for a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentStatus {
    /// Its name.
    pub name: AgentName,
    /// What it said of itself.
    pub profile: Profile,
    /// When it was last heard, for people.
    pub last_heard: Wall,
    /// Whether it has a session now.
    pub connected: bool,
    /// What its identity is.
    pub standing: Standing,
    /// An operator lets it have nothing new.
    pub drained: Option<Drained>,
    /// It said that it goes and will be back, and was not heard since.
    pub absence: Option<Absence>,
    /// What its host has no room for, while it is in contact.
    pub no_room: Option<v1::NoRoom>,
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
        self.lock().entry(name).or_insert(Known {
            profile,
            spoke: false,
            last_heard,
            live: None,
            standing: Standing::default(),
            drained: None,
            absence: None,
            speaks: None,
            no_room: None,
        });
    }

    /// What the agent's identity is now. Of one that was never heard of, nothing is kept: it is told at its Hello.
    pub fn stand(&self, name: &AgentName, standing: Standing) {
        if let Some(known) = self.lock().get_mut(name) {
            known.standing = standing;
        }
    }

    /// Begins a session of an agent that said this of itself, and is that. `welcome` is its first message; an older session of the agent is told that it was replaced.
    /// False, and nothing is begun, where one of another process has come meanwhile.
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
        let (asked, looks, pings) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let offers = Offers::default();
        let live =
            Some(Live { session, outgoing: outgoing.clone(), stands: false, asked, offers, looks, pings, pinged: 0 });
        let drained = agents.get(name).and_then(|known| known.drained.clone());
        if drained.is_some() {
            outgoing.send(Drained::message(drained.as_ref()));
        }
        let known = Known {
            profile,
            spoke: true,
            last_heard: now,
            live,
            standing,
            drained,
            absence: None,
            speaks: None,
            no_room: None,
        };
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
        let fresh = Known {
            profile,
            spoke: false,
            last_heard: now,
            live: None,
            standing: Standing::default(),
            drained: None,
            absence: None,
            speaks: None,
            no_room: None,
        };
        let known = agents.entry(name.clone()).or_insert(fresh);
        // Another process with its certificate says nothing of the one in contact.
        if known.live.is_some() || known.speaks.as_ref() == Some(&versions) {
            return false;
        }
        known.speaks = Some(versions);
        true
    }

    /// How often an agent could not take what looked for one, by [`Unfit::WORDS`].
    #[must_use]
    pub fn passed_over(&self) -> [u64; Unfit::WORDS.len()] {
        self.passed_over.each_ref().map(|count| count.load(Ordering::Relaxed))
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
        if live.looks.len() >= MAX_ASKED {
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
        let status = |(name, known): (&AgentName, &Known)| AgentStatus {
            name: name.clone(),
            profile: known.profile.clone(),
            last_heard: known.last_heard,
            connected: known.live.is_some(),
            standing: known.standing.clone(),
            drained: known.drained.clone(),
            absence: known.absence.filter(|_| known.live.is_none()),
            no_room: known.no_room.clone().filter(|_| known.live.is_some()),
        };
        self.lock().iter().map(status).collect()
    }

    /// Ends every session with a word.
    pub fn close_all(&self, code: Code, detail: &str) {
        let live: Vec<Live> = self.lock().values_mut().filter_map(|known| known.live.take()).collect();
        live.iter().for_each(|live| live.outgoing.bye(code, detail));
    }

    /// Every agent that the target's selector matches, by name, with why it can't take work of it that needs these adapters.
    #[must_use]
    pub fn candidates(&self, target: &TargetSpec, needs: &BTreeSet<Adapter>) -> Vec<Candidate> {
        let agents = self.lock();
        agents
            .iter()
            .filter(|(_, known)| known.profile.matches(target))
            .map(|(name, known)| Candidate {
                agent: name.clone(),
                incarnation: known.live.as_ref().map(|_| known.profile.incarnation),
                unfit: self.told(known, target, needs),
            })
            .collect()
    }

    /// Agents in contact that reach the resource, by name. A host-bound resource is reached from its own host only.
    #[must_use]
    pub fn reachable(&self, target: &TargetSpec, resource: &ResourceName, home: Option<&AgentName>) -> Vec<AgentName> {
        let Some(spec) = target.resource(resource) else { return Vec::new() };
        let agents = self.lock();
        let at_home = |name: &AgentName| match spec.reach {
            Reach::Host => home == Some(name),
            Reach::Shared => true,
        };
        agents
            .iter()
            .filter(|(name, known)| {
                let profile = &known.profile;
                known.live.is_some()
                    && known.standing.unfit().is_none()
                    && at_home(name)
                    && profile.matches(target)
                    && profile.allows(&target.name)
                    && profile.offers(spec)
            })
            .map(|(name, _)| name.clone())
            .collect()
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

    /// In words, and counted where contact would not help.
    fn told(&self, known: &Known, target: &TargetSpec, needs: &BTreeSet<Adapter>) -> Option<String> {
        match known.unfit(target, needs) {
            Ok(()) => None,
            Err(Lacks::Contact(why)) => Some(why),
            Err(Lacks::Fitness(why)) => {
                self.passed_over[why.place()].fetch_add(1, Ordering::Relaxed);
                Some(why.to_string())
            }
        }
    }

    fn losses(&self) -> MutexGuard<'_, MassLoss> {
        self.mass_loss.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AgentName, Known>> {
        // Nothing in here leaves an entry half changed when it panics.
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What keeps an agent from work.
enum Lacks {
    /// For now: contact, or somebody's word.
    Contact(String),
    /// What it can do.
    Fitness(Unfit),
}

impl Known {
    fn unfit(&self, target: &TargetSpec, needs: &BTreeSet<Adapter>) -> Result<(), Lacks> {
        if let Some(why) = self.standing.unfit() {
            return Err(Lacks::Contact(why));
        }
        if let Some(Drained { by, reason, since }) = &self.drained {
            return Err(Lacks::Contact(format!("drained since {} by {by}: {reason}", instant(*since))));
        }
        match (&self.live, &self.speaks, self.absence) {
            (Some(live), _, _) => {
                if let Some(count) = live.offers.ignored(Instant::now()) {
                    let why = format!("it has not answered its last {count} offers: it gets none until it does");
                    return Err(Lacks::Contact(why));
                }
                self.profile.unfit(target, needs).map_or(Ok(()), |why| Err(Lacks::Fitness(why)))
            }
            (None, Some(versions), _) => Err(Lacks::Fitness(Unfit::Protocol(versions.clone()))),
            (None, None, Some(Absence { since, back_by })) => {
                Err(Lacks::Contact(format!("away by plan since {}, back by {}", instant(since), instant(back_by))))
            }
            (None, None, None) if self.spoke => Err(Lacks::Contact("no contact: its session is over".to_owned())),
            (None, None, None) => Err(Lacks::Contact("no contact since the coordinator started".to_owned())),
        }
    }
}

impl Live {
    fn remember(&mut self, inquiry: EvidenceId, target: TargetName) {
        while self.asked.len() >= MAX_ASKED {
            self.asked.pop_first();
        }
        self.asked.insert(inquiry, target);
    }
}
