//! Certificates that change, break and are revoked while work runs.

use std::path::Path;

use holdfast_proto::v1::Contact;
use holdfast_tests::cluster::LONG;
use holdfast_tests::wait;

use crate::support::{begun, with_box};

fn is_alive(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_agent_can_not_report_its_child_lives_and_its_target_is_not_freed() {
    let (cluster, operator, ledger) = with_box().await;
    let (label, agent) = begun(&operator, &ledger, LONG, "unsafe").await;
    let children = cluster.shims(&agent);
    assert!(!children.is_empty());
    let removed =
        cluster.cli().run(&["agent", "remove", &agent, "--confirm", &agent, "--reason", "its host was stolen"]).await;
    removed.expect(0);
    operator.until_contact(&agent, Contact::Silent).await;
    assert!(children.iter().all(|child| is_alive(*child)), "what runs there is not touched");
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    // It has ended there; nobody hears of it, so the target is held as before.
    let held = operator.deployment(&label).await;
    assert!(held.attempts[0].steps[0].ended.is_none(), "{held:#?}");
    let target = cluster.cli().run(&["target", "show", crate::support::BOX, "--json"]).await.expect(0).json();
    assert!(target.to_string().contains(&label), "{target:#}");
    let audit = cluster.cli().run(&["audit", "list", "--json"]).await.expect(0).stdout.clone();
    assert!(audit.contains("agent_removed"), "{audit}");
    let log = std::fs::read_to_string(cluster.folder().join(&format!("{agent}.log"))).expect("its log");
    assert!(log.contains("HF-4017"), "the agent says why:\n{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_server_certificate_counts_from_the_next_handshake_a_broken_one_is_told_and_streams_live_on() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, _) = begun(&operator, &ledger, LONG, "unsafe").await;
    let pair = cluster.server_pair("next");
    let live = cluster.server_pair("coordinator");
    let presented = async |cluster: &mut holdfast_tests::cluster::Cluster| {
        let address = cluster.coordinator().address().to_string();
        let limits = holdfast_net::channel::Limits::default();
        holdfast_net::channel::presented(&address, &limits).await.expect("it answers")[0].to_vec()
    };

    // Another key than the certificate's: told, and the old pair goes on.
    std::fs::copy(&pair.key, &live.key).expect("copied");
    let log = cluster.coordinator().log();
    wait::until_true("the broken pair to be told", wait::SOON, || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.contains("new certificates can't be used"))
    })
    .await;
    let ready = cluster.coordinator().ops().get("/readyz?verbose").await;
    assert!(format!("{ready:?}").contains("does not belong to"), "{ready:?}");
    let unchanged = presented(&mut cluster).await;

    std::fs::copy(&pair.certificate, &live.certificate).expect("copied");
    wait::until("the new certificate", wait::SOON, async || {
        let now = presented(&mut cluster).await;
        if now == unchanged { Err("the old one".to_owned()) } else { Ok(()) }
    })
    .await;
    ledger.open_gate("go");
    operator.until_ended(&label).await;
    ledger.check_begun(1);
}
