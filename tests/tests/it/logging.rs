//! The log: every line can be read by a program, names what it is about, and holds no secret.

use std::collections::BTreeMap;
use std::fmt;

use holdfast_proto::v1::{AttestedRunner, AttestedTarget, Contact, DecisionKind, DeploymentState};
use holdfast_tests::cluster::{Cluster, LONG, Plan, SHORT};
use holdfast_tests::files::command_target;
use holdfast_tests::wait;
use serde::Deserialize;
use serde::de::{Error, MapAccess, Visitor};
use serde_json::Value;

use crate::PROGRAM;
use crate::support::{BOX, begun, change, submit, uncertain};

/// One line. A key that comes twice is an error.
#[derive(Debug)]
struct Line(BTreeMap<String, Value>);

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Line;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line, A::Error> {
                let mut line = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    if line.insert(key.clone(), value).is_some() {
                        return Err(A::Error::custom(format!("{key} comes twice")));
                    }
                }
                Ok(Line(line))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

impl Line {
    fn text(&self, key: &str) -> &str {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

fn raw(cluster: &Cluster, name: &str) -> String {
    std::fs::read_to_string(cluster.folder().join(&format!("{name}.log"))).expect("a log")
}

fn lines(cluster: &Cluster, name: &str) -> Vec<Line> {
    let text = raw(cluster, name);
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}: {error}: {line}"));
    text.lines().map(read).collect()
}

/// The line with that message about that deployment. It must have every one of these fields, and say something in each.
#[track_caller]
fn find<'a>(lines: &'a [Line], message: &str, deployment: &str, fields: &[&str]) -> &'a Line {
    let found = lines.iter().find(|line| line.text("message") == message && line.text("deployment") == deployment);
    let line = found.unwrap_or_else(|| panic!("no {message:?} of {deployment} in {lines:#?}"));
    for field in fields {
        assert!(line.0.get(*field).is_some_and(|value| value != "" && !value.is_null()), "no {field} in {line:?}");
    }
    line
}

async fn with_json_logs() -> (Cluster, holdfast_tests::api::Operator, holdfast_tests::ledger::Ledger) {
    let plan = Plan::new(PROGRAM)
        .coordinator_environment("HOLDFAST_LOG_FORMAT", "json")
        .agent_environment("HOLDFAST_LOG_FORMAT", "json");
    let cluster = plan.start().await;
    let operator = cluster.operator();
    operator.apply_target(&command_target(BOX, false)).await;
    let ledger = cluster.ledger("box");
    (cluster, operator, ledger)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_line_is_an_object_with_its_ids_and_without_a_secret() {
    let (mut cluster, operator, ledger) = with_json_logs().await;
    let done = submit(&operator, &change(LONG, "idempotent", &ledger.command())).await;
    let done = operator.until_state(&done, DeploymentState::Succeeded).await;
    let (label, agent) = uncertain(&cluster, &operator, &ledger, SHORT).await;
    let lost = operator.deployment(&label).await;
    ledger.open_gate("go");
    ledger.until_ended(1).await;
    cluster.line(&agent).heal().await;
    operator.until_evidence(&label, "the late end", |found| found.body_json.contains("attempt_ended")).await;
    operator.attest(&label, BOX, AttestedRunner::Stopped, AttestedTarget::Applied).await.expect("kept");
    operator.decide(&label, BOX, DecisionKind::AcceptSucceeded).await.expect("open");
    let coordinator = cluster.coordinator();
    let tokens = [coordinator.admin().to_owned(), coordinator.viewer().to_owned()];
    assert!(coordinator.terminate().await.success());

    let id = |deployment: &holdfast_proto::v1::Deployment| holdfast_tests::api::id_of(deployment);
    let told = lines(&cluster, "coordinator");
    for deployment in [&done, &lost] {
        let id = id(deployment);
        let attempt = &deployment.attempts[0];
        let granted = find(&told, "lease granted", &id, &["target", "attempt", "agent", "fence", "level", "timestamp"]);
        assert_eq!((granted.text("target"), granted.text("attempt")), (BOX, attempt.id.as_str()));
        assert_eq!(granted.text("agent"), attempt.agent);
        find(&told, "deployment submitted", &id, &["target", "by", "number", "request"]);
        find(&told, "attempt ended", &id, &["target", "attempt", "state", "because"]);
        find(&told, "deployment ended", &id, &["target", "state", "because"]);
    }
    let alarm = find(&told, "somebody must decide", &id(&lost), &["target", "state", "because"]);
    assert_eq!((alarm.text("level"), alarm.text("state")), ("WARN", "uncertain"));
    find(&told, "report filed as evidence", &id(&lost), &["target", "attempt", "agent", "fence", "filed"]);
    find(&told, "decided", &id(&lost), &["target", "by", "kind", "reason"]);
    let contact = told.iter().find(|line| line.text("message") == "an agent is in contact").expect("told");
    assert!(!contact.text("session").is_empty() && !contact.text("agent").is_empty(), "{contact:?}");

    let worker = &done.attempts[0].agent;
    let said = lines(&cluster, worker);
    find(&said, "took an offer", &id(&done), &["target", "attempt", "fence"]);
    find(&said, "step started", &id(&done), &["target", "attempt", "fence", "step"]);
    find(&said, "step ended", &id(&done), &["target", "attempt", "fence", "step", "end", "exit"]);
    for name in ["coordinator", "web-01", "web-02"] {
        let _each_is_read = lines(&cluster, name);
        for token in &tokens {
            assert!(!raw(&cluster, name).contains(token.as_str()), "a token is in the log of {name}");
        }
    }
}

/// Work under way renews its lease several times a second: that is no news.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_is_no_line() {
    let (mut cluster, operator, ledger) = with_json_logs().await;
    let (label, _) = begun(&operator, &ledger, LONG, "idempotent").await;
    let names = ["coordinator", "web-01", "web-02"];
    let count = |cluster: &Cluster| names.map(|name| lines(cluster, name).len());
    let (before, ops) = (count(&cluster), cluster.coordinator().ops());
    let turns = "holdfast_driver_batch_messages_count";
    let begun = ops.metrics().await.of(turns);
    ops.until_figures("ten more heartbeats", |now| now.of(turns) >= begun + 10.0).await;
    assert_eq!(count(&cluster), before);
    ledger.open_gate("go");
    operator.until_state(&label, DeploymentState::Succeeded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hangup_is_told_in_the_log_and_ends_nothing() {
    let mut cluster = Plan::new(PROGRAM).start().await;
    let pids = [cluster.coordinator().pid(), cluster.agent("web-01").pid()].map(|pid| pid.to_string());
    for (name, pid) in ["coordinator", "web-01"].into_iter().zip(&pids) {
        let sent = std::process::Command::new("kill").args(["-HUP", pid]).status().expect("kill can be started");
        assert!(sent.success());
        wait::until_true("the hangup to be told", wait::SOON, || {
            raw(&cluster, name).contains("SIGHUP: nothing to reload")
        })
        .await;
    }
    let operator = cluster.operator();
    operator.until_contact("web-01", Contact::Connected).await;
    assert_eq!([cluster.coordinator().pid(), cluster.agent("web-01").pid()].map(|pid| pid.to_string()), pids);
}
