//! A deployment whose handling kills each agent that takes it.

use std::time::Duration;

use holdfast_agent::crash::CrashPoint;
use holdfast_proto::v1::{AttemptState, DecisionKind, Deployment, DeploymentState};
use holdfast_tests::api::{Operator, is_terminal, state_of};
use holdfast_tests::cluster::{Cluster, Plan};
use holdfast_tests::{files, wait};

use crate::PROGRAM;
use crate::crash_case::{AGENTS, is_settled};
use crate::support::{BOX, change, submit};

/// Tries that a deployment of these tests has.
const TRIES: usize = 3;
const TTL: Duration = Duration::from_millis(1500);
const LONG_ENOUGH: Duration = Duration::from_secs(60);

/// Dies at that point in every life, as often as it is started again, until the deployment is set aside.
async fn set_aside(point: CrashPoint) -> (Cluster, Operator, [String; 2], Deployment) {
    let plan = Plan::new(PROGRAM).agents(&AGENTS).agent_environment("HOLDFAST_CRASH", point.name());
    let mut cluster = plan.prepare().await;
    cluster.start_coordinator().await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    let ledger = cluster.ledger("box");
    let label = submit(&operator, &change(TTL, "unsafe", &ledger.command())).await;
    let next = submit(&operator, &change(TTL, "unsafe", &ledger.command())).await;
    AGENTS.iter().for_each(|name| cluster.agent(name).start());
    let mut deaths = 0;
    let found = wait::until("it to be set aside", LONG_ENOUGH, async || {
        for name in AGENTS {
            let died = cluster.agent(name).status().is_some();
            if died {
                deaths += 1;
                cluster.agent(name).start();
            }
        }
        let found = operator.try_deployment(&label).await.map_err(|status| status.to_string())?;
        if is_settled(&found) { Ok(found) } else { Err(format!("{} after {deaths} deaths", found.attempts.len())) }
    })
    .await;
    assert!(deaths >= TRIES, "{deaths} deaths");
    assert_eq!(found.attempts.len(), TRIES, "{found:#?}");
    ledger.check_begun(0);
    (cluster, operator, [label, next], found)
}

/// From now on agents live.
async fn then_the_next_succeeds(cluster: &mut Cluster, operator: &Operator, next: &str) {
    for name in AGENTS {
        cluster.agent(name).settings().environment.remove("HOLDFAST_CRASH");
        cluster.agent(name).start();
    }
    let ended = operator.until_ended(next).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
    cluster.ledger("box").check_begun(1);
}

/// F23: where nothing was ever permitted it has failed, and the next in the queue has its turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_that_kills_each_agent_that_takes_it_is_set_aside_with_the_reason() {
    let (mut cluster, operator, [_, next], found) = set_aside(CrashPoint::BeforeOfferAnswer).await;
    assert_eq!((state_of(&found), found.never_mutated), (DeploymentState::Failed, true), "{found:#?}");
    let because = &found.summary.as_ref().expect("a summary").because;
    assert!(because.contains("all 3 tries are used up"), "{because}");
    assert!(found.attempts.iter().all(|attempt| attempt.state() == AttemptState::Lapsed), "{found:#?}");
    then_the_next_succeeds(&mut cluster, &operator, &next).await;
}

/// F23: where a step was permitted it is held with the reason, and a person decides on what the journals prove.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_that_kills_each_agent_under_its_permit_is_held_with_the_reason() {
    let (mut cluster, operator, [label, next], found) = set_aside(CrashPoint::BeforeShimSpawn).await;
    assert_eq!((state_of(&found), found.holds_target), (DeploymentState::Held, true), "{found:#?}");
    let because = &found.summary.as_ref().expect("a summary").because;
    assert!(because.contains("all 3 tries are used up"), "{because}");
    assert!(!is_terminal(state_of(&operator.deployment(&next).await)), "the target is held");
    assert!(!operator.target(BOX).await.who_can_act.is_empty());
    operator.decide(&label, BOX, DecisionKind::AcceptFailed).await.expect("every journal says that it never started");
    then_the_next_succeeds(&mut cluster, &operator, &next).await;
}
