//! The chain of entries behind a resource's own ref, and what follows from it. Nothing here asks anybody.

use holdfast_common::fence::Fence;
use holdfast_common::id::OperationId;

use super::entry::{Done, Entry};
use super::names::Oid;
use crate::adapters::system::Failure;

/// All of it that could be read, the newest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    pub(super) head: Option<Oid>,
    entries: Vec<Entry>,
}

/// What an apply comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may take effect.
    May,
    /// It did before.
    Before,
}

impl Ledger {
    /// Of the messages behind its head, the newest first. What Holdfast did not write so is no ledger.
    pub(super) fn of(head: Oid, messages: &[&str], owner: &str) -> Result<Self, Failure> {
        let odd =
            |why: String| Failure::Resource(format!("the ledger of {owner} is not one that Holdfast wrote: {why}"));
        let read: Option<Vec<Entry>> = messages.iter().map(|message| Entry::parse(message)).collect();
        let entries = read.ok_or_else(|| odd(format!("an entry behind {head} can't be read")))?;
        let Some(newest) = entries.first() else { return Err(odd(format!("nothing is behind {head}"))) };
        if newest.owner != owner {
            return Err(Failure::Resource(format!("the resource belongs to {}, not to {owner}", newest.owner)));
        }
        let fits = |pair: &[Entry]| {
            let [newer, older] = pair else { return true };
            newer.number == older.number + 1
                && newer.fence >= older.fence
                && (&newer.owner, &newer.identity) == (&older.owner, &older.identity)
        };
        if !entries.windows(2).all(fits) {
            return Err(odd(format!("its entries behind {head} don't follow each other")));
        }
        Ok(Self { head: Some(head), entries })
    }

    /// The newest entry; `None`: nothing was ever done here.
    pub(super) fn newest(&self) -> Option<&Entry> {
        self.entries.first()
    }

    /// The newest operation.
    pub(super) fn newest_done(&self) -> Option<&Done> {
        self.entries.iter().find_map(|entry| entry.done.as_ref())
    }

    pub(super) fn find(&self, operation: &OperationId) -> Option<&Done> {
        self.entries.iter().filter_map(|entry| entry.done.as_ref()).find(|done| &done.operation == operation)
    }

    pub(super) fn highest(&self) -> Option<Fence> {
        self.newest().map(|entry| entry.fence)
    }

    pub(super) fn identity(&self) -> Option<&str> {
        self.newest().map(|entry| entry.identity.as_str())
    }

    /// Whether it was read down to its first entry: else what is not found may be beyond.
    pub(super) fn is_whole(&self) -> bool {
        self.entries.last().is_none_or(|entry| entry.number == 1)
    }

    /// What the next entry counts.
    pub(super) fn next_number(&self) -> u64 {
        self.newest().map_or(1, |entry| entry.number + 1)
    }

    /// | the ledger | the operation |
    /// | --- | --- |
    /// | has seen a higher fence | is fenced off |
    /// | has seen this fence, raised or used by another deployment | is fenced off |
    /// | has the operation | was applied before |
    /// | was cut off | can't be judged: refused |
    /// | else | may be applied |
    pub(super) fn judge(&self, operation: &OperationId, fence: Fence) -> Result<Verdict, Failure> {
        let highest = self.highest();
        let is_own = self
            .newest()
            .and_then(|entry| entry.done.as_ref())
            .is_some_and(|done| done.operation.deployment == operation.deployment);
        if highest.is_some_and(|highest| highest > fence || (highest == fence && !is_own)) {
            return Err(Failure::FencedOff { fence, highest });
        }
        match (self.find(operation), self.is_whole()) {
            (Some(_), _) => Ok(Verdict::Before),
            (None, true) => Ok(Verdict::May),
            (None, false) => Err(Failure::Resource(
                "the repository is shallow, and the ledger's first entries are not in it: whether this was applied before \
                 can't be told"
                    .to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_common::id::{DeploymentId, Revision, StepName};
    use uuid::Uuid;

    use super::*;

    fn fence(number: u64) -> Fence {
        Fence::from_u64(number).unwrap()
    }

    fn operation(deployment: u128, step: &str) -> OperationId {
        OperationId { deployment: DeploymentId(Uuid::from_u128(deployment)), step: StepName::new(step).unwrap() }
    }

    fn entry(number: u64, counter: u64, done: Option<OperationId>) -> Entry {
        let done = done.map(|operation| Done {
            operation,
            revision: Revision::new("v1").unwrap(),
            left: std::collections::BTreeMap::new(),
        });
        Entry {
            number,
            owner: "a/b".to_owned(),
            identity: "i".to_owned(),
            fence: fence(counter),
            path: String::new(),
            branches: Vec::new(),
            done,
        }
    }

    fn ledger(entries: &[Entry]) -> Result<Ledger, Failure> {
        let texts: Vec<String> = entries.iter().map(Entry::message).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        Ledger::of(Oid::parse(&"a".repeat(40)).unwrap(), &texts, "a/b")
    }

    #[test]
    fn every_row_of_the_table() {
        let one = operation(1, "one");
        let known = ledger(&[entry(2, 7, Some(one.clone())), entry(1, 5, None)]).unwrap();
        let fenced = |fence| Err(Failure::FencedOff { fence, highest: Some(super::tests::fence(7)) });
        assert_eq!(known.judge(&operation(2, "one"), fence(6)), fenced(fence(6)));
        assert_eq!(known.judge(&operation(2, "one"), fence(7)), fenced(fence(7)));
        assert_eq!(known.judge(&one, fence(6)), fenced(fence(6)));
        assert_eq!(known.judge(&one, fence(7)), Ok(Verdict::Before));
        assert_eq!(known.judge(&one, fence(8)), Ok(Verdict::Before));
        assert_eq!(known.judge(&operation(1, "two"), fence(7)), Ok(Verdict::May), "the next step of the same attempt");
        assert_eq!(known.judge(&operation(2, "one"), fence(8)), Ok(Verdict::May));
        let raised = ledger(&[entry(3, 9, None), entry(2, 7, Some(one.clone())), entry(1, 5, None)]).unwrap();
        assert!(matches!(raised.judge(&operation(1, "two"), fence(9)), Err(Failure::FencedOff { .. })));
        let cut = ledger(&[entry(3, 9, None), entry(2, 7, Some(one.clone()))]).unwrap();
        assert_eq!(cut.judge(&one, fence(10)), Ok(Verdict::Before));
        assert!(matches!(cut.judge(&operation(2, "one"), fence(10)), Err(Failure::Resource(_))));
        assert_eq!(Ledger::default().judge(&one, fence(1)), Ok(Verdict::May));
    }

    #[test]
    fn a_chain_that_does_not_follow_or_is_another_owners_is_no_ledger() {
        for chain in [
            vec![entry(3, 7, None), entry(1, 5, None)],
            vec![entry(2, 4, None), entry(1, 5, None)],
            vec![entry(2, 7, None), Entry { identity: "j".to_owned(), ..entry(1, 5, None) }],
            vec![Entry { owner: "x/y".to_owned(), ..entry(1, 5, None) }],
            vec![],
        ] {
            assert!(matches!(ledger(&chain), Err(Failure::Resource(_))), "{chain:?}");
        }
    }
}
