//! What an agent may speak of outside its session: steps of attempts that were leased to it.

use holdfast_common::claim::Claim;
use holdfast_common::code::Code;
use holdfast_common::id::{AgentName, StepName};
use holdfast_common::problem::Problem;
use holdfast_common::spec::StepSpec;
use tonic::Status;

use crate::grpc::shared::Shared;
use crate::grpc::{refused, status};

/// The step, if the attempt was leased to that agent under that fence and has it. Everything else gets the answer of what does
/// not exist, and is audited.
pub(super) async fn step(
    shared: &Shared,
    agent: &AgentName,
    claim: Claim,
    step: &StepName,
    what: &str,
) -> Result<StepSpec, Status> {
    let (own, name) = (agent.clone(), step.clone());
    let found = shared.reader.run(move |reader| {
        let Some(row) = reader.deployment(claim.deployment)? else { return Ok(None) };
        let attempt = row.record.attempts.iter().find(|attempt| attempt.id == claim.attempt);
        let is_leased = attempt.is_some_and(|attempt| attempt.agent == own && attempt.fence == claim.fence);
        Ok(row.record.step(&name).filter(|_| is_leased).cloned())
    });
    if let Some(step) = found.await.map_err(|error| refused::by_store(&error))? {
        return Ok(step);
    }
    tracing::warn!(%agent, attempt = %claim.attempt, what, "of an attempt that is not the agent's");
    shared.driver.refused(
        format!("agent {agent}"),
        format!("{what} of attempt {} of {} under fence {}", claim.attempt, claim.deployment, claim.fence),
        "no such attempt of this agent".to_owned(),
    );
    Err(status::of(&Problem::new(Code::DeploymentNotFound, "no such attempt").so("nothing was stored")))
}
