//! From what was asked to an input of the core: what only the driver can draw, and what only the store remembers.

use holdfast_common::claim::Claim;
use holdfast_common::id::{AttemptId, DeploymentId, EvidenceId, RequestId, TargetName};
use holdfast_common::recovery::DecisionKind;
use holdfast_common::report::Report;
use holdfast_common::time::Wall;
use holdfast_coordinator_core::input::{Back, Jitter, Memory, PastDeployment, Speaker};
use holdfast_coordinator_core::rollback::Retained;
use holdfast_coordinator_core::{Answer, Input, resource_in_question};
use rand::{Rng, RngCore};
use uuid::Builder;

use super::decide::{Beside, Failure, Inner};
use super::full::new_work;
use super::{Asked, Error, Told};
use crate::bugs::{self, Bug};
use crate::store::{Digest, Transaction};

/// How many ended deployments of a target are looked at for what stands on it.
pub const PAST: u32 = 100;

/// What to do with something asked.
pub(super) enum Prepared {
    /// To be decided.
    Decide(Box<(Input, Beside)>),
    /// It was answered before.
    Told(Told),
}

/// Identities and draws.
pub(super) struct Draw(Box<dyn RngCore + Send>);

impl Draw {
    pub(super) fn new(source: Box<dyn RngCore + Send>) -> Self {
        Self(source)
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    fn deployment(&mut self, at: Wall) -> DeploymentId {
        let millis = u64::try_from(at.0 / 1000).unwrap_or_default();
        DeploymentId(Builder::from_unix_timestamp_millis(millis, &self.bytes()).into_uuid())
    }

    fn request(&mut self) -> RequestId {
        RequestId(Builder::from_random_bytes(self.bytes()).into_uuid())
    }

    pub(super) fn attempt(&mut self) -> AttemptId {
        AttemptId(Builder::from_random_bytes(self.bytes()).into_uuid())
    }

    pub(super) fn evidence(&mut self) -> EvidenceId {
        EvidenceId(Builder::from_random_bytes(self.bytes()).into_uuid())
    }

    pub(super) fn jitter(&mut self) -> Jitter {
        Jitter(self.0.random_range(0..=1000))
    }
}

impl Inner {
    pub(super) fn prepare(
        &mut self,
        tx: &mut impl Transaction,
        target: &TargetName,
        asked: Asked,
    ) -> Result<Prepared, Failure> {
        let mut beside = Beside { heard: asked.attempt(), ..Beside::default() };
        let input = match asked {
            Asked::Declare { spec, by } => {
                new_work(self.gate).map_err(Failure::Answer)?;
                if let Some(taken) = tx.taken(&spec)? {
                    return Err(Failure::Answer(Error::ResourceTaken(taken)));
                }
                Input::Declare { spec, by }
            }
            Asked::Submit { request, digest, spec, by, no_queue } => {
                let content = Digest(digest);
                let known = if bugs::on(Bug::SkipRequestLookup) { None } else { tx.submission(request)? };
                if let Some(known) = known {
                    return existing(&known, content).map(Prepared::Told).map_err(Failure::Answer);
                }
                new_work(self.gate).map_err(Failure::Answer)?;
                let deployment = self.draw.deployment(self.now.wall);
                beside.submission = Some((deployment, content));
                Input::Submit { deployment, request, spec, by, no_queue }
            }
            Asked::Rollback { request, digest, to, shown, by, reason, attested, retained } => {
                let content = Digest(digest);
                if let Some(known) = tx.submission(request)? {
                    return existing(&known, content).map(Prepared::Told).map_err(Failure::Answer);
                }
                new_work(self.gate).map_err(Failure::Answer)?;
                let deployment = self.draw.deployment(self.now.wall);
                beside.submission = Some((deployment, content));
                let past = tx.past_deployments(target, PAST)?;
                Input::Rollback { deployment, request, to, shown, by, reason, attested, past, retained }
            }
            Asked::OfferAnswered { speaker, claim, declined } => {
                Input::OfferAnswered { speaker, claim, declined, jitter: self.draw.jitter() }
            }
            Asked::Heard { speaker, claim, via } => Input::Heard { speaker, claim, via },
            Asked::Detached { speaker, claim, away } => Input::Detached { speaker, claim, away, bound: self.absence },
            Asked::PermitRequested { speaker, claim, step, plan } => {
                Input::PermitRequested { speaker, claim, step, plan }
            }
            Asked::Reported { speaker, claim, report } => {
                let memory = self.remember(tx, target, &speaker, &claim, &report)?;
                beside.report = Some((speaker.clone(), claim, report.clone()));
                let (evidence, jitter) = (self.draw.evidence(), self.draw.jitter());
                Input::Reported { speaker, claim, report, memory, evidence, jitter }
            }
            Asked::JournalSpoke { speaker, claim, runner, detail } => {
                Input::JournalSpoke { speaker, claim, runner, detail, evidence: self.draw.evidence() }
            }
            Asked::Cancel { deployment, by, reason } => {
                let past = self.past(tx, target, deployment)?;
                Input::Cancel { deployment, by, reason, past }
            }
            Asked::Inspect { deployment, by } => {
                let (id, reachable) = (self.draw.evidence(), self.reachable(tx, target, deployment)?);
                Input::Inspect { deployment, by, id, reachable }
            }
            Asked::FenceOff { deployment, by, reason } => {
                let (id, reachable) = (self.draw.evidence(), self.reachable(tx, target, deployment)?);
                Input::FenceOff { deployment, by, id, reachable, reason }
            }
            Asked::InquiryAnswered { speaker, inquiry, finding } => {
                Input::InquiryAnswered { speaker, inquiry, finding, evidence: self.draw.evidence() }
            }
            Asked::Attest { deployment, by, attestation } => {
                Input::Attest { deployment, by, attestation, evidence: self.draw.evidence() }
            }
            Asked::AttestRevision { by, resource, revision, how } => {
                Input::AttestRevision { by, resource, revision, how }
            }
            Asked::Decide { deployment, by, kind, reason, shown, retained } => {
                let (evidence, attempt) = (self.draw.evidence(), self.draw.attempt());
                let back = match kind {
                    DecisionKind::Rollback => Some(self.back(tx, target, retained)?),
                    DecisionKind::Retry
                    | DecisionKind::AcceptSucceeded
                    | DecisionKind::AcceptFailed
                    | DecisionKind::AcceptCancelled
                    | DecisionKind::Readmit
                    | DecisionKind::Abandon
                    | DecisionKind::Note => None,
                };
                beside.submission = back.as_ref().map(|back| (back.deployment, Digest::of(&back.request)));
                Input::Decide { deployment, by, kind, reason, shown, evidence, attempt, back }
            }
            Asked::Hold { by, reason, until } => Input::Hold { by, reason, until },
            Asked::Unhold { by } => Input::Unhold { by },
        };
        Ok(Prepared::Decide(Box::new((input, beside))))
    }

    /// What a decision to go back needs beside its evidence.
    fn back(&mut self, tx: &mut impl Transaction, target: &TargetName, retained: Retained) -> Result<Back, Failure> {
        let past = tx.past_deployments(target, PAST)?;
        Ok(Back { deployment: self.draw.deployment(self.now.wall), request: self.draw.request(), past, retained })
    }

    fn remember(
        &mut self,
        tx: &mut impl Transaction,
        target: &TargetName,
        speaker: &Speaker,
        claim: &Claim,
        report: &Report,
    ) -> Result<Memory, Failure> {
        let answered = match bugs::on(Bug::SkipReportDedupe) {
            true => None,
            false => tx.answered(speaker.incarnation, report.sequence, Digest::of(&(claim, report)))?,
        };
        let state = self.targets.load(tx, target, self.now)?.map(|target| target.state.clone());
        let is_current = state
            .and_then(|state| {
                state.deployment(claim.deployment).map(|d| d.attempts.iter().any(|a| a.id == claim.attempt))
            })
            .unwrap_or_default();
        let attempt = if is_current { None } else { tx.past_attempt(claim)? };
        Ok(Memory { attempt, answered })
    }

    fn past(
        &mut self,
        tx: &mut impl Transaction,
        target: &TargetName,
        id: DeploymentId,
    ) -> Result<Option<PastDeployment>, Failure> {
        Ok(tx.past_deployment(target, id)?)
    }

    pub(super) fn reachable(
        &mut self,
        tx: &mut impl Transaction,
        target: &TargetName,
        id: DeploymentId,
    ) -> Result<Vec<holdfast_common::id::AgentName>, Failure> {
        let Some(target) = self.targets.load(tx, target, self.now)? else { return Ok(Vec::new()) };
        let state = &target.state;
        let Some(resource) = resource_in_question(state, id) else { return Ok(Vec::new()) };
        Ok(self.sessions.reachable(&state.spec, &resource, state.home.as_ref()))
    }
}

/// The same request with the same content is the same deployment.
fn existing(known: &crate::store::Submission, content: Digest) -> Result<Told, Error> {
    if known.content != content {
        return Err(Error::RequestIdReused { existing: known.deployment });
    }
    let answer = Answer::Submitted { number: known.number };
    Ok(Told { answer, deployment: Some(known.deployment), existed: true, after: None })
}
