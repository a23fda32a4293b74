//! What steps print, from the process to the reader.

use std::path::{Path, PathBuf};
use std::process::Output;

use holdfast_proto::v1::{
    AttemptState, DeploymentState, LogChannel, LogGap, LogGapReason, ReadLogsRequest, ReadLogsResponse,
};
use holdfast_tests::api::{Operator, state_of};
use holdfast_tests::cluster::{LONG, Plan, SHORT};
use holdfast_tests::{files, wait};

use crate::PROGRAM;
use crate::support::{BOX, change, last_attempt, submit, with_box};

const MIB: u64 = 1024 * 1024;
/// What the host keeps of one output.
const KEPT: u64 = 16 * MIB;
/// How much a process may grow while an output passes through it. Less than any of the outputs here.
const GROWTH: u64 = 48 * MIB;
/// Readers that never read.
const STUCK: usize = 64;

/// How many MiB the flood has: `HOLDFAST_TEST_FLOOD_MIB=10240` is the full size.
fn flood_mib() -> u64 {
    std::env::var("HOLDFAST_TEST_FLOOD_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(64)
}

fn shell(script: &str) -> Vec<String> {
    ["/bin/sh", "-c", script].map(str::to_owned).into()
}

/// A command that waits for a file.
fn until(path: &Path) -> String {
    format!("until test -e {}; do /bin/sleep 0.05; done", path.display())
}

fn open(gate: &Path) {
    std::fs::write(gate, "").expect("a test's own folder can be written");
}

/// The most that a process ever had in memory, in bytes. `None` where it is gone.
fn peak(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// All of one output of a step that ended, and what is missing of it.
async fn read(operator: &Operator, label: &str, step: &str, stream: LogChannel) -> (u64, u64, Vec<LogGap>) {
    let request = ReadLogsRequest {
        deployment: label.to_owned(),
        step: step.to_owned(),
        follow: true,
        stream: stream.into(),
        ..ReadLogsRequest::default()
    };
    let mut pieces = operator.client.clone().read_logs(request).await.expect("logs are there").into_inner();
    let (mut length, mut feeds, mut gaps) = (0, 0, Vec::new());
    let bound = wait::SOON * 4;
    while let Some(piece) = wait::within("a piece", bound, pieces.message()).await.expect("logs come whole") {
        let ReadLogsResponse { offset, data, gap, .. } = piece;
        assert_eq!(offset, length, "nothing is left out and nothing comes twice");
        length += data.len() as u64;
        feeds += data.iter().filter(|byte| **byte == b'\n').count() as u64;
        gaps.extend(gap);
    }
    (length, feeds, gaps)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_output_is_read_once_over_cuts_and_restarts_of_every_part() {
    let (mut cluster, operator, _ledger) = with_box().await;
    let gates: Vec<PathBuf> = (0..4).map(|number| cluster.folder().join(&format!("gate-{number}"))).collect();
    let mut script = String::new();
    for (number, gate) in gates.iter().enumerate() {
        let (first, last) = (number * 50_000 + 1, (number + 1) * 50_000);
        script.push_str(&format!("/usr/bin/seq {first} {last}; {}; ", until(gate)));
    }
    let label = submit(&operator, &change(LONG, "unsafe", &shell(&script))).await;
    let running = operator
        .until(&label, "the step to run", |d| {
            d.attempts.last().is_some_and(|attempt| attempt.steps[0].started.is_some())
        })
        .await;
    let agent = last_attempt(&running).agent.clone();
    let file = cluster.folder().join("followed");
    let cli = cluster.cli();
    let mut follow = cli.command(&["logs", &label, "-f", "--raw"]);
    follow.stdout(std::fs::File::create(&file).expect("a test's own folder"));
    let follow = follow.spawn().expect("the program can be started");
    let followed = |lines: usize| {
        let last = (1..=lines).map(|number| number.to_string().len() as u64 + 1).sum::<u64>();
        let length = std::fs::metadata(&file).map(|about| about.len()).unwrap_or_default();
        length >= last
    };

    wait::until_true("the first lines", wait::SOON, || followed(50_000)).await;
    cluster.line(&agent).reset();
    open(&gates[0]);
    wait::until_true("the lines after a cut", wait::SOON, || followed(100_000)).await;
    cluster.coordinator().kill();
    open(&gates[1]);
    cluster.start_coordinator().await;
    wait::until_true("the lines after the coordinator's restart", wait::SOON, || followed(150_000)).await;
    cluster.agent(&agent).kill();
    open(&gates[2]);
    cluster.agent(&agent).start();
    wait::until_true("the lines after the agent's restart", wait::SOON, || followed(200_000)).await;
    open(&gates[3]);

    let Output { status, stderr, .. } =
        wait::within("the end of the output", wait::SOON, follow.wait_with_output()).await.expect("it is read");
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success() && stderr.is_empty(), "{status}: {stderr}");
    let text = std::fs::read_to_string(&file).expect("lines");
    let expected: String = (1..=200_000).map(|number| format!("{number}\n")).collect();
    assert!(text == expected, "{} bytes instead of {}", text.len(), expected.len());
    let done = operator.until_ended(&label).await;
    assert_eq!((state_of(&done), done.attempts.len()), (DeploymentState::Succeeded, 1));
    let left = std::fs::read_dir(cluster.agent(&agent).state().join("uploads")).expect("a folder").count();
    assert_eq!(left, 0, "the agent remembers nothing that is stored");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_output_costs_bounded_memory_and_no_heartbeat_and_its_cut_is_shown() {
    let mib = flood_mib();
    let mut cluster = Plan::new(PROGRAM).start().await;
    let operator = cluster.operator();
    operator.apply_target(&files::command_target(BOX, false)).await;
    let gates: Vec<PathBuf> = (0..3).map(|number| cluster.folder().join(&format!("gate-{number}"))).collect();
    let away = cluster.folder().join("flooded");
    let script = format!(
        "{wait}; /usr/bin/yes a line | /usr/bin/head -c {flood}; /usr/bin/head -c {line} /dev/zero; \
         /usr/bin/yes '' | /usr/bin/head -n 1000000; : > {away}; {then}; \
         /usr/bin/head -c {flood} /dev/zero >&2; {finally}",
        wait = until(&gates[0]),
        flood = mib * MIB,
        line = mib / 2 * MIB,
        away = away.display(),
        then = until(&gates[1]),
        finally = until(&gates[2]),
    );
    let small = "/usr/bin/head -c 8388608 /dev/zero; /usr/bin/yes '' | /usr/bin/head -n 1000000";
    let file = holdfast_tests::files::DeploymentFile::new(BOX, SHORT)
        .mutates("flood", "unsafe", &shell(&script))
        .mutates("line", "unsafe", &shell(small));
    let label = submit(&operator, file.text()).await;
    let running = operator
        .until(&label, "the step to run", |d| {
            d.attempts.last().is_some_and(|attempt| attempt.steps[0].started.is_some())
        })
        .await;
    let agent = last_attempt(&running).agent.clone();
    let agent_pid = cluster.agent(&agent).pid();
    let before = peak(agent_pid).expect("it runs");

    // The coordinator is away while everything is written.
    cluster.coordinator().kill();
    open(&gates[0]);
    wait::until_true("the flood to pass", wait::SOON * (1 + u32::try_from(mib / 64).expect("small")), || away.exists())
        .await;
    for pid in cluster.shims(&agent) {
        let shim = peak(u32::try_from(pid).expect("a process id"));
        assert!(shim.is_none_or(|peak| peak < GROWTH), "process {pid} of the step had {shim:?} bytes");
    }
    cluster.start_coordinator().await;
    let coordinator_pid = cluster.coordinator().pid();
    let coordinator_before = peak(coordinator_pid).expect("it runs");

    // Readers that never read hold nothing up: the other output passes with a lease of a second and a half.
    let (reader, mut stuck) = (cluster.operator(), Vec::new());
    for _ in 0..STUCK {
        let request = ReadLogsRequest { deployment: label.clone(), follow: true, ..ReadLogsRequest::default() };
        let mut client = reader.client.clone();
        stuck.push(
            wait::within("a stream", wait::SOON, client.read_logs(request)).await.expect("logs are there").into_inner(),
        );
    }
    open(&gates[1]);
    open(&gates[2]);
    let done = wait::within("the result", wait::SOON * 4, operator.until_ended(&label)).await;
    assert_eq!((state_of(&done), done.attempts.len()), (DeploymentState::Succeeded, 1), "{done:#?}");
    assert_eq!(last_attempt(&done).state(), AttemptState::Succeeded, "the lease never lapsed");
    drop(stuck);

    let cut = |length, from| {
        vec![LogGap { from, length: Some(length), reason: LogGapReason::CutOnHost.into(), removed_at: None }]
    };
    let (length, _, gaps) = read(&operator, &label, "flood", LogChannel::Stdout).await;
    let written = mib * MIB + mib / 2 * MIB + 1_000_000;
    assert_eq!((length, gaps), (KEPT, cut(written - KEPT, KEPT)));
    let (length, _, gaps) = read(&operator, &label, "flood", LogChannel::Stderr).await;
    assert_eq!((length, gaps), (KEPT, cut(mib * MIB - KEPT, KEPT)));
    assert_eq!(read(&operator, &label, "line", LogChannel::Stdout).await, (9_388_608, 1_000_000, Vec::new()));

    let agent_grew = peak(agent_pid).expect("it runs") - before;
    let coordinator_grew = peak(coordinator_pid).expect("it runs") - coordinator_before;
    assert!(agent_grew < GROWTH, "the agent grew by {agent_grew} bytes");
    assert!(coordinator_grew < GROWTH, "the coordinator grew by {coordinator_grew} bytes");
    let shown = cluster.cli().run(&["logs", &label, "--step", "flood", "--since-offset", "16777000"]).await;
    shown.expect(0);
    assert!(shown.stderr.contains("not kept: cut on the host]"), "{}", shown.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_retention_removed_and_what_has_not_arrived_are_told_apart() {
    let (mut cluster, operator, _ledger) = with_box().await;
    let label = submit(&operator, &change(LONG, "unsafe", &shell("echo kept for a while"))).await;
    operator.until_ended(&label).await;
    let kept = cluster.cli().run(&["logs", &label, "-f"]).await;
    kept.expect(0);
    assert_eq!(kept.stdout, "kept for a while\n");
    let age = ("HOLDFAST_OUTPUT_KEEP_AGE".to_owned(), "1ms".to_owned());
    cluster.coordinator().settings().environment.extend([age]);
    cluster.restart_coordinator().await;
    let cli = cluster.cli();
    wait::until("the outputs to be removed", wait::SOON, async || {
        let told = cli.run(&["logs", &label]).await;
        if told.stderr.contains("[removed by retention on 20") { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await;
    let rows = cli.run(&["logs", &label, "-o", "jsonl"]).await;
    rows.expect(0);
    let row: serde_json::Value = serde_json::from_str(rows.stdout.lines().next().expect("a row")).expect("JSON");
    assert_eq!(
        (&row["gap"]["length"], &row["gap"]["reason"]),
        (&"17".into(), &"LOG_GAP_REASON_REMOVED".into()),
        "{row}"
    );
    assert!(row["gap"]["removedAt"].is_string() && row.get("data").is_none_or(|data| data == ""), "{row}");
}
