//! Certificates that change, break and are revoked while work runs.

use std::path::{Path, PathBuf};

use holdfast_common::time::{Millis, Wall};
use holdfast_coordinator::ca::{self, Files};
use holdfast_coordinator::serve::wall;
use holdfast_net::tls::ClientTls;
use holdfast_proto::v1::Contact;
use holdfast_tests::api::Operator;
use holdfast_tests::cluster::{Cluster, LONG, Plan};
use holdfast_tests::files;
use holdfast_tests::peer::{Peer, hello};
use holdfast_tests::wait;
use uuid::Uuid;

use crate::PROGRAM;
use crate::enrol::{join, run, signing, token};
use crate::support::{BOX, begun, with_box};

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

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The first certificate of a file, as it stands there.
fn first_of(bundle: &str) -> String {
    const END: &str = "-----END CERTIFICATE-----";
    let end = bundle.find(END).expect("a certificate") + END.len();
    bundle[..end].lines().collect::<Vec<_>>().join("\n")
}

fn holds(bundle: &str, certificate: &str) -> bool {
    bundle.lines().collect::<Vec<_>>().join("\n").contains(certificate)
}

/// The fingerprint that is listed.
async fn fingerprint(cluster: &Cluster, agent: &str) -> String {
    let agents = cluster.operator().try_agents().await.expect("listed");
    agents.into_iter().find(|one| one.name == agent).expect("listed").fingerprint
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_authority_is_rotated_under_running_work_agents_learn_of_it_and_the_old_one_is_retired() {
    let mut cluster = signing("12s").await;
    let (secret, words) = token(&cluster.cli(), &[]).await;
    join(&cluster, &secret, &words, "web-07").await.expect(0);
    let at = |file: &str| cluster.folder().join(&format!("web-07.identity/current/{file}"));
    let (certificate, authorities) = (at("agent.pem"), at("ca.pem"));
    let old: Vec<PathBuf> = ["agent.pem", "agent.key"]
        .map(|file| {
            let copy = cluster.folder().join(&format!("old-{file}"));
            std::fs::copy(at(file), &copy).expect("copied");
            copy
        })
        .into();
    let bundle = cluster.folder().join("coordinator/ca/ca.pem");
    let mut agent = run(&cluster, "web-07");
    let operator = cluster.operator();
    operator.until_contact("web-07", Contact::Connected).await;
    operator.apply_target(&files::command_target(BOX, false)).await;
    let ledger = cluster.ledger("box");
    let (label, _) = begun(&operator, &ledger, LONG, "unsafe").await;

    let told = cluster.coordinator().run(&["ca", "rotate"]);
    assert!(told.contains("2 authorities are trusted"), "{told}");
    let new = first_of(&read(&bundle));
    assert!(!holds(&read(&authorities), &new), "nobody told the agent yet");
    let before = read(&certificate);
    wait::until_true("the agent to renew and to learn of the new authority", wait::SOON, || {
        read(&certificate) != before && holds(&read(&authorities), &new)
    })
    .await;
    let log =
        || String::from_utf8_lossy(&std::fs::read(cluster.folder().join("web-07.log")).expect("a log")).into_owned();
    assert_eq!(log().matches("connected session=").count(), 1, "one session all the time:\n{}", log());

    // The coordinator shows the new authority's, the old authority is retired, and everybody has to connect again.
    let _told = cluster.coordinator().run(&["ca", "server", "--host", "127.0.0.1", "--host", "localhost"]);
    std::fs::write(&bundle, format!("{new}\n")).expect("written");
    cluster.restart_coordinator().await;
    let tls = ClientTls::from_files(&bundle, None, None).expect("sound files");
    let operator = Operator::new(&cluster.address(), &tls, cluster.coordinator().admin());
    operator.until_contact("web-07", Contact::Connected).await;
    ledger.open_gate("go");
    operator.until_ended(&label).await;
    ledger.check_begun(1);
    let shows = ClientTls::from_files(&bundle, Some((&old[0], &old[1])), None).expect("sound files");
    let address = format!("https://{}", cluster.coordinator().address());
    let refused = Peer::connect(&address, &shows, hello(Uuid::new_v4())).await.expect_err("of the old authority");
    assert!(!refused.message().contains("HF-"), "not even heard: {refused:?}");
    agent.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_pair_from_elsewhere_is_replaced_under_running_work_and_a_broken_one_is_told() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, name) = begun(&operator, &ledger, LONG, "unsafe").await;
    let other = crate::support::other(&name);
    let live = cluster.agent(&name).pair().clone();
    let before = fingerprint(&cluster, &name).await;
    std::fs::copy(cluster.agent(other).pair().key.clone(), &live.key).expect("copied");
    let log = cluster.folder().join(&format!("{name}.log"));
    wait::until_true("the broken pair to be told", wait::SOON, || {
        read(&log).contains("new certificates can't be used")
    })
    .await;
    let ready = cluster.agent(&name).ops().get("/readyz?verbose").await;
    assert!(format!("{ready:?}").contains("does not belong to"), "{ready:?}");

    let replaced = cluster.authority().agent(&name.parse().expect("a name")).expect("signed");
    assert_eq!(replaced, live, "in the same files");
    wait::until("the agent to be ready without a complaint", wait::SOON, async || {
        let ready = format!("{:?}", cluster.agent(&name).ops().get("/readyz?verbose").await);
        if ready.contains("does not belong to") { Err(ready) } else { Ok(()) }
    })
    .await;
    assert_eq!(fingerprint(&cluster, &name).await, before, "the connection goes on as it was made");
    cluster.line(&name).cut().await;
    operator.until_contact(&name, Contact::Silent).await;
    cluster.line(&name).heal().await;
    wait::until("the new certificate to be shown", wait::SOON, async || {
        let now = fingerprint(&cluster, &name).await;
        if now == before { Err(now) } else { Ok(()) }
    })
    .await;
    ledger.open_gate("go");
    operator.until_ended(&label).await;
    ledger.check_begun(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_whose_certificate_is_revoked_can_not_report_and_its_child_lives() {
    let (cluster, operator, ledger) = with_box().await;
    let (label, agent) = begun(&operator, &ledger, LONG, "unsafe").await;
    let children = cluster.shims(&agent);
    let shown = fingerprint(&cluster, &agent).await;
    let line = ["agent", "revoke", "--fingerprint", &shown, "--reason", "its key leaked"];
    assert!(cluster.cli().run(&line).await.expect(2).stderr.contains("HF-3004"), "its name is not confirmed");
    cluster.cli().run(&[&line[..], &["--confirm", &agent]].concat()).await.expect(0);
    let told = cluster.cli().run(&["agent", "show", &agent]).await;
    assert!(told.expect(0).stdout.contains("revoked"), "{told:?}");
    operator.until_contact(&agent, Contact::Silent).await;
    assert!(!children.is_empty() && children.iter().all(|child| is_alive(*child)), "what runs there is not touched");
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    let held = operator.deployment(&label).await;
    assert!(held.attempts[0].steps[0].ended.is_none(), "{held:#?}");
    let log = read(&cluster.folder().join(&format!("{agent}.log")));
    assert!(log.contains("HF-4017"), "the agent says why:\n{log}");
}

/// A coordinator whose own certificate is of an authority of the test, good from `from` for an hour. Answers the pin.
async fn at_another_time(from: Wall) -> (Cluster, String) {
    let mut cluster = Plan::new(PROGRAM).agents(&[]).prepare().await;
    let folder = cluster.folder();
    let files = Files { certificates: folder.join("elsewhere.pem"), key: folder.join("elsewhere.key") };
    let day_ago = Wall(wall().0 - 86_400_000_000);
    let authority = files.create(day_ago).expect("an authority");
    let (signed, key) = authority.server(&["127.0.0.1".to_owned()], Millis::from_secs(3600), from).expect("signed");
    let live = cluster.server_pair("coordinator");
    let chain = ca::pem_of(&signed.certificate) + &ca::pem_of(authority.certificate());
    std::fs::write(&live.key, key.serialize_pem()).expect("written");
    std::fs::write(&live.certificate, chain).expect("written");
    cluster.start_coordinator().await;
    (cluster, format!("sha256:{}", ca::fingerprint(authority.certificate())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_that_is_over_or_not_valid_yet_is_told_with_this_hosts_clock() {
    const HOUR: i64 = 3_600_000_000;
    for (from, word) in [(-6 * HOUR, "expired"), (6 * HOUR, "not valid yet")] {
        let (mut cluster, pin) = at_another_time(Wall(wall().0 + from)).await;
        let address = format!("https://{}", cluster.coordinator().address());
        let words = ["join", "--coordinator", &address, "--ca-pin", &pin].map(str::to_owned);
        let refused = join(&cluster, &format!("hfj_{}", "0".repeat(64)), &words, "web-07").await;
        refused.expect(4);
        for told in [word, "this host's clock says", "nothing was sent", "set this host's clock"] {
            assert!(refused.stderr.contains(told), "{told}: {}", refused.stderr);
        }
        let log = read(&cluster.coordinator().log());
        assert!(!log.contains("was not taken in"), "no token came:\n{log}");
    }
}
