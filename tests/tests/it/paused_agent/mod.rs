//! The paused agent, for each adapter: it stands still after its last check and before the effect, its lease lapses, its target is
//! recovered elsewhere, and then it goes on.
//!
//! ```text
//! web-01   permitted ── last check ── stands still .................................. goes on: refused, and that is evidence
//! web-02                                lease lapses ── fence-off ── retry ── next deployment
//! ```
//!
//! A resource that enforces fences refuses the stale effect. One that commands change does not: that gap is shown, too.

mod command;
mod external;
mod git;
mod http;
mod postgres;
mod release;
mod rig;

use holdfast_proto::v1::{DecisionKind, DeploymentState, RunnerState};
use holdfast_tests::api::{Operator, state_of};
use holdfast_tests::cluster::{Cluster, LONG, Plan, SHORT};
use holdfast_tests::process;

use crate::PROGRAM;
use crate::support::{lost_before, submit};
use rig::{Rig, THING};

/// Two agents, and the rig's target at its first revision.
async fn started(rig: &impl Rig) -> (Cluster, Operator) {
    let plan = rig
        .agent_environment()
        .into_iter()
        .fold(Plan::new(PROGRAM), |plan, (name, value)| plan.agent_environment(name, &value));
    let cluster = plan.start().await;
    let operator = cluster.operator();
    operator.apply_target(&rig.target_file()).await;
    succeeds(&operator, &rig.deployment("r1", LONG)).await;
    (cluster, operator)
}

async fn succeeds(operator: &Operator, file: &str) {
    let done = operator.until_ended(&submit(operator, file).await).await;
    assert_eq!(state_of(&done), DeploymentState::Succeeded, "{done:#?}");
}

/// I12, and the last gap closed by the resource's own check.
async fn the_resource_refuses_the_stale_effect(rig: impl Rig) {
    let (mut cluster, operator) = started(&rig).await;
    let second = rig.deployment("r2", SHORT);
    let (label, still) = lost_before(&mut cluster, &operator, rig.effect(), &second).await;
    assert_eq!(rig.underwent(), ["r1"], "it stands before the effect");
    operator.decide(&label, THING, DecisionKind::Retry).await.expect_err("the runner may be at work");
    operator.fence_off(&label, THING).await.expect("the other agent raises the fence");
    let checklist = operator.checklist(&label).await;
    assert_eq!(checklist.runner(), RunnerState::FencedOff, "{}", checklist.runner_because);
    operator.decide(&label, THING, DecisionKind::Retry).await.unwrap_or_else(|why| panic!("{why}: {checklist:#?}"));
    let done = operator.until_ended(&label).await;
    assert_eq!((state_of(&done), done.attempts.len()), (DeploymentState::Succeeded, 2), "{done:#?}");
    succeeds(&operator, &rig.deployment("r3", LONG)).await;
    assert_eq!(rig.underwent(), ["r1", "r2", "r3"]);

    process::resume(still);
    cluster.line("web-01").heal().await;
    let late = operator
        .until_evidence(&label, "the refusal", |evidence| {
            evidence.kind == "late_report" && evidence.body_json.contains("step_ended")
        })
        .await;
    let refused: &[i32] = if rig.answers_again() { &[0, 73, 74] } else { &[73, 74] };
    let mut refused = refused.iter().map(|exit| format!("\"exit\":{{\"exited\":{exit}}}"));
    assert!(refused.any(|exit| late.body_json.contains(&exit)), "its process was refused: {}", late.body_json);
    assert_eq!(rig.underwent(), ["r1", "r2", "r3"], "the stale effect changed nothing");
    assert_eq!(state_of(&operator.deployment(&label).await), DeploymentState::Succeeded);
}
