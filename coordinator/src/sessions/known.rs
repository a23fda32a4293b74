//! What is known of one agent, in contact or not.

use std::collections::BTreeMap;

use holdfast_common::id::{AgentName, EvidenceId, OperatorName, SessionId, TargetName};
use holdfast_common::time::Wall;
use holdfast_coordinator_core::identity::{Identity, Lock};
use holdfast_coordinator_core::input::Finding;
use holdfast_proto::convert::wall_to_wire;
use holdfast_proto::v1;
use tokio::sync::oneshot;

use super::offers::Offers;
use super::{Outgoing, Profile};

/// Inquiries that a session remembers to have been asked.
pub(super) const MAX_ASKED: usize = 1024;

/// One agent.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) profile: Profile,
    /// Whether the profile is from a `Hello` of this run, not from the store.
    pub(super) spoke: bool,
    pub(super) last_heard: Wall,
    pub(super) live: Option<Live>,
    pub(super) standing: Standing,
    /// An operator lets it have nothing new.
    pub(super) drained: Option<Drained>,
    /// It said that it goes and will be back, and was not heard since.
    pub(super) absence: Option<Absence>,
    /// The versions of the protocol that its last Hello named, where none of them is ours.
    pub(super) speaks: Option<Vec<u32>>,
    /// What its host has no room for, as its last heartbeat said.
    pub(super) no_room: Option<v1::NoRoom>,
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
    pub(super) fn unfit(&self) -> Option<String> {
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
    pub(super) fn message(drained: Option<&Self>) -> v1::connect_response::Message {
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

/// A session.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) session: SessionId,
    pub(super) outgoing: Outgoing,
    /// Whether the driver knows of it. Until then nothing that is due is sent: all of it is, once it does.
    pub(super) stands: bool,
    pub(super) asked: BTreeMap<EvidenceId, TargetName>,
    pub(super) offers: Offers,
    /// Looks that somebody waits for; their answers are shown and not kept.
    pub(super) looks: BTreeMap<EvidenceId, oneshot::Sender<Finding>>,
    /// Those who asked whether its process is still there.
    pub(super) pings: BTreeMap<u64, oneshot::Sender<()>>,
    /// How often that was asked.
    pub(super) pinged: u64,
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

impl Known {
    /// One that said this of itself, as far as is known, and has no contact.
    pub(super) fn new(profile: Profile, last_heard: Wall) -> Self {
        Self {
            profile,
            spoke: false,
            last_heard,
            live: None,
            standing: Standing::default(),
            drained: None,
            absence: None,
            speaks: None,
            no_room: None,
        }
    }

    /// For a list.
    pub(super) fn status(&self, name: &AgentName) -> AgentStatus {
        AgentStatus {
            name: name.clone(),
            profile: self.profile.clone(),
            last_heard: self.last_heard,
            connected: self.live.is_some(),
            standing: self.standing.clone(),
            drained: self.drained.clone(),
            absence: self.absence.filter(|_| self.live.is_none()),
            no_room: self.no_room.clone().filter(|_| self.live.is_some()),
        }
    }
}

impl Live {
    /// One that the driver does not know of yet.
    pub(super) fn new(session: SessionId, outgoing: Outgoing) -> Self {
        let (asked, looks, pings) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { session, outgoing, stands: false, asked, offers: Offers::default(), looks, pings, pinged: 0 }
    }

    /// That inquiry was sent, about that target.
    pub(super) fn remember(&mut self, inquiry: EvidenceId, target: TargetName) {
        while self.asked.len() >= MAX_ASKED {
            self.asked.pop_first();
        }
        self.asked.insert(inquiry, target);
    }
}
