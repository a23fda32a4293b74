//! What `/metrics` says: the names of the tables, true figures, and nobody's identity.

use std::collections::BTreeSet;
use std::path::Path;

use holdfast_net::ops::table::{Kind, Row, markdown};
use holdfast_proto::v1::{
    AttestedRunner, AttestedTarget, CancelAnswer, Contact, DecisionKind, DeploymentState, SubmitRequest,
};
use holdfast_tests::api::{Operator, code_of, id_of, label_of};
use holdfast_tests::cluster::{LONG, Plan, SHORT};
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::ops::Metrics;
use uuid::Uuid;

use crate::PROGRAM;
use crate::support::{BOX, begun, change, submit, uncertain, with_box};

/// What a sample is called without its labels and what a histogram adds.
fn family<'a>(sample: &'a str, table: &'a [Row]) -> Option<&'a Row> {
    let name = sample.split('{').next().unwrap_or_default();
    table.iter().find(|row| match row.kind {
        Kind::Histogram => ["_sum", "_count", "_bucket"].iter().any(|end| name.strip_suffix(end) == Some(row.name)),
        Kind::Counter | Kind::Gauge | Kind::Info => name == row.name,
    })
}

fn labels(sample: &str) -> Vec<(String, String)> {
    let Some((_, rest)) = sample.split_once('{') else { return Vec::new() };
    let inside = rest.trim_end_matches('}');
    let pairs = inside.split("\",").map(|pair| pair.split_once("=\"").expect("a label"));
    pairs.map(|(name, value)| (name.to_owned(), value.trim_end_matches('"').to_owned())).collect()
}

fn compare(name: &str, metrics: &Metrics, table: &[Row]) {
    for row in table {
        assert!(row.name.starts_with("holdfast_"), "{name}: {}", row.name);
        let kind = format!("# TYPE {} {}\n", row.name, row.kind.word());
        assert!(metrics.text.contains(&kind), "{name}: no {kind} in\n{}", metrics.text);
        let help = format!("# HELP {} {}.\n", row.name, row.help);
        assert!(metrics.text.contains(&help), "{name}: no {help} in\n{}", metrics.text);
        let served = metrics.samples().any(|(sample, _)| family(sample, table).is_some_and(|found| found == row));
        assert!(served, "{name}: no sample of {}", row.name);
    }
    for (sample, _) in metrics.samples() {
        let row = family(sample, table).unwrap_or_else(|| panic!("{name}: {sample} is in no row"));
        let found: Vec<_> = labels(sample).into_iter().filter(|(label, _)| label != "le").collect();
        let expected: Vec<&str> = row.labels.iter().map(|(label, _)| *label).collect();
        assert_eq!(found.iter().map(|(label, _)| label.as_str()).collect::<Vec<_>>(), expected, "{name}: {sample}");
        for ((label, value), (_, allowed)) in found.iter().zip(row.labels) {
            assert!(allowed.is_empty() || allowed.contains(&value.as_str()), "{name}: {label}={value} in {sample}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_served_is_the_table() {
    let mut cluster = Plan::new(PROGRAM).agents(&["web-01"]).start().await;
    let coordinator = cluster.coordinator().ops().metrics().await;
    compare("coordinator", &coordinator, &holdfast_coordinator::metrics::table());
    assert_eq!(coordinator.of("holdfast_build_info{version=\"0.1.0\"}"), 1.0);
    let agent = cluster.agent("web-01").ops().metrics().await;
    compare("agent", &agent, &holdfast_agent::metrics::table());
}

/// `HOLDFAST_BLESS=1` writes the page anew.
#[test]
fn the_reference_page_is_the_table() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    let text = std::fs::read_to_string(&page).expect("the page is there");
    let parts = [
        ("coordinator", markdown(&holdfast_coordinator::metrics::table())),
        ("agent", markdown(&holdfast_agent::metrics::table())),
    ];
    let mut fresh = text.clone();
    for (name, table) in &parts {
        let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
        let from = fresh.find(&begin).expect("the place of the table") + begin.len();
        let to = fresh.find(&end).expect("the end of the table");
        fresh.replace_range(from..to, table);
    }
    if std::env::var_os("HOLDFAST_BLESS").is_some() {
        std::fs::write(&page, &fresh).expect("written");
    }
    assert!(
        text == fresh || std::env::var_os("HOLDFAST_BLESS").is_some(),
        "docs/metrics.md is not the tables: bless it"
    );
}

/// Ends cut off while nobody hears of it.
async fn ended_unheard(
    cluster: &holdfast_tests::cluster::Cluster,
    operator: &Operator,
    ledger: &holdfast_tests::ledger::Ledger,
    gate: &str,
) -> (String, String) {
    let index = ledger.intervals().len();
    let label = submit(operator, &change(SHORT, "unsafe", &ledger.gated(gate))).await;
    ledger.until_begun(index + 1).await;
    let deployment = operator
        .until(&label, "the start to be reported", |found| {
            found.attempts.last().is_some_and(|attempt| attempt.steps[0].started.is_some())
        })
        .await;
    let agent = deployment.attempts.last().expect("an attempt").agent.clone();
    cluster.line(&agent).cut().await;
    operator.until_state(&label, DeploymentState::Uncertain).await;
    ledger.open_gate(gate);
    ledger.until_ended(index).await;
    (label, agent)
}

/// One of everything, and the figures after it, each exact.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_figure_is_what_happened_and_the_unknown_is_no_failure() {
    let (mut cluster, operator, ledger) = with_box().await;
    let ops = cluster.coordinator().ops();
    let mut ids = BTreeSet::new();

    // A success and a failure.
    let first = submit(&operator, &change(LONG, "idempotent", &ledger.command())).await;
    operator.until_state(&first, DeploymentState::Succeeded).await;
    operator.apply_target(&files::command_target("other@test", false)).await;
    let failing = DeploymentFile::new("other@test", LONG).mutates("change", "idempotent", &["false".to_owned()]);
    let failing = submit(&operator, failing.text()).await;
    operator.until_state(&failing, DeploymentState::Failed).await;
    let now = ops.metrics().await;
    assert_eq!(now.of("holdfast_deployments_total{outcome=\"succeeded\"}"), 1.0);
    assert_eq!(now.of("holdfast_deployments_total{outcome=\"failed\"}"), 1.0);
    assert_eq!(now.of("holdfast_targets_uncertain"), 0.0);
    assert_eq!(now.of("holdfast_oldest_uncertain_age_seconds"), 0.0);
    assert_eq!(now.of("holdfast_agents{contact=\"connected\"}"), 2.0);

    // Cut off in the middle: uncertain, and no failure. Its late end is compared with nothing: nothing is on record.
    let (second, agent) = ended_unheard(&cluster, &operator, &ledger, "second").await;
    let waiting = submit(&operator, &change(LONG, "idempotent", &ledger.command())).await;
    let now = ops.metrics().await;
    assert_eq!(now.of("holdfast_targets_uncertain"), 1.0);
    assert_eq!(now.of("holdfast_targets_reserved"), 1.0);
    assert_eq!(now.of("holdfast_deployments_open{state=\"uncertain\"}"), 1.0);
    assert_eq!(now.of("holdfast_deployments_open{state=\"queued\"}"), 1.0);
    assert_eq!(now.of("holdfast_deployment_moves_total{state=\"uncertain\"}"), 1.0);
    assert_eq!(now.of("holdfast_lease_expirations_total{phase=\"permit_open\"}"), 1.0);
    assert_eq!(now.of("holdfast_deployments_total{outcome=\"failed\"}"), 1.0);
    let age = now.of("holdfast_oldest_uncertain_age_seconds");
    assert!(age > 0.0 && age < 60.0, "{age}");
    ops.until_figures("the age to grow", |now| now.of("holdfast_oldest_uncertain_age_seconds") > age).await;
    let no_queue = SubmitRequest {
        request_id: Uuid::now_v7().to_string(),
        file: change(LONG, "unsafe", &ledger.command()),
        no_queue: true,
        ..SubmitRequest::default()
    };
    let refused = operator.client.clone().submit(no_queue).await.expect_err("it is held");
    assert_eq!(code_of(&refused), "HF-2031");
    cluster.line(&agent).heal().await;
    operator.until_evidence(&second, "the late end", |found| found.body_json.contains("attempt_ended")).await;
    let now = ops.metrics().await;
    assert_eq!(now.of("holdfast_late_evidence_total{agrees=\"unknown\"}"), 2.0);
    assert_eq!(now.of("holdfast_refusals_total{code=\"HF-2031\"}"), 1.0);

    // A cancel on the spot, and a decision.
    assert_eq!(operator.cancel(&waiting).await, CancelAnswer::Cancelled);
    operator.attest(&second, BOX, AttestedRunner::Stopped, AttestedTarget::Applied).await.expect("kept");
    operator.decide(&second, BOX, DecisionKind::AcceptSucceeded).await.expect("open");
    let now = ops.metrics().await;
    assert_eq!(now.of("holdfast_cancel_requests_total{result=\"cancelled_at_once\"}"), 1.0);
    assert_eq!(now.of("holdfast_decisions_total{kind=\"accept-succeeded\"}"), 1.0);
    assert_eq!(now.of("holdfast_targets_uncertain"), 0.0);
    assert_eq!(now.of("holdfast_oldest_uncertain_age_seconds"), 0.0);
    assert_eq!(now.of("holdfast_deployments_total{outcome=\"succeeded\"}"), 2.0);

    // Decided before the late end comes: now there is something to agree with.
    operator.until_contact(&agent, Contact::Connected).await;
    let (third, agent) = ended_unheard(&cluster, &operator, &ledger, "third").await;
    operator.attest(&third, BOX, AttestedRunner::Stopped, AttestedTarget::Applied).await.expect("kept");
    operator.decide(&third, BOX, DecisionKind::AcceptSucceeded).await.expect("open");
    cluster.line(&agent).heal().await;
    operator.until_evidence(&third, "the late end", |found| found.body_json.contains("attempt_ended")).await;
    assert_eq!(ops.metrics().await.of("holdfast_late_evidence_total{agrees=\"yes\"}"), 2.0);
    operator.until_contact(&agent, Contact::Connected).await;

    // Superseded: another attempt has carried on under a higher fence before the late end comes.
    let (retried, agent) = ended_unheard(&cluster, &operator, &ledger, "retried").await;
    operator.attest(&retried, BOX, AttestedRunner::Stopped, AttestedTarget::Applied).await.expect("kept");
    operator.decide(&retried, BOX, DecisionKind::Retry).await.expect("open");
    operator.until_state(&retried, DeploymentState::Succeeded).await;
    assert_eq!(ops.metrics().await.of("holdfast_stale_fence_rejections_total{where=\"report\"}"), 0.0);
    cluster.line(&agent).heal().await;
    operator.until_evidence(&retried, "the late end", |found| found.body_json.contains("attempt_ended")).await;
    assert_eq!(ops.metrics().await.of("holdfast_stale_fence_rejections_total{where=\"report\"}"), 2.0);
    operator.until_contact(&agent, Contact::Connected).await;

    // A stop of what runs, and one after the end.
    let (fourth, _) = begun(&operator, &ledger, LONG, "idempotent").await;
    assert_eq!(operator.cancel(&fourth).await, CancelAnswer::Recorded);
    operator.until_state(&fourth, DeploymentState::Cancelled).await;
    operator.cancel(&fourth).await;
    let now = ops.until_figure("holdfast_agents{contact=\"connected\"}", 2.0).await;
    for (name, value) in [
        ("holdfast_deployments_total{outcome=\"succeeded\"}", 4.0),
        ("holdfast_deployments_total{outcome=\"failed\"}", 1.0),
        ("holdfast_deployments_total{outcome=\"cancelled\"}", 2.0),
        ("holdfast_deployments_open{state=\"active\"}", 0.0),
        ("holdfast_deployments_open{state=\"queued\"}", 0.0),
        ("holdfast_deployments_open{state=\"held\"}", 0.0),
        ("holdfast_targets_reserved", 0.0),
        ("holdfast_cancel_requests_total{result=\"recorded\"}", 1.0),
        ("holdfast_cancel_requests_total{result=\"already_ended\"}", 1.0),
        ("holdfast_cancel_outcomes_total{outcome=\"cancelled\"}", 2.0),
        ("holdfast_cancel_outcomes_total{outcome=\"too_late\"}", 0.0),
        ("holdfast_lease_expirations_total{phase=\"permit_open\"}", 3.0),
        ("holdfast_lease_expirations_total{phase=\"unpermitted\"}", 0.0),
        ("holdfast_late_evidence_total{agrees=\"no\"}", 0.0),
        ("holdfast_events_total{event=\"submitted\"}", 7.0),
        ("holdfast_events_total{event=\"permit_granted\"}", 6.0),
        ("holdfast_grpc_requests_total{method=\"holdfast.v1.OperatorService/Submit\",code=\"OK\"}", 7.0),
        (
            "holdfast_grpc_requests_total{method=\"holdfast.v1.OperatorService/Submit\",code=\"FAILED_PRECONDITION\"}",
            1.0,
        ),
        ("holdfast_grpc_request_seconds_count{method=\"holdfast.v1.OperatorService/Submit\"}", 8.0),
        ("holdfast_grpc_open_requests{method=\"holdfast.v1.AgentService/Connect\"}", 2.0),
        ("holdfast_refusals_total{code=\"HF-6001\"}", 0.0),
        ("holdfast_driver_waiting_messages", 0.0),
    ] {
        assert_eq!(now.of(name), value, "{name}");
    }
    assert!(now.of("holdfast_store_commit_seconds_count") > 10.0);

    // What the agents say of the same, together.
    let mut ends =
        [("applied", 4.0), ("failed", 1.0), ("stopped", 1.0), ("unknown", 0.0)].map(|(end, count)| (end, count, 0.0));
    for name in ["web-01", "web-02"] {
        let agent = cluster.agent(name).ops();
        let now = agent.until_figure("holdfast_agent_outbox_reports", 0.0).await;
        for (end, _, found) in &mut ends {
            *found += now.of(&format!("holdfast_agent_steps_total{{end=\"{end}\"}}"));
        }
        assert_eq!(now.of("holdfast_agent_attempts{phase=\"running\"}"), 0.0);
    }
    for (end, count, found) in ends {
        assert_eq!(found, count, "{end}");
    }

    // No identity is a label.
    for label in [&first, &failing, &second, &third, &fourth, &waiting, &retried] {
        let deployment = operator.deployment(label).await;
        ids.insert(id_of(&deployment));
        ids.insert(label_of(&deployment));
        ids.extend(deployment.attempts.iter().flat_map(|attempt| [attempt.id.clone(), attempt.agent.clone()]));
    }
    ids.extend([BOX, "other@test", "admin", "change"].map(str::to_owned));
    for ops in [cluster.coordinator().ops(), cluster.agent("web-01").ops()] {
        let text = ops.metrics().await.text;
        for id in &ids {
            assert!(!text.contains(id.as_str()), "{id} is in\n{text}");
        }
    }
}

/// The oldest age is the event's, not the process's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_age_of_what_is_uncertain_survives_a_restart() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, _) = uncertain(&cluster, &operator, &ledger, SHORT).await;
    let age = "holdfast_oldest_uncertain_age_seconds";
    let before = cluster.coordinator().ops().until_figures("an age", |now| now.of(age) > 1.0).await.of(age);
    cluster.restart_coordinator().await;
    let after = cluster.coordinator().ops().metrics().await;
    assert_eq!(after.of("holdfast_targets_uncertain"), 1.0);
    assert!(after.of(age) > before, "{} after {before}", after.of(age));
    operator.attest(&label, BOX, AttestedRunner::Stopped, AttestedTarget::Applied).await.expect("kept");
    operator.decide(&label, BOX, DecisionKind::AcceptSucceeded).await.expect("open");
    assert_eq!(cluster.coordinator().ops().metrics().await.of(age), 0.0);
}
