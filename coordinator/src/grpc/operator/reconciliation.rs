//! The checklist: what is known, and each decision allowed or why not. All of it is the core's.

use holdfast_common::adapter::{Enforce, Inspect};
use holdfast_common::code::Code;
use holdfast_common::problem::Problem;
use holdfast_common::time::Wall;
use holdfast_coordinator_core::open_decisions::{OpenDecision, OpenStep};
use holdfast_coordinator_core::state::Deployment;
use holdfast_coordinator_core::{TargetState, open_decisions};
use holdfast_proto::convert::WireEnum;
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, find};
use crate::auth::Permission;
use crate::grpc::view::evidence::goes_by;
use crate::grpc::{status, view};
use crate::store::rows::DeploymentRow;

pub(super) async fn get(call: Call<'_, v1::GetReconciliationRequest>) -> Result<v1::GetReconciliationResponse, Status> {
    let Call { shared, by, asked } = call;
    let row = find::deployment(shared, &by, &asked.deployment, Permission::View).await?;
    let state = shared.driver.state(row.target.clone()).await;
    let found = state.as_deref().and_then(|state| Some((state, state.deployment(row.record.id)?)));
    let Some((state, deployment)) = found else {
        return Err(status::of(&ended(&row.target, &row.record)));
    };
    Ok(v1::GetReconciliationResponse { reconciliation: Some(shown(state, deployment, shared.now())) })
}

fn shown(state: &TargetState, deployment: &Deployment, now: Wall) -> v1::Reconciliation {
    let list = open_decisions(state, deployment, now);
    v1::Reconciliation {
        deployment: Some(view::deployment::summary(&state.spec.name, deployment)),
        runner: list.runner.to_number(),
        runner_because: goes_by(deployment, &list.runner_because, &list.runner_evidence),
        open_steps: list.steps.iter().map(|step| open_step(state, deployment, step)).collect(),
        relation: list.relation,
        evidence_sequence: list.shown.0,
        options: list.decisions.iter().map(option).collect(),
        who_can_act: list.who_can_act.join("; "),
    }
}

fn open_step(state: &TargetState, deployment: &Deployment, open: &OpenStep) -> v1::OpenStep {
    let attempt = deployment
        .attempts
        .iter()
        .rev()
        .find(|attempt| attempt.step(&open.step).is_some_and(|run| run.permitted_at.is_some()));
    let capability = deployment.spec.steps.iter().find(|step| step.name == open.step).and_then(|step| {
        let resource = state.spec.resource(open.resource.as_ref()?)?;
        Some(step.capability(resource))
    });
    v1::OpenStep {
        step: open.step.to_string(),
        resource: view::text(open.resource.as_ref()),
        agent: view::text(attempt.map(|attempt| &attempt.agent)),
        fence: view::fence_number(attempt.map(|attempt| attempt.fence)),
        fence_text: view::fence_text(attempt.map(|attempt| attempt.fence)),
        state: open.state.to_number(),
        because: goes_by(deployment, &open.because, &open.evidence),
        observed_revision: view::text(open.observed.as_ref()),
        active_operation: view::text(open.active.as_ref()),
        can_inspect: capability.is_some_and(|capability| capability.inspect != Inspect::None),
        can_fence_off: capability.is_some_and(|capability| capability.enforce == Enforce::Fence),
        half_done: open.by_hand.as_ref().map(|by_hand| by_hand.half_done.clone()).unwrap_or_default(),
        look: open.by_hand.as_ref().map(|by_hand| by_hand.look.clone()).unwrap_or_default(),
    }
}

fn option(decision: &OpenDecision) -> v1::DecisionOption {
    let why_not = decision.why_not.clone().unwrap_or_default();
    v1::DecisionOption {
        kind: decision.kind.to_number(),
        allowed: decision.why_not.is_none(),
        why_not,
        leads_to: decision.leads_to.clone(),
    }
}

/// What has ended is not looked into, fenced off, attested or decided any more.
pub(super) fn not_ended(row: &DeploymentRow) -> Result<(), Status> {
    match row.record.ended {
        Some(_) => Err(status::of(&ended(&row.target, &row.record))),
        None => Ok(()),
    }
}

fn ended(target: &holdfast_common::id::TargetName, deployment: &Deployment) -> Problem {
    let label = view::deployment::label(target, deployment);
    let state = view::enums::state_word(deployment.state);
    Problem::new(Code::NothingToReconcile, format!("{label} is {state}: there is nothing to reconcile"))
        .known(view::sentence::because(deployment))
        .next(format!("holdfast evidence {label}"))
        .with("deployment", label.to_string())
}
