//! The services under a manager: what it hears, and that work outlives whatever it does to the agent.

use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_proto::v1::connect_request::Message as Says;
use holdfast_proto::v1::connect_response::Message as Hears;
use holdfast_proto::v1::{Contact, DeclineReason, Deployment, DeploymentState, OfferAnswer, OfferAnswerKind};
use holdfast_tests::api::{Operator, state_of};
use holdfast_tests::cluster::{Cluster, LONG, Plan, SHORT};
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::manager::{Manager, Seen};
use holdfast_tests::peer::hello;
use holdfast_tests::strace::{self, Syncs};
use holdfast_tests::wait;
use uuid::Uuid;

use crate::PROGRAM;
use crate::support::{BOX, last_attempt, submit};

/// The coordinator's longest patience in these tests: a machine that is busy feeds a watchdog late.
const WATCHDOG: Duration = Duration::from_secs(20);
const AGENT: &str = "web-01";

/// A cluster whose one agent is kept by a manager.
async fn managed(plan: Plan, watchdog: Duration) -> (Cluster, Operator, Manager) {
    let mut cluster = plan.agents(&[AGENT]).start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    cluster.agent(AGENT).kill();
    let manager = Manager::start(cluster.agent(AGENT).unit(watchdog));
    manager.until_ready(1).await;
    operator.until_contact(AGENT, Contact::Connected).await;
    (cluster, operator, manager)
}

/// A step that prints, waits for its gate, prints again and exits; each run of it leaves a line.
struct Gated {
    runs: PathBuf,
    gate: PathBuf,
    over: PathBuf,
    exit: u8,
}

impl Gated {
    fn new(cluster: &Cluster, name: &str, exit: u8) -> Self {
        let path = |end: &str| cluster.folder().join(&format!("{name}.{end}"));
        Self { runs: path("runs"), gate: path("gate"), over: path("over"), exit }
    }

    fn argv(&self) -> Vec<String> {
        let Self { runs, gate, over, exit } = self;
        let script = format!(
            "echo run >> {}; echo before; while ! [ -e {} ]; do sleep 0.05; done; echo after; : > {}; exit {exit}",
            runs.display(),
            gate.display(),
            over.display()
        );
        ["/bin/sh", "-c", &script].map(str::to_owned).into()
    }

    async fn begun(&self, operator: &Operator, ttl: Duration) -> String {
        let file = DeploymentFile::new(BOX, ttl).mutates("change", "unsafe", &self.argv());
        let label = submit(operator, file.text()).await;
        until_there(&self.runs).await;
        let started = |deployment: &Deployment| last_attempt(deployment).steps[0].started.is_some();
        operator.until(&label, "the start to be reported", started).await;
        label
    }

    fn open(&self) {
        std::fs::write(&self.gate, "").expect("a test's own folder");
    }

    fn ran(&self) -> usize {
        std::fs::read_to_string(&self.runs).unwrap_or_default().lines().count()
    }
}

async fn until_there(path: &Path) {
    wait::until_true(&format!("{} to be there", path.display()), wait::SOON, || path.exists()).await;
}

/// One attempt, one run, the whole output once, the true exit.
async fn check(operator: &Operator, label: &str, step: &Gated) {
    let ended = operator
        .until(label, "the end of its attempt", |deployment| {
            deployment.attempts.last().is_some_and(|last| last.steps[0].ended.is_some())
                && state_of(deployment) != DeploymentState::Active
        })
        .await;
    let expected = if step.exit == 0 { DeploymentState::Succeeded } else { DeploymentState::Held };
    assert_eq!(state_of(&ended), expected, "{ended:#?}");
    assert_eq!((ended.attempts.len(), step.ran()), (1, 1), "it was adopted, not begun again");
    let exit = last_attempt(&ended).steps[0].exit.expect("its exit was seen");
    assert_eq!(exit.code, i32::from(step.exit));
    wait::until("the whole output", wait::SOON, async || {
        let output = operator.logs(label).await;
        if output == "before\nafter\n" { Ok(()) } else { Err(output) }
    })
    .await;
}

/// F24: what the manager does to the agent is nothing to its work: restart, kill -9 in the middle of a change, another program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_outlives_a_restart_a_kill_and_an_upgrade_and_its_true_exit_is_told() {
    let mut cluster = Plan::new(PROGRAM).agents(&[AGENT]).start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    cluster.agent(AGENT).kill();
    // A copy of its own, so that it can be replaced.
    let mut unit = cluster.agent(AGENT).unit(WATCHDOG);
    unit.program = cluster.folder().join("program-of-the-unit");
    std::fs::copy(PROGRAM, &unit.program).expect("a copy of the program");
    let manager = Manager::start(unit.clone());
    let first = manager.until_ready(1).await;
    let restart = Gated::new(&cluster, "restart", 0);
    let label = restart.begun(&operator, LONG).await;
    manager.terminate();
    let second = manager.until_ready(2).await;
    assert!(second.words.iter().any(|word| word == "STOPPING=1"), "{:?}", second.words);
    assert_ne!(first.pid, second.pid);
    restart.open();
    check(&operator, &label, &restart).await;

    let upgrade = Gated::new(&cluster, "upgrade", 0);
    let label = upgrade.begun(&operator, LONG).await;
    manager.upgrade(Path::new(PROGRAM));
    manager.terminate();
    let third = manager.until_ready(3).await;
    let running = std::fs::read_link(format!("/proc/{}/exe", third.pid.expect("it runs"))).expect("its program");
    assert_eq!(running, unit.program, "the new program, not the deleted one");
    upgrade.open();
    check(&operator, &label, &upgrade).await;

    let killed = Gated::new(&cluster, "killed", 3);
    let label = killed.begun(&operator, LONG).await;
    manager.kill();
    manager.until_ready(4).await;
    killed.open();
    check(&operator, &label, &killed).await;
}

/// F24: also of what ended while no agent ran.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ended_while_no_agent_ran_is_told_with_its_output_and_exit() {
    let (cluster, operator, manager) = managed(Plan::new(PROGRAM), WATCHDOG).await;
    let step = Gated::new(&cluster, "alone", 0);
    let label = step.begun(&operator, LONG).await;
    manager.stop();
    manager.until("the agent to be down", |seen| seen.ends == 1 && seen.pid.is_none()).await;
    step.open();
    until_there(&step.over).await;
    manager.start_again();
    check(&operator, &label, &step).await;
}

/// F24: a deployment whose step has the manager start its own agent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_that_restarts_its_own_agent_goes_on_under_the_next_one() {
    let (mut cluster, operator, manager) = managed(Plan::new(PROGRAM), WATCHDOG).await;
    let asked = cluster.agent(AGENT).unit(WATCHDOG).restart;
    let go = cluster.folder().join("go");
    let (asked, wait) = (asked.display(), go.display());
    let script = format!(
        "echo asks; : > {asked}; while [ -e {asked} ]; do sleep 0.05; done; while ! [ -e {wait} ]; do sleep 0.05; done; echo restarted"
    );
    let argv: Vec<String> = ["/bin/sh", "-c", &script].map(str::to_owned).into();
    let then = ["/bin/sh", "-c", "echo next"].map(str::to_owned);
    let file = DeploymentFile::new(BOX, LONG).mutates("upgrade", "unsafe", &argv).mutates("after", "unsafe", &then);
    let label = submit(&operator, file.text()).await;
    manager.until_ready(2).await;
    std::fs::write(&go, "").expect("a test's own folder");
    let ended = operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
    assert_eq!(ended.attempts.len(), 1);
    let seen = manager.seen();
    assert_eq!((seen.starts, seen.missed), (2, 0));
}

/// F20: a loop that works no more is not kept alive by the rest of its process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_work_loop_that_hangs_feeds_no_watchdog_and_the_manager_starts_the_agent_again() {
    if !strace::can_be_had(1) {
        return;
    }
    let plan = Plan::new(PROGRAM).agent_environment("HOLDFAST_OPS_LIVE_WITHIN", "1s");
    let (mut cluster, operator, manager) = managed(plan, Duration::from_secs(3)).await;
    let ops = cluster.agent(AGENT).ops();
    let file = cluster.folder().join("agent.strace");
    let hung = strace::attach(Syncs::Hang, manager.seen().pid.expect("it runs"), &file).await;
    // A new session is something to write down.
    cluster.line(AGENT).reset();
    ops.until_refused("/livez", "work loop: in the middle of a turn for").await;
    assert_eq!(ops.get("/metrics").await.status, 200, "the rest of the process answers");
    let why = |seen: &Seen| seen.status().is_some_and(|status| status.contains("work loop: in the middle of a turn"));
    let seen = manager.seen();
    assert!(seen.missed > 0 || why(&manager.until("the manager to hear why", why).await));
    manager.until("a missed watchdog", |seen| seen.missed == 1).await;
    drop(hung);
    let seen = manager.until("the agent to be ready again", |seen| seen.starts >= 2 && seen.is_ready()).await;
    assert_eq!(seen.missed, 1);
    operator.until_contact(AGENT, Contact::Connected).await;
}

/// F20: a session that lives is no agent that works.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_ignores_offers_gets_none_after_two_and_again_once_it_answers() {
    let cluster = Plan::new(PROGRAM).agents(&[]).start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    let mut deaf = cluster.peer(AGENT, hello(Uuid::from_u128(1))).await.expect("welcome");
    operator.until_contact(AGENT, Contact::Connected).await;
    let file = DeploymentFile::new(BOX, SHORT).mutates("change", "unsafe", &["true".to_owned()]);
    let file = file.text().replace("max_attempts = 3", "max_attempts = 9");
    let label = submit(&operator, &file).await;
    let waits = |deployment: &Deployment| deployment.waiting.contains("has not answered its last 2 offers");
    let waiting = operator.until(&label, "the reason", waits).await;
    assert_eq!(waiting.attempts.len(), 2, "{waiting:#?}");
    let first = deaf.offer().await;
    let second = deaf.offer().await;
    assert_ne!(first.claim, second.claim);
    let heartbeat = deaf.heartbeat(&[]).await;
    assert!(heartbeat.leases.is_empty(), "its session lives");
    let (kind, reason) = (OfferAnswerKind::Declined.into(), DeclineReason::Busy.into());
    deaf.say(Says::OfferAnswer(OfferAnswer { claim: second.claim, kind, reason, detail: String::new() })).await;
    deaf.hear("an offer again", |message| matches!(message, Hears::Offer(_)).then_some(())).await;
}

/// A planned absence is no lost contact within its bound, also for a coordinator that starts again meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planned_absence_within_the_bound_makes_nothing_uncertain() {
    let (mut cluster, operator, manager) = managed(Plan::new(PROGRAM), WATCHDOG).await;
    let step = Gated::new(&cluster, "away", 0);
    let label = step.begun(&operator, SHORT).await;
    manager.stop();
    manager.until("the agent to be down", |seen| seen.pid.is_none()).await;
    let away = |deployment: &Deployment| {
        let because = &deployment.summary.as_ref().expect("told").because;
        because.contains("agent away by plan since") && because.contains("back by")
    };
    operator.until(&label, "the absence to be told", away).await;
    let silent = |deployment: &Deployment| {
        let silent = last_attempt(deployment).silent_for.and_then(|span| Duration::try_from(span).ok());
        silent > Some(SHORT * 3)
    };
    let during = operator.until(&label, "the usual lease to be over", silent).await;
    assert_eq!(state_of(&during), DeploymentState::Active, "{during:#?}");
    cluster.restart_coordinator().await;
    let during = operator.until(&label, "the absence to be told again", away).await;
    assert_eq!(state_of(&during), DeploymentState::Active);
    assert!(!last_attempt(&during).away.as_ref().expect("it is away").is_back);
    manager.start_again();
    let back = |deployment: &Deployment| last_attempt(deployment).away.as_ref().is_some_and(|away| away.is_back);
    operator.until(&label, "the agent to be back", back).await;
    step.open();
    check(&operator, &label, &step).await;
    let kinds: Vec<String> = operator.events(&label).await.into_iter().map(|event| event.kind).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "agent_away").count(), 1, "{kinds:?}");
}

/// When its time is over the lease lapses as ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planned_absence_beyond_the_bound_is_uncertain() {
    let plan = Plan::new(PROGRAM).coordinator_environment("HOLDFAST_LEASE_DETACH", "1s");
    let (cluster, operator, manager) = managed(plan, WATCHDOG).await;
    let step = Gated::new(&cluster, "away", 0);
    let label = step.begun(&operator, SHORT).await;
    manager.stop();
    let uncertain = operator.until_state(&label, DeploymentState::Uncertain).await;
    let kinds: Vec<String> = operator.events(&label).await.into_iter().map(|event| event.kind).collect();
    assert!(kinds.iter().any(|kind| kind == "agent_away"), "{kinds:?}");
    let events = operator.events(&label).await;
    assert!(events.iter().any(|event| event.sentence.contains("left by plan")), "{events:#?}");
    assert_eq!(uncertain.attempts.len(), 1, "nobody tries again by a timer");
    assert_eq!(step.ran(), 1);
}

/// A stop that finishes takes nothing new, says what it waits for, and goes when that is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finish_waits_for_its_work_says_for_what_and_a_second_signal_hastens_it() {
    let plan = Plan::new(PROGRAM).agent_environment("HOLDFAST_STOP_MODE", "finish");
    let (mut cluster, operator, manager) = managed(plan, WATCHDOG).await;
    let ops = cluster.agent(AGENT).ops();
    let step = Gated::new(&cluster, "finish", 0);
    let label = step.begun(&operator, LONG).await;
    manager.stop();
    let waits =
        |seen: &Seen| seen.status().is_some_and(|status| status.contains("waits for box@test: step change runs"));
    let seen = manager.until("what it waits for", waits).await;
    assert!(seen.words.iter().any(|word| word == "STOPPING=1"));
    assert!(seen.words.iter().any(|word| word.starts_with("EXTEND_TIMEOUT_USEC=")), "{:?}", seen.words);
    assert_eq!(seen.ends, 0);
    ops.until_refused("/readyz", "it is to stop").await;
    step.open();
    check(&operator, &label, &step).await;
    manager.until("the agent to be down", |seen| seen.ends == 1).await;

    manager.start_again();
    manager.until_ready(2).await;
    operator.until_contact(AGENT, Contact::Connected).await;
    let step = Gated::new(&cluster, "hastened", 0);
    let label = step.begun(&operator, LONG).await;
    manager.stop();
    manager.until("what it waits for", waits).await;
    manager.terminate();
    manager.until("the agent to be down", |seen| seen.ends == 2).await;
    assert!(!step.over.exists(), "its work goes on");
    manager.start_again();
    step.open();
    check(&operator, &label, &step).await;
}

/// READY means that the state folder is this agent's and its journal is open; contact is not waited for, and a second agent on
/// the folder never says it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ready_is_said_once_the_state_folder_is_this_agents_and_not_before() {
    let mut cluster = Plan::new(PROGRAM).agents(&[AGENT]).prepare().await;
    let unit = cluster.agent(AGENT).unit(WATCHDOG);
    let manager = Manager::start(unit.clone());
    let seen = manager.until_ready(1).await;
    let before = |status: &Seen| status.status().is_some_and(|status| status.starts_with("no contact"));
    manager.until("its status", before).await;
    assert_eq!(seen.last_start()[0], "READY=1", "nothing comes before it");
    let (socket, restart) = (cluster.folder().join("second.notify"), cluster.folder().join("second.restart"));
    let second = Manager::start(holdfast_tests::manager::Unit { socket, restart, ..unit });
    let seen = second.until("the second one to give up twice", |seen| seen.ends >= 2).await;
    assert!(!seen.words.iter().any(|word| word != "START"), "{:?}", seen.words);
    drop(second);
    assert_eq!(manager.seen().starts, 1, "the first one is not disturbed");
}

/// The coordinator is ready when it serves, and says so before anybody else can.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_coordinator_says_when_it_serves_how_it_stands_and_that_it_stops() {
    let mut cluster = Plan::new(PROGRAM).agents(&[AGENT]).prepare().await;
    let path = cluster.folder().join("coordinator.notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&path).expect("a socket in the test's folder");
    socket.set_nonblocking(true).expect("a socket");
    let text = path.to_str().expect("plain text").to_owned();
    cluster.coordinator().settings().environment.insert("NOTIFY_SOCKET".to_owned(), text);
    let mut words: Vec<String> = Vec::new();
    let mut heard = move || {
        let mut bytes = [0; 4096];
        while let Ok(length) = socket.recv(&mut bytes) {
            words.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
        }
        words.clone()
    };
    cluster.start_coordinator().await;
    cluster.agent(AGENT).start();
    cluster.operator().until_contact(AGENT, Contact::Connected).await;
    wait::until_true("its status", wait::SOON, || heard().iter().any(|word| word.contains("1 of 1 agents in contact")))
        .await;
    assert_eq!(heard()[0], "READY=1");
    assert!(heard().iter().any(|word| word == "WATCHDOG=1"));
    cluster.coordinator().terminate().await;
    assert!(heard().iter().any(|word| word == "STOPPING=1"));
}

/// A drained agent gets nothing new, also from a coordinator that starts again; what it holds goes on; who waits hears why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drained_agent_gets_nothing_new_until_it_is_resumed() {
    let mut cluster = Plan::new(PROGRAM).agents(&[AGENT]).start().await;
    let (operator, cli) = (cluster.operator(), cluster.cli());
    operator.apply_target(&files::command_target(BOX, false)).await;
    let held = Gated::new(&cluster, "held", 0);
    let label = held.begun(&operator, LONG).await;
    let drained = cli.run(&["agent", "drain", AGENT, "--reason", "new disk"]).await;
    assert!(drained.expect(0).stdout.contains(": new disk") && drained.stderr.contains(&label), "{drained:?}");
    let ops = cluster.agent(AGENT).ops();
    wait::until("the agent to hear of it", wait::SOON, async || {
        let told = ops.get("/readyz?verbose").await.body;
        if told.contains("[note] drained: drained by") && told.contains(": new disk") { Ok(()) } else { Err(told) }
    })
    .await;
    let config: holdfast_agent::config::Config =
        holdfast_net::config::load(Some(cluster.agent(AGENT).config()), []).expect("its own configuration");
    let status = tokio::task::spawn_blocking(move || holdfast_agent::status::lines(&config)).await.expect("no panic");
    let status = status.expect("it runs").join("\n");
    assert!(status.starts_with("agent        runs, ready") && status.contains("step change runs"), "{status}");
    held.open();
    check(&operator, &label, &held).await;

    cluster.restart_coordinator().await;
    operator.until_contact(AGENT, Contact::Connected).await;
    let waiting = submit(&operator, &crate::support::change(LONG, "unsafe", &["true".to_owned()])).await;
    let why = |deployment: &Deployment| {
        deployment.waiting.contains("drained since") && deployment.waiting.contains("new disk")
    };
    operator.until(&waiting, "the reason", why).await;
    let listed = cli.run(&["agents"]).await;
    assert!(listed.expect(0).stdout.contains("drained since"), "{listed:?}");
    cli.run(&["agent", "resume", AGENT]).await.expect(0);
    assert_eq!(state_of(&operator.until_ended(&waiting).await), DeploymentState::Succeeded);
    let audit = cli.run(&["audit", "list"]).await;
    let told = &audit.expect(0).stdout;
    assert!(told.contains("agent_drained") && told.contains("agent_resumed"), "{told}");
    let unknown = cli.run(&["agent", "drain", "web-99", "--reason", "x"]).await;
    assert!(unknown.stderr.contains("HF-2004"), "{unknown:?}");
    cli.run(&["agent", "drain", AGENT]).await.expect(2);
}
