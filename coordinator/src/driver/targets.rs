//! The states in memory: each is what the store holds, with the signs of life that are not written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_common::id::{AttemptId, TargetName};
use holdfast_common::time::Serving;
use holdfast_coordinator_core::event::{Event, Recorded};
use holdfast_coordinator_core::state::Run;
use holdfast_coordinator_core::{Effect, Now, TargetState, due, next_wakeup};

use crate::bugs::{self, Bug};
use crate::store::{self, Transaction};

/// A sign of life of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sign {
    attempt: AttemptId,
    heard: Serving,
}

impl Sign {
    fn of(state: &TargetState) -> Option<Self> {
        let attempt = state.current.as_ref()?.live()?;
        Some(Self { attempt: attempt.id, heard: attempt.lease.as_ref()?.heard })
    }
}

/// One target in memory.
pub(super) struct Target {
    pub(super) state: Arc<TargetState>,
    /// Effects that are due and were handed out.
    pub(super) sent: BTreeSet<Effect>,
    /// The last sign of life that an event holds.
    written: Option<Sign>,
}

impl Target {
    /// The agent of that attempt was heard.
    pub(super) fn hear(&mut self, attempt: AttemptId, heard: Serving) {
        Arc::make_mut(&mut self.state).hear(attempt, heard);
    }

    /// What is due and was not handed out.
    pub(super) fn unsent(&mut self, now: Now) -> Vec<Effect> {
        let due = due(&self.state, now);
        self.sent.retain(|effect| due.contains(effect));
        due.into_iter().filter(|effect| !self.sent.contains(effect)).collect()
    }
}

/// A target as it was before a transaction.
pub(super) struct Saved {
    state: Arc<TargetState>,
    sent: BTreeSet<Effect>,
    written: Option<Sign>,
}

/// Every target that is in memory: at least those on which something is current or waits, or that are on
/// hold.
#[derive(Default)]
pub(super) struct Targets {
    loaded: BTreeMap<TargetName, Target>,
    /// Of targets that were dropped from memory: the next load must not forget that somebody lives.
    signs: BTreeMap<TargetName, Sign>,
    wakeups: BTreeSet<(Serving, TargetName)>,
    wakeup_of: BTreeMap<TargetName, Serving>,
}

impl Targets {
    pub(super) fn names(&self) -> impl Iterator<Item = &TargetName> {
        self.loaded.keys()
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = (&TargetName, &mut Target)> {
        self.loaded.iter_mut()
    }

    pub(super) fn get(&self, name: &TargetName) -> Option<&Target> {
        self.loaded.get(name)
    }

    pub(super) fn get_mut(&mut self, name: &TargetName) -> Option<&mut Target> {
        self.loaded.get_mut(name)
    }

    /// From memory, or from the store as of this transaction. `None` if it was never declared.
    pub(super) fn load(
        &mut self,
        tx: &mut impl Transaction,
        name: &TargetName,
        now: Now,
    ) -> Result<Option<&mut Target>, store::Error> {
        if !self.loaded.contains_key(name) {
            let Some(mut state) = tx.load(name)? else { return Ok(None) };
            let written = Sign::of(&state);
            resume(tx, &mut state)?;
            if let Some(sign) = self.signs.remove(name) {
                state.hear(sign.attempt, sign.heard);
            }
            let target = Target { state: Arc::new(state), sent: BTreeSet::new(), written };
            self.loaded.insert(name.clone(), target);
            self.reschedule(name, now);
        }
        Ok(self.loaded.get_mut(name))
    }

    /// `after` as its events alone lead to it: without the signs of life that are in memory only.
    pub(super) fn as_written(&self, name: &TargetName, after: &TargetState, events: &[Recorded]) -> TargetState {
        let mut state = after.clone();
        let sign = newest(events).or_else(|| self.loaded.get(name)?.written);
        let lease = state
            .current
            .as_mut()
            .and_then(|deployment| deployment.attempts.last_mut())
            .filter(|attempt| sign.is_some_and(|sign| sign.attempt == attempt.id))
            .and_then(|attempt| attempt.lease.as_mut());
        if let (Some(lease), Some(sign)) = (lease, sign) {
            lease.heard = sign.heard;
        }
        state
    }

    /// Takes over what these events led to.
    pub(super) fn replace(&mut self, name: &TargetName, after: TargetState, events: &[Recorded], now: Now) {
        let target = self.loaded.entry(name.clone()).or_insert_with(|| Target {
            state: Arc::new(after.clone()),
            sent: BTreeSet::new(),
            written: None,
        });
        target.state = Arc::new(after);
        target.written = newest(events).or(target.written);
        let _not_handed_out_yet = target.unsent(now);
        self.reschedule(name, now);
    }

    /// To be put back if what comes now can't be written. `None` where it is not in memory: it is not declared.
    pub(super) fn save(&self, name: &TargetName) -> Option<Saved> {
        let target = self.loaded.get(name)?;
        Some(Saved { state: Arc::clone(&target.state), sent: target.sent.clone(), written: target.written })
    }

    /// As it was before.
    pub(super) fn restore(&mut self, name: &TargetName, saved: Option<Saved>, now: Now) {
        match saved {
            Some(Saved { state, sent, written }) => {
                self.loaded.insert(name.clone(), Target { state, sent, written });
            }
            None => drop(self.loaded.remove(name)),
        }
        self.reschedule(name, now);
    }

    /// Forgets what is in memory, except that somebody lives. The next use loads it again.
    pub(super) fn drop_from_memory(&mut self, name: &TargetName) {
        if let Some(sign) = self.loaded.remove(name).and_then(|target| Sign::of(&target.state)) {
            self.signs.insert(name.clone(), sign);
        }
        if let Some(at) = self.wakeup_of.remove(name) {
            self.wakeups.remove(&(at, name.clone()));
        }
    }

    /// Asks the core again when the target is to be woken.
    pub(super) fn reschedule(&mut self, name: &TargetName, now: Now) {
        let at = self.loaded.get(name).and_then(|target| next_wakeup(&target.state, now));
        self.wake_at(name, at);
    }

    pub(super) fn wake_at(&mut self, name: &TargetName, at: Option<Serving>) {
        if let Some(old) = self.wakeup_of.remove(name) {
            self.wakeups.remove(&(old, name.clone()));
        }
        if let Some(at) = at {
            self.wakeup_of.insert(name.clone(), at);
            self.wakeups.insert((at, name.clone()));
        }
    }

    pub(super) fn wakeup_of(&self, name: &TargetName) -> Option<Serving> {
        self.wakeup_of.get(name).copied()
    }

    /// The earliest instant at which something is to be done.
    pub(super) fn next_wakeup(&self) -> Option<Serving> {
        self.wakeups.first().map(|(at, _)| *at)
    }

    /// Whose instant has come, the earliest first.
    pub(super) fn due_by(&self, now: Serving, at_most: usize) -> Vec<TargetName> {
        self.wakeups.iter().take_while(|(at, _)| *at <= now).take(at_most).map(|(_, name)| name.clone()).collect()
    }
}

fn newest(events: &[Recorded]) -> Option<Sign> {
    events.iter().filter_map(|recorded| written(&recorded.event)).next_back()
}

fn written(event: &Event) -> Option<Sign> {
    if let Event::LeaseGranted { attempt, serving, .. }
    | Event::LeaseRenewed { attempt, serving, .. }
    | Event::AgentAway { attempt, serving, .. } = event
    {
        return Some(Sign { attempt: *attempt, heard: *serving });
    }
    None
}

/// A lease that a past run wrote last was alive, as far as anybody can tell, until the run after that one began.
fn resume(tx: &mut impl Transaction, state: &mut TargetState) -> Result<(), store::Error> {
    let Some(lease) = state.current.as_ref().and_then(|deployment| deployment.live()?.lease.as_ref()) else {
        return Ok(());
    };
    if !bugs::on(Bug::LoseLeaseOnRestart) {
        let next = Run(lease.written_run.0.saturating_add(1));
        let began = tx.run_began(next)?;
        state.resume(|run| began.filter(|_| run == next));
    }
    Ok(())
}
