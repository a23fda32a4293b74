//! What commands change: the documented gap.

use std::path::PathBuf;

use holdfast_proto::v1::{AttestedRunner, AttestedTarget, DecisionKind, DeploymentState};
use holdfast_tests::api::state_of;
use holdfast_tests::cluster::{LONG, Plan, SHORT};
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::{process, wait};

use super::rig::THING;
use crate::PROGRAM;
use crate::support::{lost, submit};

/// Nothing at the resource compares a fence: whoever attests that a paused process is gone is wrong about it, and its effect comes
/// late. So no fence-off is offered, nothing decides by itself, and the wrong word is on record as a person's for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_was_paused_takes_effect_late_and_nothing_but_a_persons_word_had_let_others_go_on() {
    let mut cluster = Plan::new(PROGRAM).start().await;
    let operator = cluster.operator();
    let (effects, pause) = (cluster.folder().join("effects"), cluster.folder().join("pause"));
    operator.apply_target(&files::command_target(THING, true)).await;
    let file = |revision: &str, ttl| {
        let script = format!(
            "if [ -e {pause} ]; then rm {pause}; kill -STOP $$; fi; echo {revision} >> {effects}",
            pause = pause.display(),
            effects = effects.display()
        );
        let argv = ["/bin/sh".to_owned(), "-c".to_owned(), script];
        DeploymentFile::new(THING, ttl).mutates("change", "unsafe", &argv).text().to_owned()
    };
    let underwent = |effects: &PathBuf| std::fs::read_to_string(effects).unwrap_or_default();
    super::succeeds(&operator, &file("r1", LONG)).await;
    cluster.agent("web-02").kill();
    std::fs::write(&pause, "").expect("a test's folder");
    let label = submit(&operator, &file("r2", SHORT)).await;
    let still = lost(&mut cluster, &operator, &label).await;

    operator.fence_off(&label, THING).await.expect_err("the resource keeps no fence");
    operator.decide(&label, THING, DecisionKind::Retry).await.expect_err("nothing proves the runner out");
    let attested = operator.attest(&label, THING, AttestedRunner::HostGone, AttestedTarget::NotApplied).await;
    attested.expect("a person may say what nothing proves");
    operator.decide(&label, THING, DecisionKind::Retry).await.expect("on that word");
    assert_eq!(state_of(&operator.until_ended(&label).await), DeploymentState::Succeeded);
    super::succeeds(&operator, &file("r3", LONG)).await;
    assert_eq!(underwent(&effects), "r1\nr2\nr3\n");

    process::resume(still);
    wait::until_true("the gap to show", wait::SOON, || underwent(&effects) == "r1\nr2\nr3\nr2\n").await;
    cluster.line("web-01").heal().await;
    let evidence = operator.evidence(&label).await;
    assert!(evidence.iter().any(|evidence| evidence.kind == "attested"), "{evidence:#?}");
}
