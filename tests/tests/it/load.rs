//! Hosts and coordinators under load: whoever takes much is slowed down alone, and heartbeats keep their pace.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_proto::v1::connect_request::Message as Says;
use holdfast_proto::v1::connect_response::Message as Hears;
use holdfast_proto::v1::{
    AttemptState, ConnectRequest, DeploymentState, Heartbeat, ReadLogsRequest, WatchEventsRequest,
};
use holdfast_tests::api::{id_of, state_of};
use holdfast_tests::cluster::{LONG, Plan};
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::ops::{Metrics, Ops};
use holdfast_tests::peer::{Peer, hello};
use holdfast_tests::{machine, wait};
use uuid::Uuid;

use crate::PROGRAM;
use crate::support::{BOX, change, last_attempt, submit, with_box};

const MIB: u64 = 1024 * 1024;
/// A lease as in production, against its heartbeats: it outlives many of them, and no outage.
const LEASE: Duration = Duration::from_secs(6);
/// How much a coordinator may grow beside what it does anyway.
const GROWTH: u64 = 64 * MIB;

const LATENESS: &str = "holdfast_agent_heartbeat_lateness_seconds";

/// Heartbeats until now, and those of them that came more than a second late.
fn beats(metrics: &Metrics) -> (f64, f64) {
    let all = metrics.of(&format!("{LATENESS}_count"));
    let in_time = metrics.samples().find(|(name, _)| {
        let le = name.strip_prefix(LATENESS).and_then(|rest| rest.strip_prefix("_bucket{le=\""));
        le.is_some_and(|le| matches!(le, "1\"}" | "1.0\"}"))
    });
    (all, all - in_time.expect("a bucket of a second").1)
}

/// Ninety-nine of a hundred heartbeats since `before` came within a second of their time.
async fn kept_their_pace(ops: &Ops, before: (f64, f64)) {
    let metrics = ops.metrics().await;
    let (all, late) = beats(&metrics);
    let (all, late) = (all - before.0, late - before.1);
    assert!(all >= 20.0, "{all} heartbeats");
    assert!(late <= (all / 100.0).ceil(), "{late} of {all} heartbeats were late\n{}", metrics.text);
    for phase in ["unpermitted", "between_permits", "permit_open"] {
        assert_eq!(metrics.of(&format!("holdfast_lease_expirations_total{{phase=\"{phase}\"}}")), 0.0, "{phase}");
    }
}

/// Processes that want a processor all the time; they end with it.
struct Spinners(Vec<Child>);

impl Spinners {
    fn start(count: usize) -> Self {
        let spin = || Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn();
        Self((0..count).map(|_| spin().expect("a shell")).collect())
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _gone = child.kill();
            let _gone = child.wait();
        }
    }
}

/// Takes that share of the memory that is free, in percent, up to a bound that leaves a test machine to its other users.
/// `HOLDFAST_TEST_MEMORY_PERCENT=90` without a bound is the full size.
fn hog() -> Vec<u8> {
    const BOUND: u64 = 1024 * MIB;
    let text = std::fs::read_to_string("/proc/meminfo").expect("Linux");
    let free =
        text.lines().find_map(|line| line.strip_prefix("MemAvailable:")?.split_whitespace().next()?.parse().ok());
    let free = free.unwrap_or(0_u64) * 1024;
    let wanted = std::env::var("HOLDFAST_TEST_MEMORY_PERCENT").ok().and_then(|text| text.parse::<u64>().ok());
    let bytes = wanted.map_or((free / 100 * 60).min(BOUND), |percent| free / 100 * percent);
    vec![1; usize::try_from(bytes).expect("memory fits")]
}

/// F30
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_host_at_four_times_its_load_heartbeats_keep_their_pace_and_silent_work_keeps_its_lease() {
    const SILENT: Duration = Duration::from_secs(15);
    let (mut cluster, operator, ledger) = with_box().await;
    let ops = cluster.coordinator().ops();
    let label = submit(&operator, &change(LEASE, "unsafe", &ledger.gated("go"))).await;
    ledger.until_begun(1).await;
    let before = beats(&ops.metrics().await);

    let spinners = Spinners::start(4 * machine::processors());
    let memory = hog();
    // It prints nothing for longer than its lease, while the host has no processor to spare.
    assert!(SILENT > LEASE * 2);
    tokio::time::sleep(SILENT).await;
    let during = operator.deployment(&label).await;
    assert_eq!(state_of(&during), DeploymentState::Active, "silence of the work means nothing: {during:#?}");
    kept_their_pace(&ops, before).await;
    drop((spinners, std::hint::black_box(memory)));

    ledger.open_gate("go");
    let done = operator.until_ended(&label).await;
    assert_eq!((state_of(&done), done.attempts.len()), (DeploymentState::Succeeded, 1), "{done:#?}");
    assert_eq!(last_attempt(&done).state(), AttemptState::Succeeded, "the lease never lapsed");
    ledger.check_begun(1);
}

/// F34. The readers have the smallest windows that HTTP/2 has, all on one connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_mebibytes_without_a_line_feed_and_stuck_readers_delay_no_heartbeat_and_no_result() {
    const STREAMS: usize = 64;
    const RESULT: Duration = Duration::from_secs(5);
    let mut cluster = Plan::new(PROGRAM).start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    let ops = cluster.coordinator().ops();
    let (gate, ended) = (cluster.folder().join("gate"), cluster.folder().join("ended"));
    let script = format!(
        "while [ ! -e {gate} ]; do sleep 0.05; done; /usr/bin/head -c {bytes} /dev/zero; sleep 4; : > {ended}",
        gate = gate.display(),
        bytes = 100 * MIB,
        ended = ended.display(),
    );
    let words = ["/bin/sh", "-c", &script].map(str::to_owned);
    let label = submit(&operator, &change(LEASE, "unsafe", &words)).await;
    let begun = |deployment: &holdfast_proto::v1::Deployment| {
        deployment.attempts.last().is_some_and(|attempt| attempt.steps[0].started.is_some())
    };
    operator.until(&label, "the step to run", begun).await;
    let (reader, mut stuck) = (cluster.narrow_operator(), Vec::new());
    for _ in 0..STREAMS {
        let request = ReadLogsRequest { deployment: label.clone(), follow: true, ..ReadLogsRequest::default() };
        let mut client = reader.client.clone();
        let stream = wait::within("a stream", wait::SOON, client.read_logs(request)).await.expect("logs are there");
        stuck.push(stream.into_inner());
    }
    let before = beats(&ops.metrics().await);
    std::fs::write(&gate, "").expect("a test's folder");
    wait::until_true("the output to be written", wait::SOON * 2, || ended.exists()).await;
    let at = Instant::now();
    let done = operator.until_ended(&label).await;
    assert!(at.elapsed() < RESULT, "the result came after {:?}", at.elapsed());
    assert_eq!((state_of(&done), done.attempts.len()), (DeploymentState::Succeeded, 1), "{done:#?}");
    kept_their_pace(&ops, before).await;
    drop(stuck);
}

/// F34, T35. What a stuck reader asked of the store is done without it: it keeps no other from reading, and no agent from its lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stuck_readers_of_large_events_keep_nobody_from_reading() {
    const STREAMS: usize = 100;
    let cluster = Plan::new(PROGRAM).agents(&[]).start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    let words = ["true".to_owned(), "y".repeat(9_000)];
    let file = (0..99).fold(DeploymentFile::new(BOX, LEASE), |file, step| file.looks(&format!("a{step}"), &words));
    let deployment = id_of(&operator.submit(file.text()).await);
    // All at once: so they wait for the store, and for the look at their token, when the first event fills their window.
    let (reader, mut opening) = (cluster.narrow_operator(), tokio::task::JoinSet::new());
    for _ in 0..STREAMS {
        let request = WatchEventsRequest { deployment: deployment.clone(), from_sequence: 0, follow: true };
        let mut client = reader.client.clone();
        opening.spawn(async move { client.watch_events(request).await });
    }
    let stuck = wait::within("the streams", wait::SOON * 2, opening.join_all()).await;
    assert!(stuck.iter().all(Result::is_ok), "events are there");
    // Longer than a stream goes between two looks at its token. Who is kept from reading is so as long as they are stuck.
    let until = Instant::now() + Duration::from_secs(6);
    while Instant::now() < until {
        let seen = wait::within("an answer", wait::SOON, operator.deployment(&deployment)).await;
        assert_eq!(state_of(&seen), DeploymentState::Queued);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(stuck);
}

/// Round trips of heartbeats on a session, the slowest of a hundred.
async fn slowest_of_a_hundred(peer: &mut Peer) -> Duration {
    let mut all = Vec::new();
    for _ in 0..100 {
        let begun = Instant::now();
        peer.heartbeat(&[]).await;
        all.push(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    all.sort_unstable();
    all[98]
}

/// T16. All of it is answered, at its pace; nobody else waits for it, and the coordinator keeps none of it in memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_floods_is_slowed_down_alone_and_loses_nothing() {
    const FLOOD: u64 = 15_000;
    const PER_SECOND: u64 = 3_000;
    const BURST: u64 = 1_500;
    let mut cluster = Plan::new(PROGRAM)
        .agents(&[])
        .coordinator_environment("HOLDFAST_AGENTS_MESSAGES_PER_SECOND", &PER_SECOND.to_string())
        .coordinator_environment("HOLDFAST_AGENTS_BURST", &BURST.to_string())
        .start()
        .await;
    let (ops, pid) = (cluster.coordinator().ops(), cluster.coordinator().pid());
    let flooder = cluster.peer("web-08", hello(Uuid::new_v4())).await.expect("a session");
    let mut quiet = cluster.peer("web-09", hello(Uuid::new_v4())).await.expect("a session");
    let alone = slowest_of_a_hundred(&mut quiet).await;
    let memory = machine::memory(pid).resident;

    let begun = Instant::now();
    let (says, mut hears) = flooder.into_ends();
    let saying = tokio::spawn(async move {
        for number in 1..=FLOOD {
            let beat = Heartbeat { number, claims: Vec::new(), no_room: None };
            says.send(ConnectRequest { message: Some(Says::Heartbeat(beat)) }).await.expect("it is not cut off");
        }
        says
    });
    let hearing = tokio::spawn(async move {
        for expected in 1..=FLOOD {
            match hears.message().await.expect("the session stands").and_then(|answer| answer.message) {
                Some(Hears::HeartbeatAnswer(answer)) => assert_eq!(answer.number, expected, "none is lost"),
                other => panic!("{other:?}"),
            }
        }
        hears
    });
    let beside = slowest_of_a_hundred(&mut quiet).await;
    assert!(!hearing.is_finished(), "the other was measured beside the flood");
    let bound = (alone * 3).max(Duration::from_millis(250));
    assert!(beside < bound, "beside the flood {beside:?}, alone {alone:?}");
    let (_says, _hears) = wait::within("all answers", wait::SOON * 2, async {
        (saying.await.expect("no panic"), hearing.await.expect("no panic"))
    })
    .await;

    let least = Duration::from_secs((FLOOD - BURST) / PER_SECOND).mul_f64(0.9);
    assert!(begun.elapsed() >= least, "it was read in {:?}, not slower than {least:?}", begun.elapsed());
    let metrics = ops.metrics().await;
    assert!(metrics.of("holdfast_agents_held_back_total") > 0.0, "{}", metrics.text);
    let grown = machine::memory(pid).resident.saturating_sub(memory);
    assert!(grown < GROWTH, "the coordinator grew by {grown} bytes");
    let log = std::fs::read_to_string(cluster.coordinator().log()).expect("a log");
    assert_eq!(log.matches("an agent says more than it may").count(), 1, "told once, with its name");
}

/// T16. Work of an agent beside one that floods: nothing of it is late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_beside_a_flood_of_unknown_claims_keeps_its_lease() {
    let mut cluster = Plan::new(PROGRAM).agents(&["web-01"]).start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    let (ops, ledger) = (cluster.coordinator().ops(), cluster.ledger("box"));
    let file = DeploymentFile::new(BOX, LEASE).mutates("change", "unsafe", &ledger.gated("go"));
    let label = submit(&operator, file.text()).await;
    ledger.until_begun(1).await;
    let mut stranger = hello(Uuid::new_v4());
    stranger.labels.clear();
    let flooder = cluster.peer("web-08", stranger).await.expect("a session");
    let before = beats(&ops.metrics().await);
    let (says, mut hears) = flooder.into_ends();
    let reading = tokio::spawn(async move { while hears.message().await.is_ok_and(|answer| answer.is_some()) {} });
    let claims = || {
        let claim = |_| holdfast_proto::v1::Claim {
            deployment: Uuid::now_v7().to_string(),
            attempt: Uuid::new_v4().to_string(),
            fence: 1,
        };
        (0..100).map(claim).collect()
    };
    let flood = tokio::spawn(async move {
        for number in 1.. {
            let beat = Heartbeat { number, claims: claims(), no_room: None };
            if says.send(ConnectRequest { message: Some(Says::Heartbeat(beat)) }).await.is_err() {
                return;
            }
        }
    });
    ops.until_figures("the flood to be held back", |metrics| metrics.of("holdfast_agents_held_back_total") > 0.0).await;
    tokio::time::sleep(LEASE).await;
    kept_their_pace(&ops, before).await;
    ledger.open_gate("go");
    let done = operator.until_ended(&label).await;
    assert_eq!((state_of(&done), done.attempts.len()), (DeploymentState::Succeeded, 1), "{done:#?}");
    flood.abort();
    reading.abort();
}

/// The services' own log goes into a pipe whose reader is stuck: work goes on, and so do heartbeats.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_whose_reader_is_stuck_holds_up_neither_service() {
    let fifo = |name: &str| format!("{name}.fifo");
    let wrapper = |name: &str| {
        // Both ends are open, and nobody ever reads: a few records fill it.
        let script = format!("mkfifo {0} && exec \"$@\" 2<> {0}", fifo(name));
        ["/bin/sh", "-c", &script, "sh"].map(str::to_owned)
    };
    let mut cluster = Plan::new(PROGRAM)
        .agents(&["web-01"])
        .coordinator_wrapper(&wrapper("coordinator"))
        .agent_wrapper(&wrapper("agent"))
        .coordinator_environment("HOLDFAST_LOG_FILTER", "trace")
        .agent_environment("HOLDFAST_LOG_FILTER", "trace")
        .start()
        .await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    let ops = cluster.coordinator().ops();
    let before = beats(&ops.metrics().await);
    for _ in 0..10 {
        let label = submit(&operator, &change(LONG, "unsafe", &["/bin/sleep".to_owned(), "0.5".to_owned()])).await;
        operator.until_state(&label, DeploymentState::Succeeded).await;
    }
    kept_their_pace(&ops, before).await;
}
