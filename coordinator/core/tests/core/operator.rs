//! An honest operator: looks, raises, attests what is so after making it so, and decides.

use holdfast_common::id::{AgentName, DeploymentId, ResourceName};
use holdfast_common::recovery::{Attestation, AttestedRunner, AttestedTarget, DecisionKind};
use holdfast_coordinator_core::input::Back;
use holdfast_coordinator_core::rollback::Retained;
use holdfast_coordinator_core::state::*;
use holdfast_coordinator_core::{Answer, Input, Refusal, open_decisions};

use crate::agent::Phase;
use crate::ledger::Truth;
use crate::specs::*;
use crate::world::World;

impl World {
    pub fn reachable(&self) -> Vec<AgentName> {
        self.agents.iter().filter(|agent| agent.up).map(|agent| agent_name(agent.number)).collect()
    }

    pub fn inspect(&mut self, target: usize, deployment: DeploymentId) -> Result<Answer, Refusal> {
        let (id, reachable) = (self.draw_inquiry(), self.reachable());
        self.feed(target, &Input::Inspect { deployment, by: anna(), id, reachable })
    }

    pub fn fence_off(&mut self, target: usize, deployment: DeploymentId) -> Result<Answer, Refusal> {
        let (id, reachable) = (self.draw_inquiry(), self.reachable());
        self.feed(target, &Input::FenceOff { deployment, by: anna(), id, reachable, reason: "lost".into() })
    }

    /// Inquiries and evidence draw from one well; a raise keeps its inquiry's identity for its evidence.
    pub fn draw_inquiry(&self) -> holdfast_common::id::EvidenceId {
        evidence_id(1_000_000 + self.evidence + 1)
    }

    pub fn decide(
        &mut self,
        target: usize,
        deployment: DeploymentId,
        kind: DecisionKind,
        stale: u64,
    ) -> Result<Answer, Refusal> {
        let newest = self.targets[target].state.deployment(deployment).map_or(0, |d| d.newest_evidence().0);
        let shown = EvidenceSequence(newest.saturating_sub(stale));
        let evidence = self.draw_evidence();
        let (reason, attempt) = ("seen".into(), attempt_id(self.attempts + 1));
        let back = (kind == DecisionKind::Rollback).then(|| Back {
            deployment: deployment_id(self.deployments + 1),
            request: request_id(self.deployments + 1),
            past: self.past(target),
            retained: Retained::new(),
        });
        self.feed(target, &Input::Decide { deployment, by: anna(), kind, reason, shown, evidence, attempt, back })
    }

    /// The decisions that are open now.
    pub fn open(&self, target: usize, deployment: DeploymentId) -> Vec<DecisionKind> {
        let state = &self.targets[target].state;
        let Some(of) = state.deployment(deployment) else { return vec![DecisionKind::Note] };
        let decisions = open_decisions(state, of, self.now().wall).decisions;
        decisions.into_iter().filter(|decision| decision.why_not.is_none()).map(|decision| decision.kind).collect()
    }

    /// Makes sure that nothing of the last attempt is at work, looks, and says so.
    pub fn attest(&mut self, target: usize, deployment: DeploymentId, host_gone: bool) -> Result<Answer, Refusal> {
        let Some(of) = self.targets[target].state.deployment(deployment).cloned() else {
            let attestation = self.attestation(target, deployment, None, host_gone);
            return self.say_so(target, deployment, attestation);
        };
        if let Some(last) = of.attempts.last().filter(|_| of.state == DeploymentState::Uncertain) {
            of.lineage(last).for_each(|attempt| self.ledger.kill(attempt.id));
            for agent in &mut self.agents {
                for work in agent.works.iter_mut().filter(|work| of.is_of(last, work.claim.attempt)) {
                    work.phase = Phase::Over;
                }
            }
        }
        let attestation = self.attestation(target, deployment, Some(&of), host_gone);
        self.say_so(target, deployment, attestation)
    }

    /// The same without the revision that was seen: no word on an unread resource.
    pub fn attest_blindly(&mut self, target: usize, deployment: DeploymentId) -> Result<Answer, Refusal> {
        let of = self.targets[target].state.deployment(deployment);
        let Some(of) = of.filter(|of| of.state == DeploymentState::Queued).cloned() else { return Ok(Answer::Done) };
        let attestation = Attestation { observed: None, ..self.attestation(target, deployment, Some(&of), false) };
        self.say_so(target, deployment, attestation)
    }

    /// Says which revision is there, and nothing else.
    pub fn attest_revision(&mut self, target: usize, resource: &ResourceName) -> Result<Answer, Refusal> {
        let revision = self.ledger.revision(target, resource).unwrap_or_else(|| revision("seen"));
        let (by, resource, how) = (anna(), resource.clone(), "went there".to_owned());
        self.feed(target, &Input::AttestRevision { by, resource, revision, how })
    }

    fn say_so(&mut self, target: usize, deployment: DeploymentId, attestation: Attestation) -> Result<Answer, Refusal> {
        let evidence = self.draw_evidence();
        self.feed(target, &Input::Attest { deployment, by: anna(), attestation, evidence })
    }

    fn attestation(&self, target: usize, id: DeploymentId, of: Option<&Deployment>, host_gone: bool) -> Attestation {
        let step = of.and_then(|of| {
            let list = open_decisions(&self.targets[target].state, of, self.now().wall);
            let open = list.steps.first().map(|step| step.step.clone());
            open.or_else(|| of.spec.steps.iter().find(|step| step.resource.is_some()).map(|step| step.name.clone()))
        });
        let truth = step.as_ref().map_or(Truth::Nothing, |step| self.ledger.truth(id, step));
        let resource = of.zip(step).and_then(|(of, step)| of.step(&step).and_then(|step| step.resource.clone()));
        let unread = of.and_then(|of| of.waiting.clone()).map(|_| revision("seen"));
        Attestation {
            runner: if host_gone { AttestedRunner::HostGone } else { AttestedRunner::Stopped },
            target: match truth {
                Truth::Nothing => AttestedTarget::NotApplied,
                Truth::Part => AttestedTarget::Partial,
                Truth::Whole => AttestedTarget::Applied,
            },
            observed: resource.and_then(|resource| self.ledger.revision(target, &resource)).or(unread),
            how: "went there".into(),
            attachment: None,
        }
    }

    /// Brings an unsettled deployment one step on, as a careful person would.
    pub fn resolve(&mut self, target: usize, deployment: DeploymentId, round: u64) {
        let state = &self.targets[target].state;
        let Some(of) = state.deployment(deployment) else { return };
        let list = open_decisions(state, of, self.now().wall);
        let kinds = [
            DecisionKind::AcceptSucceeded,
            DecisionKind::AcceptCancelled,
            DecisionKind::Retry,
            DecisionKind::AcceptFailed,
            DecisionKind::Readmit,
        ];
        if let Some(kind) = kinds.into_iter().find(|kind| list.why_not(*kind).is_none()) {
            self.decide(target, deployment, kind, 0).expect("an open decision is taken");
            return;
        }
        let asked = !of.inquiries.is_empty();
        let looked =
            if list.runner.is_out() { self.inspect(target, deployment) } else { self.fence_off(target, deployment) };
        if looked.is_err() || (asked && round.is_multiple_of(3)) {
            self.attest(target, deployment, round.is_multiple_of(2))
                .expect("an unsettled deployment takes an attestation");
        }
    }
}
