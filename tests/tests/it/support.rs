//! What several modules share.

use std::time::Duration;

use holdfast_proto::v1::{Attempt, Contact, Deployment, DeploymentState};
use holdfast_tests::api::{Operator, label_of};
use holdfast_tests::cluster::{Cluster, Plan};
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::ledger::Ledger;

use crate::PROGRAM;

/// The target that commands change.
pub(crate) const BOX: &str = "box@test";
/// The target with a release folder.
pub(crate) const SHOP: &str = "shop@test";

/// Two agents and the target [`BOX`], which both reach. What its commands do ends with their process.
pub(crate) async fn with_box() -> (Cluster, Operator, Ledger) {
    let cluster = Plan::new(PROGRAM).start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    let ledger = cluster.ledger("box");
    (cluster, operator, ledger)
}

/// A deployment of one step, `change`.
pub(crate) fn change(ttl: Duration, retry: &str, argv: &[String]) -> String {
    DeploymentFile::new(BOX, ttl).mutates("change", retry, argv).text().to_owned()
}

/// Submits it and gives its label.
pub(crate) async fn submit(operator: &Operator, file: &str) -> String {
    label_of(&operator.submit(file).await)
}

/// Its last attempt.
#[track_caller]
pub(crate) fn last_attempt(deployment: &Deployment) -> &Attempt {
    deployment.attempts.last().expect("it has an attempt")
}

/// The other one of the two agents.
pub(crate) fn other(agent: &str) -> &'static str {
    if agent == "web-01" { "web-02" } else { "web-01" }
}

/// Submits a gated change, waits until it has begun, and gives its label and its agent.
pub(crate) async fn begun(operator: &Operator, ledger: &Ledger, ttl: Duration, retry: &str) -> (String, String) {
    let count = ledger.intervals().len();
    let label = submit(operator, &change(ttl, retry, &ledger.gated("go"))).await;
    ledger.until_begun(count + 1).await;
    let deployment = operator
        .until(&label, "the start to be reported", |deployment| {
            deployment.attempts.last().is_some_and(|attempt| attempt.steps[0].started.is_some())
        })
        .await;
    (label, last_attempt(&deployment).agent.clone())
}

/// The same, cut off and uncertain.
pub(crate) async fn uncertain(
    cluster: &Cluster,
    operator: &Operator,
    ledger: &Ledger,
    ttl: Duration,
) -> (String, String) {
    let (label, agent) = begun(operator, ledger, ttl, "unsafe").await;
    cluster.line(&agent).cut().await;
    operator.until_state(&label, DeploymentState::Uncertain).await;
    (label, agent)
}

/// That file's deployment by web-01, whose process stands still before that call when its agent is cut off.
pub(crate) async fn lost_before(cluster: &mut Cluster, operator: &Operator, call: &str, file: &str) -> (String, i32) {
    cluster.halt_before("web-01", call);
    operator.until_contact("web-01", Contact::Connected).await;
    let label = submit(operator, file).await;
    let still = lost(cluster, operator, &label).await;
    (label, still)
}

/// Waits until web-01's process stands still, cuts that agent off until the deployment is uncertain, and brings web-02.
pub(crate) async fn lost(cluster: &mut Cluster, operator: &Operator, label: &str) -> i32 {
    let still = cluster.standing_still("web-01").await;
    cluster.line("web-01").cut().await;
    operator.until_state(label, DeploymentState::Uncertain).await;
    cluster.agent("web-02").start();
    operator.until_contact("web-02", Contact::Connected).await;
    still
}
