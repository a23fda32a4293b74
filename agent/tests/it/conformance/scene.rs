//! A subject at work: operations by number, and what was read held against what the resource underwent.

use holdfast_common::adapter::{Enforce, Inspect};
use holdfast_common::id::Revision;
use holdfast_common::outcome::{OperationState, Reading};

use super::run::{Ended, Run};
use super::{Make, Named, Subject};
use crate::support::{Paused, eventually, fence, operation};

/// A fence was refused.
pub(crate) const BY_FENCE: Option<i32> = Some(73);
/// A revision was refused.
pub(crate) const BY_REVISION: Option<i32> = Some(74);

/// One resource, and what the suite does to it.
pub(crate) struct Scene {
    pub(crate) subject: Box<dyn Subject>,
}

/// An attempt that stands before one of its calls, or has ended without coming to it.
pub(crate) struct Attempt {
    run: Run,
    pub(crate) reached: bool,
}

pub(crate) fn revision(number: u32) -> Revision {
    Revision::new(format!("{number:04}")).unwrap()
}

/// The operation that brings the resource to revision `000N`.
pub(crate) fn named(number: u32) -> Named {
    Named { operation: operation(u128::from(number)), revision: revision(number), expected: None }
}

/// The same, from the revision before it alone.
pub(crate) fn pinned(number: u32, before: u32) -> Named {
    Named { expected: Some(revision(before)), ..named(number) }
}

impl Scene {
    /// A fresh resource.
    pub(crate) fn fresh(make: Make<'_>) -> Self {
        Self { subject: make() }
    }

    /// A resource to which the first operation was applied, under the first fence.
    pub(crate) fn standing(make: Make<'_>) -> Self {
        let scene = Self::fresh(make);
        let ended = scene.apply(1, 1);
        assert!(ended.is_good(), "the first operation on a fresh resource: {ended:?}");
        assert_eq!(scene.subject.underwent(), ["0001"], "what the first operation did");
        scene
    }

    pub(crate) fn apply(&self, number: u32, counter: u64) -> Ended {
        self.apply_named(&named(number), counter)
    }

    pub(crate) fn apply_named(&self, named: &Named, counter: u64) -> Ended {
        Run::whole(self.subject.apply(named, fence(counter)))
    }

    /// Starts an attempt that stops before that call.
    pub(crate) fn paused(&self, named: &Named, counter: u64, call: &str) -> Attempt {
        let mut command = self.subject.apply(named, fence(counter));
        command.env("HOLDFAST_HALT", format!("apply.{call}=stop"));
        let run = Run::start(command);
        let reached = run.pause() == Paused::Stopped;
        Attempt { run, reached }
    }

    /// An attempt that dies before that call.
    pub(crate) fn killed(&self, named: &Named, counter: u64, call: &str) -> Ended {
        let mut command = self.subject.apply(named, fence(counter));
        command.env("HOLDFAST_HALT", format!("apply.{call}=abort"));
        Run::whole(command)
    }

    /// A reading, or why there is none.
    pub(crate) fn read(&self, number: u32) -> Result<Reading, String> {
        reading(&Run::whole(self.subject.inspect(&named(number))))
    }

    /// A reading that must be there.
    pub(crate) fn reading(&self, number: u32) -> Reading {
        self.read(number).unwrap_or_else(|why| panic!("the resource can't be read: {why}"))
    }

    /// The same, once the resource does not change any more.
    pub(crate) fn settled(&self, number: u32) -> Reading {
        eventually("the operation is over", || {
            Some(self.reading(number)).filter(|reading| reading.state != OperationState::Applying)
        })
    }

    /// What a raise answers; `None` where the resource keeps no fence.
    pub(crate) fn raise(&self, number: u32, counter: u64) -> Option<Result<Reading, String>> {
        self.subject.raise(&named(number), fence(counter)).map(|command| reading(&Run::whole(command)))
    }

    /// A raise that must go well.
    pub(crate) fn raised(&self, number: u32, counter: u64) -> Reading {
        let raised = self.raise(number, counter).expect("declares a fence, so it can be raised");
        raised.unwrap_or_else(|why| panic!("the fence can't be raised: {why}"))
    }

    /// How often a revision took effect.
    pub(crate) fn times(&self, number: u32) -> usize {
        let wanted = revision(number);
        self.subject.underwent().iter().filter(|one| one.as_str() == wanted.as_str()).count()
    }

    pub(crate) fn took(&self, number: u32) -> bool {
        self.times(number) > 0
    }

    /// Whether that revision took effect after the other.
    pub(crate) fn took_after(&self, number: u32, other: u32) -> bool {
        let (underwent, number, other) = (self.subject.underwent(), revision(number), revision(other));
        let last = |wanted: &Revision| underwent.iter().rposition(|one| one.as_str() == wanted.as_str());
        matches!((last(&number), last(&other)), (Some(number), Some(other)) if number > other)
    }

    pub(crate) fn enforces(&self) -> Enforce {
        self.subject.capability().enforce
    }

    pub(crate) fn compares(&self) -> Enforce {
        self.subject.compares()
    }

    pub(crate) fn inspects(&self) -> Inspect {
        self.subject.capability().inspect
    }

    /// Holds a reading of the newest operation against the deed, as far as readings of this resource are declared to go.
    pub(crate) fn judge(&self, number: u32, reading: &Reading, took: bool, what: &str) {
        let states: &[OperationState] = match (self.inspects(), took) {
            (Inspect::Operation, true) => &[OperationState::Applied],
            (Inspect::Operation, false) => &[OperationState::NotApplied],
            (Inspect::Revision | Inspect::None, true) => &[OperationState::Applied, OperationState::Unknown],
            (Inspect::Revision | Inspect::None, false) => &[OperationState::NotApplied, OperationState::Unknown],
        };
        assert!(states.contains(&reading.state), "{what}: took effect: {took}, but it reads {reading:?}");
        if self.inspects() != Inspect::None {
            assert_eq!(reading.revision.as_ref() == Some(&revision(number)), took, "{what}: {reading:?}");
        }
    }
}

impl Attempt {
    /// Goes on to its end.
    pub(crate) fn thaw(self) -> Ended {
        if self.reached {
            self.run.resume();
        }
        self.run.end()
    }
}

fn reading(ended: &Ended) -> Result<Reading, String> {
    if !ended.is_good() {
        return Err(format!("{ended:?}"));
    }
    Ok(serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}")))
}
