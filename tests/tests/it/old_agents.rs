//! Agents that can't do what is wanted are not passed over without a word (F59), and get nothing that they could misunderstand (T17).

use holdfast_proto::v1::Hello;
use holdfast_tests::api::Operator;
use holdfast_tests::cluster::{LONG, Plan};
use holdfast_tests::files;
use holdfast_tests::peer::hello;
use uuid::Uuid;

use crate::PROGRAM;
use crate::support::{BOX, change, submit};

async fn until_waits_for(operator: &Operator, label: &str, why: &str) {
    operator.until(label, why, |deployment| deployment.waiting.contains(why) && deployment.attempts.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_of_an_older_protocol_gets_no_lease_and_who_waits_for_it_is_told_why() {
    let mut cluster = Plan::new(PROGRAM).agents(&[]).start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    let file = change(LONG, "unsafe", &["/bin/true".to_owned()]);
    let label = submit(&operator, &file).await;
    let incarnation = Uuid::new_v4();
    for (versions, told) in [
        (vec![0], "it speaks protocol 0 and this coordinator speaks 1"),
        (vec![2, 99], "it speaks protocol 2, 99 and this coordinator speaks 1"),
        (vec![], "it speaks protocol of no version"),
    ] {
        let old = Hello { protocol_versions: versions, ..hello(incarnation) };
        let refused = cluster.peer("web-09", old).await.expect_err("it gets no session").to_string();
        assert!(refused.contains("HF-5004"), "{refused}");
        until_waits_for(&operator, &label, told).await;
    }
    let why = "speaks protocol";
    let plan = operator.plan(&file.replace("change", "changes")).await;
    assert!(plan.entry_because.contains(why) || format!("{plan:?}").contains(why), "{plan:?}");
    for words in [&["show", &label][..], &["list"]] {
        let shown = cluster.cli().run(words).await;
        shown.expect(0);
        assert!(shown.stdout.contains(why), "{words:?}: {}", shown.stdout);
    }
    let ops = cluster.coordinator().ops();
    let metrics = ops.until_figure("holdfast_deployments_without_agent", 1.0).await;
    assert!(metrics.of("holdfast_agents_passed_over_total{why=\"protocol\"}") >= 3.0, "{}", metrics.text);

    // Upgraded, but without what the target needs.
    let poor = Hello { adapters: vec!["release".to_owned()], ..hello(incarnation) };
    let peer = cluster.peer("web-09", poor).await.expect("a session");
    until_waits_for(&operator, &label, "its host does not offer the adapter command of resource box").await;
    let adapter =
        |metrics: &holdfast_tests::ops::Metrics| metrics.of("holdfast_agents_passed_over_total{why=\"adapter\"}") > 0.0;
    ops.until_figures("the missing adapter to be counted", adapter).await;

    // While it is in contact, an old one with its certificate changes nothing about it.
    let old = Hello { protocol_versions: vec![0], ..hello(Uuid::new_v4()) };
    cluster.peer("web-09", old).await.expect_err("it gets no session");
    until_waits_for(&operator, &label, "its host does not offer the adapter command").await;
    drop(peer);

    let mut whole = cluster.peer("web-09", hello(incarnation)).await.expect("a session");
    let offer = whole.take_offer().await;
    assert!(offer.claim.is_some(), "it is offered to the one that can");
    ops.until_figure("holdfast_deployments_without_agent", 0.0).await;
}
