//! Who an agent is, and whether a Hello is its own or a copy's.
//!
//! ```text
//!   Hello of the same journal, from where it stood or later, with a token that it has     known: welcome
//!   Hello of another journal, of one that is behind, or with a token that it had          copied: refused, locked
//!   the same of another process, while the one in contact answers                         copied: refused, locked
//!   the same of another process, while the one in contact neither answers nor has ended   waits: refused for now
//! ```
//!
//! A token is known to be kept when the agent says so, or presents it. Tokens that were sent since count too: a connection
//! can break between the moment that a journal has one and the moment that anybody hears of it. Once locked an identity stays so
//! until a person unlocks it; whoever holds the latest token goes on with what it has meanwhile.

use std::collections::BTreeMap;

use holdfast_common::id::{IncarnationId, OperatorName};
use holdfast_common::time::Wall;
use serde::{Deserialize, Serialize};

/// Tokens that were sent and not seen to be kept. The oldest go.
const MOST_OFFERED: usize = 16;

/// What is kept of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    /// Its enrolment by this coordinator's own authority; `None` for a certificate from elsewhere.
    pub enrolled: Option<Enrolled>,
    /// By which its machine is known again; empty where nobody told.
    pub machine: String,
    /// When the machine was last seen to be another one, for people.
    pub moved_at: Option<Wall>,
    /// Where its journal was last seen; `None` before its first Hello.
    pub journal: Option<Journal>,
    /// A copy of it was seen.
    pub lock: Option<Lock>,
    /// The last time that a person said which copy is the agent.
    pub unlocked: Option<Unlocked>,
    /// The next Hello may come from any journal.
    pub admits_new_journal: bool,
    /// Its certificates open nothing any more.
    pub removed: Option<Removed>,
    /// Certificates from before this instant that are not known one by one open nothing: its last removal.
    pub valid_since: Option<Wall>,
}

/// An enrolment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolled {
    /// What targets select it by, whatever it says itself.
    pub labels: BTreeMap<String, String>,
    /// When, for people.
    pub at: Wall,
    /// The join token that it came with.
    pub token: String,
}

/// Where a journal was last seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// Which.
    pub incarnation: IncarnationId,
    /// How many commits it had.
    pub sequence: u64,
    /// Hash of the last token that is known to be in it; `None` before the first.
    pub kept: Option<String>,
    /// Hashes of the tokens that were sent since.
    pub offered: Vec<String>,
}

/// A copy was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// When, for people.
    pub since: Wall,
    /// How it was seen.
    pub copied: Copied,
    /// The journal whose word is no proof.
    pub incarnation: IncarnationId,
}

/// A person said which copy is the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unlocked {
    /// When, for people.
    pub at: Wall,
    /// Who.
    pub by: OperatorName,
    /// The journal whose word counts again from then on.
    pub incarnation: IncarnationId,
}

/// A removal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// When, for people.
    pub at: Wall,
    /// By whom.
    pub by: OperatorName,
    /// Why.
    pub reason: String,
}

/// How a copy was seen, or a journal that can't be true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Copied {
    /// A token that its journal had before.
    OldToken,
    /// Fewer commits than it had.
    Behind,
    /// Another journal under the same certificate.
    OtherJournal,
    /// The same journal on another machine, while the agent was in contact.
    OtherMachine,
    /// The same journal in two living processes.
    OtherProcess,
    /// Its word against that of a resource.
    Contradicted,
}

impl Copied {
    /// What was seen, for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Copied::OldToken => "a session token that its journal had before",
            Copied::Behind => "a journal that is behind where it was seen before",
            Copied::OtherJournal => "another journal under the same certificate",
            Copied::Contradicted => {
                "a journal that says of a step that it never started, although its resource shows it as applied"
            }
            Copied::OtherProcess => "the same journal in another process while the agent was in contact",
            Copied::OtherMachine => "the same journal on another machine while the agent was in contact",
        }
    }
}

/// What a Hello shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Its journal.
    pub incarnation: IncarnationId,
    /// Where that stands.
    pub sequence: u64,
    /// Hash of the token; `None` where it has none.
    pub token: Option<String>,
    /// Its machine; empty where it can't tell.
    pub machine: String,
    /// What there is of an older session.
    pub older: Older,
}

/// An older session of the agent, when a Hello comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Older {
    /// There is none, or it has ended.
    None,
    /// It is of the same process, or one of the two does not tell of which: the newer one takes its place.
    Yields,
    /// It is of another process, which said after this Hello that it is there.
    Answers,
    /// It is of another process, which was asked and has not answered yet.
    Silent,
}

/// What a Hello comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Greeting {
    /// It is the agent.
    Known,
    /// It is the agent, on another machine than before.
    Moved,
    /// It may be the agent, and comes again: whether the process before it is gone is not known yet.
    Waits,
    /// It is a copy, or the agent is one.
    Copied(Copied),
}

impl Identity {
    /// Judges a Hello. If it is welcome, `offered` is the hash of the token that its Welcome carries.
    pub fn greet(&mut self, shown: &Shown, offered: String, now: Wall) -> Greeting {
        if let Some(copied) = self.copied(shown) {
            let incarnation = self.journal.as_ref().map_or(shown.incarnation, |journal| journal.incarnation);
            self.lock.get_or_insert(Lock { since: now, copied, incarnation });
            return Greeting::Copied(copied);
        }
        if shown.older == Older::Silent && !self.admits_new_journal {
            return Greeting::Waits;
        }
        self.admits_new_journal = false;
        let moved = self.is_elsewhere(shown);
        if moved {
            self.moved_at = Some(now);
        }
        if !shown.machine.is_empty() {
            self.machine.clone_from(&shown.machine);
        }
        let journal = match self.journal.take().filter(|journal| journal.incarnation == shown.incarnation) {
            Some(journal) => journal.seen(shown, offered),
            None => Journal::begun(shown, offered),
        };
        self.journal = Some(journal);
        if moved { Greeting::Moved } else { Greeting::Known }
    }

    /// Its journal's word was found to be false: locked as if it were a copy's.
    pub fn contradicted(&mut self, incarnation: IncarnationId, now: Wall) {
        self.lock.get_or_insert(Lock { since: now, copied: Copied::Contradicted, incarnation });
    }

    /// The agent's journal has the token with this hash.
    pub fn kept(&mut self, token: &str) -> bool {
        self.journal.as_mut().is_some_and(|journal| journal.keeps(token))
    }

    /// A person says which copy is the agent: what its journal says counts again from now on.
    pub fn unlock(&mut self, by: OperatorName, admits_new_journal: bool, now: Wall) {
        self.admits_new_journal = admits_new_journal;
        if let Some(Lock { incarnation, .. }) = self.lock.take() {
            self.unlocked = Some(Unlocked { at: now, by, incarnation });
        }
    }

    /// Its certificates open nothing any more.
    pub fn remove(&mut self, by: OperatorName, reason: String, now: Wall) {
        self.removed = Some(Removed { at: now, by, reason });
        self.valid_since = Some(now);
    }

    /// It joins, for the first time or anew: whatever was known of an earlier one is over, but since when certificates count.
    pub fn enrol(&mut self, enrolled: Enrolled, machine: String) {
        *self = Self { enrolled: Some(enrolled), machine, valid_since: self.valid_since, ..Self::default() };
    }

    /// Whether a join token may take the name.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.removed.is_some() || (self.enrolled.is_none() && self.journal.is_none())
    }

    fn copied(&self, shown: &Shown) -> Option<Copied> {
        let known = self.journal.as_ref()?;
        if self.admits_new_journal {
            return None;
        }
        if known.incarnation != shown.incarnation {
            // Before the first Welcome is known to be kept there is nothing that a copy could have.
            return known.kept.is_some().then_some(Copied::OtherJournal);
        }
        if shown.sequence < known.sequence {
            return Some(Copied::Behind);
        }
        if !known.has(shown.token.as_deref()) {
            return Some(Copied::OldToken);
        }
        match (shown.older, self.is_elsewhere(shown)) {
            (Older::Yields | Older::Answers, true) => Some(Copied::OtherMachine),
            (Older::Answers, false) => Some(Copied::OtherProcess),
            (Older::None | Older::Silent, _) | (Older::Yields, false) => None,
        }
    }

    fn is_elsewhere(&self, shown: &Shown) -> bool {
        !self.machine.is_empty() && !shown.machine.is_empty() && self.machine != shown.machine
    }
}

impl Journal {
    fn begun(shown: &Shown, offered: String) -> Self {
        Self { incarnation: shown.incarnation, sequence: shown.sequence, kept: None, offered: vec![offered] }
    }

    fn seen(mut self, shown: &Shown, offered: String) -> Self {
        if let Some(token) = &shown.token {
            self.keeps(token);
        }
        self.sequence = self.sequence.max(shown.sequence);
        self.offered.push(offered);
        let too_many = self.offered.len().saturating_sub(MOST_OFFERED);
        self.offered.drain(..too_many);
        self
    }

    /// Whether it may be in this journal.
    fn has(&self, token: Option<&str>) -> bool {
        token == self.kept.as_deref() || self.offered.iter().any(|offered| Some(offered.as_str()) == token)
    }

    fn keeps(&mut self, token: &str) -> bool {
        let Some(place) = self.offered.iter().position(|offered| offered == token) else { return false };
        self.kept = Some(self.offered.drain(..=place).next_back().expect("the range has its end"));
        true
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const ONE: IncarnationId = IncarnationId(Uuid::from_u128(1));

    fn anna() -> OperatorName {
        OperatorName::new("anna").expect("a name")
    }

    fn shown(token: Option<&str>) -> Shown {
        Shown {
            incarnation: ONE,
            sequence: 5,
            token: token.map(str::to_owned),
            machine: "here".to_owned(),
            older: Older::None,
        }
    }

    fn greet(identity: &mut Identity, shown: &Shown, offered: &str) -> Greeting {
        identity.greet(shown, offered.to_owned(), Wall(7))
    }

    /// Greeted, and its first token kept.
    fn known() -> Identity {
        let mut identity = Identity::default();
        assert_eq!(greet(&mut identity, &shown(None), "a"), Greeting::Known);
        assert!(identity.kept("a"));
        identity
    }

    #[test]
    fn the_latest_kept_token_and_every_one_sent_since_are_the_agents() {
        let mut identity = known();
        for offered in ["b", "c", "d"] {
            assert_eq!(greet(&mut identity, &shown(Some("a")), offered), Greeting::Known, "{offered}");
        }
        // It kept the second of them, and nobody heard.
        assert_eq!(greet(&mut identity, &shown(Some("c")), "e"), Greeting::Known);
        assert_eq!(greet(&mut identity, &shown(Some("a")), "f"), Greeting::Copied(Copied::OldToken));
    }

    #[test]
    fn a_copy_with_an_older_token_locks_the_identity_and_the_holder_of_the_latest_goes_on() {
        let mut identity = known();
        assert_eq!(greet(&mut identity, &shown(Some("a")), "b"), Greeting::Known);
        assert!(identity.kept("b"));
        for token in [Some("a"), Some("never"), None] {
            assert_eq!(greet(&mut identity, &shown(token), "x"), Greeting::Copied(Copied::OldToken), "{token:?}");
        }
        let lock = identity.lock.clone().expect("locked");
        assert_eq!((lock.copied, lock.incarnation, lock.since), (Copied::OldToken, ONE, Wall(7)));
        assert_eq!(greet(&mut identity, &shown(Some("b")), "c"), Greeting::Known);
        assert!(identity.lock.is_some(), "only a person unlocks it");
        identity.unlock(anna(), false, Wall(8));
        assert_eq!(identity.unlocked.as_ref().map(|unlocked| unlocked.incarnation), Some(ONE));
        assert_eq!(identity.lock, None);
    }

    #[test]
    fn a_journal_that_is_behind_or_another_one_is_a_copy() {
        let mut identity = known();
        let behind = Shown { sequence: 4, ..shown(Some("a")) };
        assert_eq!(greet(&mut identity, &behind, "b"), Greeting::Copied(Copied::Behind));
        let wiped = Shown { incarnation: IncarnationId(Uuid::from_u128(2)), sequence: 0, ..shown(None) };
        assert_eq!(greet(&mut identity, &wiped, "b"), Greeting::Copied(Copied::OtherJournal));
        identity.unlock(anna(), true, Wall(8));
        assert_eq!(greet(&mut identity, &wiped, "b"), Greeting::Known);
        assert!(!identity.admits_new_journal, "once");
        assert!(identity.kept("b"));
        assert_eq!(greet(&mut identity, &shown(Some("a")), "c"), Greeting::Copied(Copied::OtherJournal));
    }

    #[test]
    fn another_machine_is_a_copy_beside_the_agent_and_a_move_without_it() {
        let elsewhere = |older| Shown { machine: "there".to_owned(), older, ..shown(Some("a")) };
        for older in [Older::Yields, Older::Answers] {
            let mut identity = known();
            assert_eq!(greet(&mut identity, &elsewhere(older), "b"), Greeting::Copied(Copied::OtherMachine));
            assert_eq!(identity.machine, "here");
        }
        let mut identity = known();
        assert_eq!(greet(&mut identity, &elsewhere(Older::Silent), "b"), Greeting::Waits);
        assert_eq!(greet(&mut identity, &elsewhere(Older::None), "b"), Greeting::Moved);
        assert_eq!((identity.machine.as_str(), identity.moved_at), ("there", Some(Wall(7))));
        let silent = Shown { machine: String::new(), ..shown(Some("a")) };
        assert_eq!(greet(&mut identity, &silent, "c"), Greeting::Known, "who can't tell is told nothing of");
    }

    #[test]
    fn another_process_is_a_copy_beside_one_that_answers_waits_for_one_that_does_not_and_follows_one_that_is_gone() {
        let beside = |older| Shown { older, ..shown(Some("a")) };
        let mut identity = known();
        let before = identity.clone();
        assert_eq!(greet(&mut identity, &beside(Older::Silent), "b"), Greeting::Waits);
        assert_eq!(identity, before, "nothing is concluded of it");
        for (older, token) in [(Older::Yields, "b"), (Older::None, "c")] {
            assert_eq!(greet(&mut identity, &beside(older), token), Greeting::Known, "{older:?}");
        }
        assert_eq!(greet(&mut identity, &beside(Older::Answers), "d"), Greeting::Copied(Copied::OtherProcess));
        let lock = identity.lock.clone().expect("locked");
        assert_eq!((lock.copied, lock.incarnation), (Copied::OtherProcess, ONE));
        // A token that is over says more than who is there beside it.
        assert!(identity.kept("c"));
        assert_eq!(greet(&mut identity, &beside(Older::Silent), "e"), Greeting::Copied(Copied::OldToken));
    }

    #[test]
    fn before_a_welcome_is_kept_there_is_nothing_to_copy() {
        let mut identity = Identity::default();
        for (number, offered) in (0..40).map(|number| (number, format!("t{number}"))) {
            let other = Shown { incarnation: IncarnationId(Uuid::from_u128(number % 3)), ..shown(None) };
            assert_eq!(identity.greet(&other, offered, Wall(1)), Greeting::Known);
        }
        assert!(identity.journal.as_ref().is_some_and(|journal| journal.offered.len() <= MOST_OFFERED));
    }

    #[test]
    fn a_name_is_free_before_anybody_has_it_and_after_a_removal() {
        assert!(Identity::default().is_free());
        let mut identity = known();
        assert!(!identity.is_free());
        identity.remove(anna(), "gone".to_owned(), Wall(9));
        assert!(identity.is_free());
        identity.enrol(Enrolled { labels: BTreeMap::new(), at: Wall(10), token: "t".to_owned() }, String::new());
        assert!(!identity.is_free());
        assert_eq!((identity.removed, identity.valid_since, identity.journal), (None, Some(Wall(9)), None));
    }
}
