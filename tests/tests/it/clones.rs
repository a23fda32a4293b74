//! An agent's state folder, or its key alone, is somewhere else too: the copy is refused, told, and proves nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_proto::v1::connect_request::Message as Says;
use holdfast_proto::v1::{Agent, Contact, Hello, RunnerState, WelcomeKept};
use holdfast_tests::api::Operator;
use holdfast_tests::cluster::Cluster;
use holdfast_tests::ops::Ops;
use holdfast_tests::peer::{Peer, hello};
use holdfast_tests::process::{Launch, Process};
use holdfast_tests::wait;
use uuid::Uuid;

use crate::PROGRAM;
use crate::support::{begun, change, submit, uncertain, with_box};

/// The name in a certificate that no real agent of the cluster has.
const ALONE: &str = "web-09";

/// The same agent once more: its configuration, its key and a copy of its state folder.
struct Copy {
    process: Process,
    ops: Ops,
    log: PathBuf,
}

impl Copy {
    /// The folder as it is now. Its agent must not run.
    fn take(cluster: &Cluster, name: &str) -> PathBuf {
        let copy = cluster.folder().join(&format!("{name}-copy"));
        let copied = std::process::Command::new("cp").arg("-a").arg(cluster.folder().join(name)).arg(&copy).status();
        assert!(copied.expect("cp can be started").success());
        copy
    }

    fn start(cluster: &Cluster, name: &str, state: &Path) -> Self {
        let folder = cluster.folder();
        let text = std::fs::read_to_string(folder.join(&format!("{name}.toml"))).expect("the agent's configuration");
        let own = |path: PathBuf| format!("{:?}", path.to_str().expect("plain text"));
        let ops = folder.join(&format!("{name}-copy.ops"));
        let text = text
            .replace(&own(folder.join(name)), &own(state.to_owned()))
            .replace(&own(folder.join(&format!("{name}.ops"))), &own(ops.clone()));
        let config = folder.write(&format!("{name}-copy.toml"), &text);
        let log = folder.join(&format!("{name}-copy.log"));
        let config = config.to_str().expect("plain text");
        let process = Process::start(&Launch {
            name: format!("{name}-copy"),
            wrapper: Vec::new(),
            program: PROGRAM.into(),
            arguments: ["agent", "run", "--config", config].map(str::to_owned).into(),
            environment: BTreeMap::new(),
            folder: folder.path().to_owned(),
            log: log.clone(),
        });
        Self { process, ops: Ops::new(&ops), log }
    }

    /// Waits until it tells that it is refused.
    async fn until_refused(&self) {
        self.ops.until_refused("/readyz", "refused: copy (HF-4018)").await;
    }
}

async fn agent(operator: &Operator, name: &str) -> Agent {
    let agents = operator.try_agents().await.expect("listed");
    agents.into_iter().find(|agent| agent.name == name).expect("it was heard")
}

/// Returns once the agent was heard over that span, by the coordinator's clock.
async fn heard_for(operator: &Operator, name: &str, span: Duration) {
    let heard = async || agent(operator, name).await.last_heard_at.expect("it was heard").seconds;
    let first = heard().await;
    let span = i64::try_from(span.as_secs()).expect("short");
    wait::until("the agent to be heard all the time", wait::SOON, async || {
        let last = heard().await;
        if last >= first + span { Ok(()) } else { Err(format!("heard for {} s", last - first)) }
    })
    .await;
}

fn count(log: &Path, text: &str) -> usize {
    String::from_utf8_lossy(&std::fs::read(log).expect("a log")).matches(text).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copied_state_folder_is_refused_and_told_without_flapping_and_its_word_proves_nothing() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, name) = uncertain(&cluster, &operator, &ledger, Duration::from_secs(4)).await;
    cluster.agent(&name).kill();
    let state = Copy::take(&cluster, &name);
    cluster.line(&name).heal().await;
    cluster.agent(&name).start();
    let running = |evidence: &holdfast_proto::v1::Evidence| evidence.body_json.contains("still_running");
    operator.until_evidence(&label, "the journal to say that it still runs", running).await;
    assert_eq!(operator.checklist(&label).await.runner(), RunnerState::StillRunning, "a word as any");

    let mut copy = Copy::start(&cluster, &name, &state);
    copy.until_refused().await;
    assert_eq!(copy.process.status(), None, "it goes on, and tries seldom");
    let locked = agent(&operator, &name).await;
    assert_eq!(locked.contact(), Contact::Connected, "the agent itself is not disturbed");
    let holdfast_proto::v1::IdentityLock { why, since } = locked.lock.expect("locked");
    assert!(why.contains("token") || why.contains("behind"), "{why}");
    operator.until_evidence(&label, "the lock", |evidence| evidence.kind == "identity_locked").await;
    let list = operator.checklist(&label).await;
    assert_eq!(list.runner(), RunnerState::Unknown, "{list:#?}");
    assert!(format!("{list:?}").contains("proves nothing: the identity of"), "{list:#?}");

    // Nobody takes turns, for as long as the copy runs: one refusal, and the session of the agent itself stands.
    let log = cluster.coordinator().log();
    let sessions = format!("an agent is in contact agent={name} ");
    let began = count(&log, &sessions);
    assert!(began > 0, "the log names sessions");
    heard_for(&operator, &name, Duration::from_secs(5)).await;
    assert_eq!(copy.process.status(), None, "the copy runs all the time");
    let again = agent(&operator, &name).await;
    assert_eq!((count(&log, &sessions), again.contact()), (began, Contact::Connected));
    assert_eq!(again.lock.and_then(|lock| lock.since), since, "locked once");
    let locks = operator.evidence(&label).await.into_iter().filter(|evidence| evidence.kind == "identity_locked");
    assert_eq!(locks.count(), 1);
    assert_eq!((count(&log, "a copy of an agent was refused"), count(&copy.log, "HF-4018") > 0), (1, true));
    let audit = cluster.cli().run(&["audit", "list", "--json"]).await;
    assert!(audit.stdout.contains("agent_locked"), "{}", audit.stdout);
    let shown = cluster.cli().run(&["agent", "show", &name]).await;
    assert!(shown.stdout.contains("locked") && shown.stdout.contains("holdfast agent unlock"), "{}", shown.stdout);

    // A person says which one is the agent; what its journal says then counts again.
    copy.process.kill();
    let line = ["agent", "unlock", &name, "--reason", "the copy is gone"];
    let refused = cluster.cli().run(&line).await;
    assert_eq!(refused.code, 2, "the name is not typed: {}", refused.stderr);
    let unlocked = cluster.cli().run(&[&line[..], &["--confirm", &name]].concat()).await;
    assert_eq!((unlocked.code, agent(&operator, &name).await.lock), (0, None), "{}", unlocked.stderr);
    cluster.agent(&name).kill();
    cluster.agent(&name).start();
    let again = async {
        while operator.checklist(&label).await.runner() != RunnerState::StillRunning {
            tokio::task::yield_now().await;
        }
    };
    wait::within("the journal's word to count again", wait::SOON, again).await;
    let again = cluster.cli().run(&[&line[..], &["--confirm", &name]].concat()).await;
    assert_eq!(again.code, 16, "nobody locked it: {}", again.stderr);
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    ledger.check_begun(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_journal_on_another_machine_is_refused_while_the_agent_is_in_contact() {
    let (mut cluster, operator, _ledger) = with_box().await;
    let name = "web-01";
    let machines = ["one", "two"].map(|machine| cluster.folder().write(&format!("{machine}.machine"), machine));
    cluster.agent(name).kill();
    operator.until_contact(name, Contact::Silent).await;
    let config = cluster.agent(name).config().to_owned();
    let text = std::fs::read_to_string(&config).expect("the agent's configuration");
    std::fs::write(&config, format!("{text}\n[machine]\nid_file = {:?}\n", machines[0])).expect("written");
    cluster.agent(name).start();
    operator.until_contact(name, Contact::Connected).await;
    let ready = cluster.agent(name).ops();
    ready.until_status("/readyz", 200).await;
    heard_for(&operator, name, Duration::from_secs(1)).await;

    // It has nothing to do, so nothing of its folder changes: the copy has the latest token.
    let state = Copy::take(&cluster, name);
    let text = std::fs::read_to_string(&config).expect("the agent's configuration");
    std::fs::write(&config, text.replace("one.machine", "two.machine")).expect("written");
    let mut copy = Copy::start(&cluster, name, &state);
    copy.until_refused().await;
    assert_eq!(copy.process.status(), None);
    let locked = agent(&operator, name).await;
    let why = locked.lock.clone().expect("locked").why;
    assert!(why.contains("another machine"), "{why}");
    assert_eq!(locked.contact(), Contact::Connected, "the agent itself is not disturbed");
    copy.process.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_living_copy_on_the_same_machine_does_not_take_over_and_its_word_ends_no_work() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, name) = begun(&operator, &ledger, Duration::from_secs(30), "unsafe").await;
    heard_for(&operator, &name, Duration::from_secs(1)).await;
    // The step waits at its gate, so nothing of the folder changes: the copy has the latest token, and no lock of the shim.
    let state = Copy::take(&cluster, &name);
    let log = cluster.coordinator().log();
    let sessions = format!("an agent is in contact agent={name} ");
    let began = count(&log, &sessions);
    let mut copy = Copy::start(&cluster, &name, &state);
    copy.until_refused().await;
    assert_eq!(copy.process.status(), None);
    let locked = agent(&operator, &name).await;
    let why = locked.lock.clone().expect("locked").why;
    assert!(why.contains("in another process"), "{why}");
    assert_eq!(locked.contact(), Contact::Connected, "the agent itself is not disturbed");
    heard_for(&operator, &name, Duration::from_secs(2)).await;
    assert_eq!((count(&log, &sessions), count(&log, "takes over")), (began, 0), "its session stands");
    copy.process.kill();
    ledger.open_gate("go");
    let ended = operator.until_ended(&label).await;
    assert_eq!(holdfast_tests::api::state_of(&ended), holdfast_proto::v1::DeploymentState::Succeeded, "{ended:#?}");
    ledger.check_begun(1);

    // Locked or not, a restart of the agent itself is let in: its process before is gone.
    cluster.agent(&name).kill();
    cluster.agent(&name).start();
    let ready = cluster.agent(&name).ops();
    ready.until_status("/readyz", 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copied_key_alone_is_refused_and_locks_the_agent_for_new_work_while_running_work_ends() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, name) = begun(&operator, &ledger, Duration::from_secs(30), "unsafe").await;
    let refused = cluster.peer(&name, hello(Uuid::new_v4())).await.expect_err("another journal");
    assert!(refused.message().contains("HF-4018"), "{refused:?}");
    assert!(agent(&operator, &name).await.lock.is_some());
    let other = crate::support::other(&name);
    cluster.agent(other).kill();
    operator.until_contact(other, Contact::Silent).await;
    ledger.open_gate("go");
    let ended = operator.until_ended(&label).await;
    assert_eq!(holdfast_tests::api::state_of(&ended), holdfast_proto::v1::DeploymentState::Succeeded, "{ended:#?}");
    let next = submit(&operator, &change(Duration::from_secs(30), "unsafe", &ledger.gated("next"))).await;
    let waits = operator
        .until(&next, "it to wait for an agent", |found| format!("{found:?}").contains("identity locked"))
        .await;
    assert!(waits.attempts.is_empty(), "{waits:#?}");
    let line = ["agent", "unlock", &name, "--reason", "the key is back", "--confirm", &name];
    assert_eq!(cluster.cli().run(&line).await.code, 0);
    ledger.open_gate("next");
    operator.until_ended(&next).await;
    ledger.check_begun(2);
}

/// Greets, and says that the token is kept.
async fn greet(cluster: &Cluster, hello: Hello) -> Peer {
    let peer = cluster.peer(ALONE, hello).await.expect("welcome");
    peer.say(Says::WelcomeKept(WelcomeKept {})).await;
    peer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recorded_hello_is_refused_when_it_is_said_again_later() {
    let (cluster, operator, _ledger) = with_box().await;
    let first = hello(Uuid::new_v4());
    let one = greet(&cluster, first.clone()).await;
    let second = Hello { session_token: one.welcome.session_token.clone(), ..first.clone() };
    let two = greet(&cluster, second.clone()).await;
    assert_ne!(one.welcome.session_token, two.welcome.session_token);
    let third = Hello { session_token: two.welcome.session_token.clone(), ..first.clone() };
    let mut three = greet(&cluster, third).await;
    for recorded in [first, second] {
        let refused = cluster.peer(ALONE, recorded).await.expect_err("said before");
        assert!(refused.message().contains("HF-4018"), "{refused:?}");
    }
    assert!(three.heartbeat(&[]).await.leases.is_empty(), "the agent's own session goes on");
    assert!(agent(&operator, ALONE).await.lock.is_some());
    let fourth = Hello { session_token: three.welcome.session_token.clone(), ..hello(Uuid::new_v4()) };
    assert!(cluster.peer(ALONE, fourth).await.is_err(), "and a token of another journal opens nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_journal_is_let_in_once_by_a_person_and_never_by_itself() {
    let (cluster, _operator, _ledger) = with_box().await;
    let lost = hello(Uuid::new_v4());
    let known = greet(&cluster, lost.clone()).await;
    // Its next Hello shows that the token is kept.
    let _known = greet(&cluster, Hello { session_token: known.welcome.session_token.clone(), ..lost }).await;
    let (fresh, other) = (hello(Uuid::new_v4()), hello(Uuid::new_v4()));
    assert!(cluster.peer(ALONE, fresh.clone()).await.is_err(), "by itself it is a copy");
    let line = ["agent", "unlock", ALONE, "--reason", "its disk broke", "--admit-new-journal", "--confirm", ALONE];
    assert_eq!(cluster.cli().run(&line).await.code, 0);
    let admitted = greet(&cluster, fresh.clone()).await;
    let shown = Hello { session_token: admitted.welcome.session_token.clone(), journal_sequence: 1, ..fresh };
    let _its_token_is_kept = greet(&cluster, shown).await;
    assert!(cluster.peer(ALONE, other).await.is_err(), "once");
}
