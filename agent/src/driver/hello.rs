//! What the agent says first: who it is, what it holds, what it has seen.

use holdfast_agent_core::Work;
use holdfast_agent_core::work::Phase;
use holdfast_proto::PROTOCOL_VERSION;
use holdfast_proto::convert::claim_to_wire;
use holdfast_proto::v1::{HeldAttempt, Hello, JournalState, Position, SeenFence};

use super::batch::Batch;
use super::{Clock, Driver, Hands};
use crate::boottime::BootId;

impl<H: Hands, C: Clock> Driver<H, C> {
    /// Says what is durable, and no more.
    pub(super) fn hello(&self, owed: &Batch) -> Hello {
        let held = if owed.is_owed() { self.journaled() } else { self.works.values().map(held).collect() };
        let commits = self.journal.standing().map(|(commits, ..)| commits).unwrap_or_default();
        Hello {
            protocol_versions: vec![PROTOCOL_VERSION],
            incarnation: self.journal.incarnation().to_string(),
            journal_sequence: commits,
            boot_id: BootId::read().map(|boot| boot.0).unwrap_or_default(),
            session_token: self.kept_token.clone(),
            labels: self.config.labels.clone().into_iter().collect(),
            adapters: self.config.policy.adapters.iter().cloned().collect(),
            held,
            seen_fences: self.fences.iter().map(|(target, fence)| seen(target.as_str(), fence.as_u64())).collect(),
            seen: self.position.map(|position| Position {
                store: position.store.to_string(),
                epoch: position.epoch,
                commit: position.commit,
            }),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            targets: self.config.policy.targets.clone(),
            machine: self.machine.clone(),
            instance: self.instance.clone(),
        }
    }
}

impl<H: Hands, C: Clock> Driver<H, C> {
    /// As a restart would find it.
    fn journaled(&self) -> Vec<HeldAttempt> {
        let remembered = self.journal.attempts().unwrap_or_else(|error| {
            tracing::error!(%error, "could not read the journal");
            Vec::new()
        });
        remembered.into_iter().map(|remembered| held(&remembered.work())).collect()
    }
}

fn seen(target: &str, fence: u64) -> SeenFence {
    SeenFence { target: target.to_owned(), fence }
}

fn held(work: &Work) -> HeldAttempt {
    let state = match work.phase {
        Phase::Ready | Phase::Asked { .. } if work.at == 0 => JournalState::Taken,
        Phase::Ready | Phase::Asked { .. } => JournalState::BetweenSteps,
        Phase::Starting | Phase::Running => JournalState::Running,
        Phase::Over => JournalState::Ended,
    };
    HeldAttempt {
        claim: Some(claim_to_wire(work.assignment.claim)),
        state: state as i32,
        step: work.step().map(|step| step.name.to_string()).unwrap_or_default(),
    }
}
