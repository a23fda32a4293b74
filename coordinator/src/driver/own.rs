//! What the driver does of its own accord: it wakes targets whose instant has come, and gives what waits to an agent.

use holdfast_common::id::{AgentName, TargetName};
use holdfast_common::time::Millis;
use holdfast_coordinator_core::{Effect, Input};

use super::Fatal;
use super::batch::Batch;
use super::decide::{Beside, Failure, Inner};
use crate::bugs::{self, Bug};
use crate::store::Transaction;

/// Targets that one step wakes at most.
const WOKEN: usize = 256;
/// Assignments of one target that one step tries at most.
const ASSIGNMENTS: usize = 4;
/// A target that wants to be woken at once again waits at least so long.
const PAUSE: Millis = Millis(10);

impl Inner {
    /// Nothing that was handed to an earlier session of an agent counts any more, and what waits for an agent is assigned
    /// anew. Once for all sessions of a batch: when many agents come back at once, each target is looked at for each commit,
    /// not for each agent.
    pub(super) fn forget_sent(&mut self, batch: &mut Batch) {
        if !batch.agents_changed {
            return;
        }
        let again = |effect: &Effect| match addressee(effect) {
            None => true,
            Some(agent) => batch.started.contains(agent) && !bugs::on(Bug::SendOnlyOnce),
        };
        for (name, target) in self.targets.all_mut() {
            let before = target.sent.len();
            target.sent.retain(|effect| !again(effect));
            if target.sent.len() != before {
                batch.touched.insert(name.clone());
            }
        }
    }

    /// Time has passed for some targets.
    pub(super) fn wake(&mut self, tx: &mut impl Transaction, batch: &mut Batch) -> Result<(), Fatal> {
        for name in self.targets.due_by(self.now.serving, WOKEN) {
            let input = Input::Tick { jitter: self.draw.jitter() };
            let before = self.targets.get(&name).map(|target| target.state.sequence);
            let _logged = Failure::contain(self.decide(tx, batch, &name, &input, &Beside::default()))?;
            let after = self.targets.get(&name).map(|target| target.state.sequence);
            self.targets.reschedule(&name, self.now);
            self.do_not_spin(&name, before != after);
            batch.touched.insert(name);
        }
        Ok(())
    }

    /// An instant that has passed and brought nothing will bring nothing until the state changes.
    fn do_not_spin(&mut self, name: &TargetName, moved: bool) {
        if self.targets.wakeup_of(name).is_some_and(|at| at <= self.now.serving) {
            let again = moved.then(|| self.now.serving.after(PAUSE));
            self.targets.wake_at(name, again);
        }
    }

    /// Gives what waits for an agent to one.
    pub(super) fn assign(&mut self, tx: &mut impl Transaction, batch: &mut Batch) -> Result<(), Fatal> {
        if !self.gate.takes_new_work() || !self.verdict.is_sound() || self.suspected {
            return Ok(());
        }
        for name in batch.touched.clone() {
            for _round in 0..ASSIGNMENTS {
                let Some(target) = self.targets.get_mut(&name) else { break };
                let Some(effect) = target.unsent(self.now).into_iter().find(|effect| addressee(effect).is_none())
                else {
                    break;
                };
                target.sent.insert(effect.clone());
                let Some(input) = self.own_move(tx, &name, &effect)? else { continue };
                let _logged = Failure::contain(self.decide(tx, batch, &name, &input, &Beside::default()))?;
            }
        }
        Ok(())
    }

    /// The input that an effect of the driver's own asks for.
    fn own_move(
        &mut self,
        tx: &mut impl Transaction,
        name: &TargetName,
        effect: &Effect,
    ) -> Result<Option<Input>, Fatal> {
        match effect {
            Effect::Assign { .. } => {
                let Some(target) = self.targets.get(name) else { return Ok(None) };
                let steps = target.state.current.iter().flat_map(|deployment| &deployment.spec.steps);
                let needs = steps.map(|step| step.body.adapter()).collect();
                let candidates = self.sessions.candidates(&target.state.spec, &needs);
                Ok(Some(Input::Assign { candidates, attempt: self.draw.attempt() }))
            }
            Effect::Recover { deployment } => {
                let Ok(reachable) = Failure::contain(self.reachable(tx, name, *deployment))? else { return Ok(None) };
                let (inquiry, evidence) = (self.draw.evidence(), self.draw.evidence());
                Ok(Some(Input::Recover { inquiry, evidence, attempt: self.draw.attempt(), reachable }))
            }
            Effect::Offer { .. } | Effect::Cancel { .. } | Effect::Inquire { .. } => Ok(None),
        }
    }
}

/// The agent that an effect goes to; `None` for what the driver does itself.
pub(super) fn addressee(effect: &Effect) -> Option<&AgentName> {
    match effect {
        Effect::Assign { .. } | Effect::Recover { .. } => None,
        Effect::Offer { agent, .. } | Effect::Cancel { agent, .. } | Effect::Inquire { agent, .. } => Some(agent),
    }
}
