//! What is said of a look at a target, and of a raise, before and when its answer comes.

use std::process::ExitStatus;
use std::time::Duration;

use holdfast_proto::v1::{CancelAnswer, Contact, DeploymentState, OperationState};
use holdfast_tests::api::{Operator, state_of};
use holdfast_tests::cluster::{Cluster, LONG, Plan, SHORT};
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::{site, wait};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::PROGRAM;
use crate::support::{SHOP, last_attempt, other, submit};

/// A release folder that both agents reach.
async fn with_shop(plan: Plan) -> (Cluster, Operator) {
    let cluster = plan.start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::release_target(SHOP, &cluster.folder().join("shop"), "shared")).await;
    (cluster, operator)
}

fn release(cluster: &Cluster, revision: &str, ttl: Duration) -> String {
    let archive = site::archive(cluster.folder(), revision);
    DeploymentFile::new(SHOP, ttl).release("switch", &archive, revision).text().to_owned()
}

/// Submits a release that is cancelled while it waits.
async fn cancelled_in_the_queue(cluster: &Cluster, operator: &Operator, revision: &str) {
    cluster.cli().run(&["target", "hold", SHOP, "--reason", "a test holds it"]).await.expect(0);
    let label = submit(operator, &release(cluster, revision, LONG)).await;
    assert_eq!(operator.cancel(&label).await, CancelAnswer::Cancelled);
    cluster.cli().run(&["target", "unhold", SHOP]).await.expect(0);
}

/// Of whose step a look speaks, what that is, and the note.
async fn looked(cluster: &Cluster) -> (String, i64, String) {
    let told = cluster.cli().run(&["target", "inspect", SHOP, "--json"]).await.expect(0).json();
    let reading = &told["readings"][0];
    let text = |key: &str| reading[key].as_str().unwrap_or_default().to_owned();
    let state = OperationState::from_str_name(reading["reading"]["state"].as_str().expect("a state"));
    (text("deployment"), state.expect("a known one") as i64, text("detail"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_speaks_of_the_last_deployment_that_may_have_touched_the_resource_or_says_that_none_did() {
    let (cluster, operator) = with_shop(Plan::new(PROGRAM)).await;
    cancelled_in_the_queue(&cluster, &operator, "v1").await;
    let nobodys = (String::new(), OperationState::Unknown as i64, "no deployment has touched it yet".to_owned());
    assert_eq!(looked(&cluster).await, nobodys);
    let touched = submit(&operator, &release(&cluster, "v1", LONG)).await;
    assert_eq!(state_of(&operator.until_ended(&touched).await), DeploymentState::Succeeded);
    cancelled_in_the_queue(&cluster, &operator, "v2").await;
    assert_eq!(looked(&cluster).await, (touched, OperationState::Applied as i64, String::new()));

    // A command leaves nothing in a release by which it could be known.
    let command = DeploymentFile::new(SHOP, LONG).mutates("touch", "unsafe", &["true".to_owned()]);
    let label = submit(&operator, command.text()).await;
    assert_eq!(state_of(&operator.until_ended(&label).await), DeploymentState::Succeeded);
    let why = format!("step touch of {label} touched it last, and nothing reads it back");
    assert_eq!(looked(&cluster).await, (String::new(), OperationState::Unknown as i64, why));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raise_that_is_asked_for_is_said_to_be_on_record_and_for_whom_it_waits_before_the_answer_comes() {
    let halted = Plan::new(PROGRAM).agent_environment("HOLDFAST_HALT", "apply.flip=stop");
    let (mut cluster, operator) = with_shop(halted).await;
    let label = submit(&operator, &release(&cluster, "v1", SHORT)).await;
    let begun = |found: &holdfast_proto::v1::Deployment| {
        found.attempts.last().is_some_and(|attempt| attempt.steps[0].started.is_some())
    };
    let lost = last_attempt(&operator.until(&label, "the start to be reported", begun).await).agent.clone();
    cluster.line(&lost).cut().await;
    operator.until_state(&label, DeploymentState::Uncertain).await;
    let asked = other(&lost);
    operator.until_contact(asked, Contact::Connected).await;
    cluster.agent(asked).freeze().await;

    let words = ["reconcile", "fence-off", &label, "--confirm", SHOP, "--reason", "it is lost"];
    let mut child = cluster.cli().command(&words).spawn().expect("the program can be started");
    let mut said = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let mut told = String::new();
    while !told.contains("waiting at most") {
        let line = wait::within("what it waits for", wait::SOON, said.next_line()).await.expect("read");
        told = told + &line.expect("it says more before it ends") + "\n";
    }
    assert!(
        told.contains("on record: ") && told.contains(&format!("asks {asked} to raise the fence of site")),
        "{told}"
    );
    assert!(told.contains(&format!("the answer of {asked}")) && told.contains("holdfast evidence"), "{told}");
    assert!(operator.evidence(&label).await.is_empty(), "nobody has answered");
    assert!(child.try_wait().expect("it is a child").is_none(), "it waits");

    cluster.agent(asked).thaw();
    let ended: ExitStatus = wait::within("it to end", wait::SOON, child.wait()).await.expect("it ends");
    assert_eq!(ended.code(), Some(0), "{told}");
    operator.until_evidence(&label, "the raise", |piece| piece.kind == "fenced_off").await;
}
