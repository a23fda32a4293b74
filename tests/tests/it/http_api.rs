//! A service behind a deployment API, with whole agents: what a lost agent left there is fenced off, read and done by another.

use holdfast_proto::v1::{DecisionKind, DeploymentState, RunnerState};
use holdfast_tests::api::{Operator, state_of};
use holdfast_tests::cluster::{Cluster, LONG, Plan, SHORT};
use holdfast_tests::deploy_api::DeployApi;
use holdfast_tests::files::DeploymentFile;
use holdfast_tests::{process, wait};

use crate::PROGRAM;
use crate::support::{last_attempt, submit};

const APP: &str = "app@test";

async fn with_api(policy: &str) -> (Cluster, Operator, DeployApi) {
    let api = DeployApi::start(PROGRAM.as_ref(), "app@test/service").await;
    let plan = Plan::new(PROGRAM).agent_environment("HOLDFAST_RESOURCE", &api.rules(APP));
    let cluster = plan.start().await;
    let operator = cluster.operator();
    operator.apply_target(&api.target(APP, policy)).await;
    (cluster, operator, api)
}

fn file(ttl: std::time::Duration, revision: &str, work_ms: u64) -> String {
    DeploymentFile::new(APP, ttl).step("roll-out", &DeployApi::step(revision, work_ms)).text().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_deployment_takes_effect_once_and_the_next_expects_what_it_left() {
    let (_cluster, operator, api) = with_api("manual").await;
    for revision in ["v1", "v2"] {
        let label = submit(&operator, &file(LONG, revision, 300)).await;
        let ended = operator.until_ended(&label).await;
        assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
    }
    assert_eq!(
        (api.underwent(), api.states()),
        (vec!["v1".to_owned(), "v2".to_owned()], vec!["succeeded".to_owned(); 2])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_lost_before_it_submitted_is_fenced_off_and_followed_by_another() {
    let (mut cluster, operator, api) = with_api("when-proven").await;
    cluster.halt_before("web-01", "submit");
    let label = submit(&operator, &file(SHORT, "v1", 0)).await;
    let paused = cluster.standing_still("web-01").await;
    cluster.line("web-01").cut().await;
    cluster.agent("web-02").start();
    let ended = operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
    let record = ended.decisions.first().expect("a decision");
    assert_eq!((record.by.as_str(), record.kind()), ("policy", DecisionKind::Retry));
    assert_eq!((record.runner(), record.attested), (RunnerState::FencedOff, false));
    assert_eq!(last_attempt(&ended).agent, "web-02");
    process::resume(paused);
    wait::until_true("the old process to end", wait::SOON, || !cluster.shims("web-01").contains(&paused)).await;
    assert_eq!(api.underwent(), ["v1"], "the old one was refused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_a_lost_agent_left_at_the_api_is_ended_by_the_fence_and_done_anew() {
    let (mut cluster, operator, api) = with_api("when-proven").await;
    cluster.agent("web-02").kill();
    let label = submit(&operator, &file(SHORT, "v1", 8000)).await;
    wait::until_true("the API to be at work", wait::SOON, || api.states() == ["running"]).await;
    cluster.line("web-01").cut().await;
    cluster.agent("web-02").start();
    let ended = operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
    let record = ended.decisions.first().expect("a decision");
    assert_eq!((record.kind(), record.runner()), (DecisionKind::Retry, RunnerState::FencedOff));
    assert_eq!((api.underwent(), last_attempt(&ended).agent.as_str()), (vec!["v1".to_owned()], "web-02"));
}
