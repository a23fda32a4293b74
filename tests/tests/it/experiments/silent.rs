//! A holder that says nothing any more.

use std::time::{Duration, Instant};

use holdfast_proto::v1::{AttestedRunner, AttestedTarget, DecisionKind, DeploymentState};
use holdfast_tests::api::{id_of, is_terminal, state_of};
use holdfast_tests::cluster::{LONG, Plan, SHORT};
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::wait;

use crate::PROGRAM;
use crate::support::{BOX, change, last_attempt, submit};

/// Every timer of this target and its deployments is this short.
const TIMER: Duration = Duration::from_millis(300);
/// How often the longest of them could have fired.
const TIMES: u32 = 3;

/// F58: the lease, the deadline of the step and of the whole, the time in the queue, the patience of the policy and of the
/// coordinator's next life all pass, and the target stays with who holds it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_timer_opens_the_reservation_of_a_silent_holder() {
    let mut cluster = Plan::new(PROGRAM).start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::decided_by("when-proven", TIMER, &files::command_target(BOX, false))).await;
    let ledger = cluster.ledger("box");
    let timer = format!("\"{}ms\"", TIMER.as_millis());
    let keys = format!("retry = \"idempotent\"\ntimeout = {timer}\nrun = {:?}\n", ledger.gated("go"));
    let holder = DeploymentFile::new(BOX, SHORT).timeouts(&format!("deployment = {timer}\n")).grace("1h");
    let holder = submit(&operator, holder.step("change", &keys).text()).await;
    ledger.until_begun(1).await;
    let agent = last_attempt(&operator.deployment(&holder).await).agent.clone();
    cluster.line(&agent).black_hole(holdfast::proxy::Ways::Both);
    operator.until_state(&holder, DeploymentState::Uncertain).await;

    let impatient = DeploymentFile::new(BOX, SHORT).timeouts(&format!("queue = {timer}\n"));
    let impatient = submit(&operator, impatient.mutates("change", "idempotent", &ledger.command()).text()).await;
    let waiting = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    let before = operator.target(BOX).await;
    let stays = async |life: u32| {
        let begun = Instant::now();
        wait::until_true("every timer to have passed", wait::SOON, || begun.elapsed() > SHORT * TIMES).await;
        let target = operator.target(BOX).await;
        let held_by = |target: &holdfast_proto::v1::Target| target.holder.as_ref().map(|holder| holder.id.clone());
        assert_eq!((held_by(&target), target.held_since), (held_by(&before), before.held_since), "life {life}");
        assert!(!target.held_because.is_empty() && !target.who_can_act.is_empty(), "{target:?}");
        let found = operator.deployment(&holder).await;
        assert_eq!((state_of(&found), found.attempts.len()), (DeploymentState::Uncertain, 1), "{found:#?}");
        assert!(found.decisions.is_empty(), "{:?}", found.decisions);
        let waits = operator.deployment(&waiting).await;
        assert_eq!((state_of(&waits), waits.attempts.len()), (DeploymentState::Queued, 0));
    };
    stays(1).await;
    cluster.restart_coordinator().await;
    stays(2).await;
    // What only waited gave up, and got nothing.
    let gave_up = operator.deployment(&impatient).await;
    assert_eq!((state_of(&gave_up), gave_up.attempts.len()), (DeploymentState::Cancelled, 0));
    ledger.check_begun(1);

    operator.attest(&holder, BOX, AttestedRunner::HostGone, AttestedTarget::NotApplied).await.expect("attested");
    ledger.attested(&id_of(&operator.deployment(&holder).await));
    let decided = operator.decide(&holder, BOX, DecisionKind::AcceptFailed).await.expect("allowed on an attestation");
    assert!(is_terminal(state_of(&decided)));
    assert_eq!(state_of(&operator.until_ended(&waiting).await), DeploymentState::Succeeded);
    ledger.check_begun(2);
}
