//! What a request to stop comes to: what is held × how to leave → go now, or wait for what.
//!
//! | asked | held | contact | then |
//! | --- | --- | --- | --- |
//! | any | nothing | any | go: nothing is to be said |
//! | detach | anything | yes | say how long it will be away, go; shims run on |
//! | detach | anything | no | go: nobody hears; shims run on |
//! | finish | a step runs | any | take nothing new, wait for its end |
//! | finish | between steps, or an end that is not answered | yes | wait for what follows |
//! | finish | nothing but outputs that the coordinator does not have whole | yes | wait until it has them |
//! | finish | any of these | no | as detach: nothing follows without contact |
//! | finish | anything, and its time is over | any | as detach |
//! | a second time | anything | any | as detach |
//!
//! A request while a stop waits hastens it; time is CLOCK_BOOTTIME, so that a suspend uses it up too.

use std::fmt;

use holdfast_common::id::{DeploymentId, StepName, TargetName};
use holdfast_common::spec::StepEffect;
use holdfast_common::time::Millis;

use crate::work::{Boot, Phase, Work};

/// How this agent leaves, when it is asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Whether it waits for its work.
    pub mode: Mode,
    /// Longest wait for it.
    pub finish_within: Millis,
    /// How long it says that it will be away.
    pub away: Millis,
}

/// Whether an agent that is to stop waits for its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Work goes on under its shims; the next agent takes it up.
    Detach,
    /// It takes nothing new and waits for what it has.
    Finish,
}

/// Whether a stop was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    /// No.
    #[default]
    No,
    /// Once, then.
    Once(Boot),
    /// Again: it is in a hurry.
    Again,
}

impl Asked {
    /// One more request.
    #[must_use]
    pub fn again(self, now: Boot) -> Self {
        match self {
            Asked::No => Asked::Once(now),
            Asked::Once(_) | Asked::Again => Asked::Again,
        }
    }
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Nobody asked for a stop.
    Stay,
    /// It goes when these are done and all outputs are sent, or then at the latest.
    Wait {
        /// For what, in the order of attempts. Empty where only outputs are missing.
        held: Vec<Held>,
        /// The end of the wait.
        until: Boot,
    },
    /// It goes.
    Go(Word),
}

/// The last thing to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Nothing is held, or nobody hears.
    None,
    /// It will be back: leases may outlast its absence.
    Detach {
        /// How long it will be away.
        away: Millis,
    },
}

/// One attempt that is not settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Of which target.
    pub target: TargetName,
    /// Of which deployment.
    pub deployment: DeploymentId,
    /// What it does.
    pub doing: Doing,
}

/// What an attempt does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// A step's process may be alive.
    Runs {
        /// Which step.
        step: StepName,
        /// Whether it changes something outside.
        effect: StepEffect,
    },
    /// A step is to begin.
    Before {
        /// Which one.
        step: StepName,
    },
    /// Its end is not answered by the coordinator.
    Unanswered,
}

impl From<&Work> for Held {
    fn from(work: &Work) -> Self {
        let doing = match (&work.phase, work.step()) {
            (Phase::Starting | Phase::Running, Some(step)) => {
                Doing::Runs { step: step.name.clone(), effect: step.effect }
            }
            (Phase::Ready | Phase::Asked { .. }, Some(step)) => Doing::Before { step: step.name.clone() },
            (Phase::Ready | Phase::Asked { .. } | Phase::Starting | Phase::Running | Phase::Over, _) => {
                Doing::Unanswered
            }
        };
        let assignment = &work.assignment;
        Held { target: assignment.target.clone(), deployment: assignment.claim.deployment, doing }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Held { target, doing, .. } = self;
        match doing {
            Doing::Runs { step, effect: StepEffect::Mutates } => write!(f, "{target}: step {step} runs, a change"),
            Doing::Runs { step, effect: StepEffect::None } => write!(f, "{target}: step {step} runs"),
            Doing::Before { step } => write!(f, "{target}: step {step} is to begin"),
            Doing::Unanswered => write!(f, "{target}: its end is not answered yet"),
        }
    }
}

/// Decides. `held` is everything that is not settled, `unsent` whether the coordinator lacks some of an output; without contact
/// nothing is heard or answered.
#[must_use]
pub fn leave(manner: Manner, asked: Asked, now: Boot, held: Vec<Held>, unsent: bool, contact: bool) -> Leave {
    let word = match (held.is_empty(), contact) {
        (true, _) | (false, false) => Word::None,
        (false, true) => Word::Detach { away: manner.away },
    };
    let since = match (asked, manner.mode) {
        (Asked::No, _) => return Leave::Stay,
        (Asked::Again, _) | (Asked::Once(_), Mode::Detach) => return Leave::Go(word),
        (Asked::Once(since), Mode::Finish) => since,
    };
    let until = Boot(since.0.saturating_add(manner.finish_within.0));
    let waits = |held: &Held| contact || matches!(held.doing, Doing::Runs { .. });
    let sends = contact && unsent;
    if now >= until || !(sends || held.iter().any(waits)) {
        return Leave::Go(word);
    }
    Leave::Wait { held, until }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn held(doing: Doing) -> Vec<Held> {
        let target = TargetName::new("shop@prod").unwrap();
        vec![Held { target, deployment: DeploymentId(Uuid::from_u128(1)), doing }]
    }

    fn runs(effect: StepEffect) -> Vec<Held> {
        held(Doing::Runs { step: StepName::new("change").unwrap(), effect })
    }

    fn before() -> Vec<Held> {
        held(Doing::Before { step: StepName::new("change").unwrap() })
    }

    const AWAY: Word = Word::Detach { away: Millis(60_000) };

    fn manner(mode: Mode) -> Manner {
        Manner { mode, finish_within: Millis(600_000), away: Millis(60_000) }
    }

    fn once(mode: Mode, now: u64, held: Vec<Held>, contact: bool) -> Leave {
        leave(manner(mode), Asked::Once(Boot(1_000)), Boot(now), held, false, contact)
    }

    fn unsent(mode: Mode, now: u64, contact: bool) -> Leave {
        leave(manner(mode), Asked::Once(Boot(1_000)), Boot(now), Vec::new(), true, contact)
    }

    #[test]
    fn nobody_leaves_unasked_and_nothing_is_said_where_nothing_is_held() {
        for mode in [Mode::Detach, Mode::Finish] {
            assert_eq!(leave(manner(mode), Asked::No, Boot(1), runs(StepEffect::Mutates), true, true), Leave::Stay);
            assert_eq!(once(mode, 1_000, Vec::new(), true), Leave::Go(Word::None));
            assert_eq!(once(mode, 1_000, Vec::new(), false), Leave::Go(Word::None));
        }
    }

    #[test]
    fn a_detach_waits_for_nothing_and_says_how_long() {
        for effect in [StepEffect::None, StepEffect::Mutates] {
            assert_eq!(once(Mode::Detach, 1_000, runs(effect), true), Leave::Go(AWAY));
            assert_eq!(once(Mode::Detach, 1_000, runs(effect), false), Leave::Go(Word::None), "nobody hears");
        }
        assert_eq!(once(Mode::Detach, 1_000, held(Doing::Unanswered), true), Leave::Go(AWAY));
    }

    #[test]
    fn a_finish_waits_for_what_runs_up_to_its_bound_and_then_detaches() {
        for (effect, contact, word) in [(StepEffect::None, true, AWAY), (StepEffect::Mutates, false, Word::None)] {
            let wait = Leave::Wait { held: runs(effect), until: Boot(601_000) };
            assert_eq!(once(Mode::Finish, 1_000, runs(effect), contact), wait);
            assert_eq!(once(Mode::Finish, 600_999, runs(effect), contact), wait);
            assert_eq!(once(Mode::Finish, 601_000, runs(effect), contact), Leave::Go(word));
        }
    }

    #[test]
    fn a_finish_waits_for_what_follows_only_while_it_can_follow() {
        for held in [before(), held(Doing::Unanswered)] {
            let wait = Leave::Wait { held: held.clone(), until: Boot(601_000) };
            assert_eq!(once(Mode::Finish, 2_000, held.clone(), true), wait);
            assert_eq!(once(Mode::Finish, 2_000, held, false), Leave::Go(Word::None));
        }
    }

    #[test]
    fn a_finish_waits_until_outputs_are_sent_while_somebody_takes_them() {
        let wait = Leave::Wait { held: Vec::new(), until: Boot(601_000) };
        assert_eq!(unsent(Mode::Finish, 2_000, true), wait);
        assert_eq!(unsent(Mode::Finish, 601_000, true), Leave::Go(Word::None));
        assert_eq!(unsent(Mode::Finish, 2_000, false), Leave::Go(Word::None));
        assert_eq!(unsent(Mode::Detach, 2_000, true), Leave::Go(Word::None), "the next agent sends them");
        let hastened = leave(manner(Mode::Finish), Asked::Again, Boot(2_000), Vec::new(), true, true);
        assert_eq!(hastened, Leave::Go(Word::None));
    }

    #[test]
    fn a_second_request_hastens_the_first() {
        let asked = Asked::No.again(Boot(1_000));
        assert_eq!(asked, Asked::Once(Boot(1_000)));
        let again = asked.again(Boot(2_000));
        assert_eq!(again.again(Boot(3_000)), Asked::Again);
        let left = leave(manner(Mode::Finish), again, Boot(2_000), runs(StepEffect::Mutates), false, true);
        assert_eq!(left, Leave::Go(AWAY));
    }

    #[test]
    fn each_wait_is_told_in_words() {
        let told = |held: Vec<Held>| held[0].to_string();
        assert_eq!(told(runs(StepEffect::Mutates)), "shop@prod: step change runs, a change");
        assert_eq!(told(runs(StepEffect::None)), "shop@prod: step change runs");
        assert_eq!(told(before()), "shop@prod: step change is to begin");
        assert_eq!(told(held(Doing::Unanswered)), "shop@prod: its end is not answered yet");
    }
}
