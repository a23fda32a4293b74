//! What is said while the disk is full, and what is kept where even the reserve is used up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdfast_proto::v1::{ApplyTargetRequest, CancelDeploymentRequest, Contact, DeploymentState, SubmitRequest};
use holdfast_tests::api::{Operator, code_of, state_of};
use holdfast_tests::cluster::{Cluster, LONG};
use holdfast_tests::files;
use holdfast_tests::ledger::Ledger;
use holdfast_tests::small_disk::{Of, SmallDisk};
use holdfast_tests::wait;
use uuid::Uuid;

use crate::crash_case::{AGENTS, on_small_disks};
use crate::support::{BOX, begun, change, submit};

/// Two agents and the target, with the coordinator's folder or the agents' on small disks.
async fn with_box_on(folders: &[&str]) -> (Cluster, Operator, Ledger, Vec<Arc<SmallDisk>>) {
    let (mut cluster, disks) = on_small_disks(folders).await;
    cluster.start_coordinator().await;
    AGENTS.iter().for_each(|name| cluster.agent(name).start());
    let operator = cluster.operator();
    for name in AGENTS {
        operator.until_contact(name, Contact::Connected).await;
    }
    operator.apply_target(&files::command_target(BOX, false)).await;
    let ledger = cluster.ledger("box");
    (cluster, operator, ledger, disks.into_iter().map(Arc::new).collect())
}

async fn apply(operator: &Operator) -> Result<(), tonic::Status> {
    let request = ApplyTargetRequest { file: files::command_target("other@test", false) };
    operator.client.clone().apply_target(request).await.map(drop)
}

async fn until_refused(operator: &Operator, code: &str) {
    wait::until("new work to be refused", wait::SOON, async || match apply(operator).await {
        Ok(()) => Err("it is taken".to_owned()),
        Err(status) if code_of(&status) == code => Ok(()),
        Err(status) => panic!("refused with {}: {status}", code_of(&status)),
    })
    .await;
}

async fn until_taken(operator: &Operator) {
    wait::until("new work to be taken", wait::SOON, async || {
        apply(operator).await.map_err(|status| format!("{} {status}", code_of(&status)))
    })
    .await;
}

/// Looks all the time.
async fn stays_active(operator: &Operator, label: &str, span: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < span {
        let state = state_of(&operator.deployment(label).await);
        assert_eq!(state, DeploymentState::Active, "after {:?}", begun.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_of_the_coordinator_refuses_what_is_new_and_says_so_and_records_what_runs() {
    if !SmallDisk::can_be_had(2) {
        return;
    }
    for of in [Of::Blocks, Of::Inodes] {
        let (mut cluster, operator, ledger, disks) = with_box_on(&["coordinator"]).await;
        let ops = cluster.coordinator().ops();
        let recorded = SubmitRequest {
            request_id: Uuid::now_v7().to_string(),
            file: change(LONG, "unsafe", &ledger.gated("go")),
            ..SubmitRequest::default()
        };
        let first = operator.client.clone().submit(recorded.clone()).await.expect("there is room").into_inner();
        let label = holdfast_tests::api::label_of(first.deployment.as_ref().expect("the answer shows it"));
        ledger.until_begun(1).await;
        ops.until_status("/readyz", 200).await;

        disks[0].fill(of);
        ops.until_refused("/readyz", "disk: the disk is").await;
        assert_eq!(ops.get("/livez").await.status, 200);
        until_refused(&operator, "HF-6005").await;
        let fresh = SubmitRequest { request_id: Uuid::now_v7().to_string(), ..recorded.clone() };
        let refused = operator.client.clone().submit(fresh).await.expect_err("it is new work");
        assert_eq!(code_of(&refused), "HF-6005");
        // What was recorded is told again.
        let again = operator.client.clone().submit(recorded).await.expect("it is no new work").into_inner();
        assert!(again.existed);

        ledger.open_gate("go");
        operator.until_state(&label, DeploymentState::Succeeded).await;
        assert!(apply(&operator).await.is_err(), "the disk is still full");

        disks[0].free();
        until_taken(&operator).await;
        ops.until_status("/readyz", 200).await;
        let next = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
        operator.until_state(&next, DeploymentState::Succeeded).await;
        ledger.check_begun(2);
    }
}

/// Fills a disk again and again, so that no room that is given back stays free.
struct Greedy {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    disk: Arc<SmallDisk>,
}

impl Greedy {
    fn on(disk: &Arc<SmallDisk>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, taken) = (Arc::clone(&stop), Arc::clone(disk));
        let thread = std::thread::spawn(move || {
            while !flag.load(Ordering::Relaxed) {
                taken.fill(Of::Blocks);
            }
        });
        Self { stop, thread: Some(thread), disk: Arc::clone(disk) }
    }

    fn give_up(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("it runs").join().expect("it does not panic");
        self.disk.free();
    }
}

fn log_of(cluster: &Cluster, name: &str) -> String {
    std::fs::read_to_string(cluster.folder().join(&format!("{name}.log"))).unwrap_or_default()
}

/// Nothing is acknowledged that could not be written, nothing of it is lost, and no lease lapses because of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_that_can_write_nothing_keeps_its_sessions_and_loses_no_lease_and_no_result() {
    if !SmallDisk::can_be_had(1) {
        return;
    }
    const TTL: Duration = Duration::from_secs(2);
    let (mut cluster, operator, ledger, disks) = with_box_on(&["coordinator"]).await;
    let ended = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    operator.until_state(&ended, DeploymentState::Succeeded).await;
    let (label, agent) = begun(&operator, &ledger, TTL, "unsafe").await;
    let greedy = Greedy::on(&disks[0]);
    // A request to stop is recorded as long as anything can be: the reserve and what is left of the log go here.
    wait::until("a request to stop to find no room", wait::SOON, async || {
        let request = CancelDeploymentRequest { deployment: ended.clone(), reason: "fills the log".to_owned() };
        match operator.client.clone().cancel(request).await {
            Ok(_) => Err("it was recorded".to_owned()),
            Err(status) if code_of(&status) == "HF-6005" => Ok(()),
            Err(status) => panic!("{} {status}", code_of(&status)),
        }
    })
    .await;
    assert!(log_of(&cluster, "coordinator").contains("nothing of it was recorded or answered"));
    until_refused(&operator, "HF-6005").await;
    ledger.open_gate("go");
    ledger.until_ended(1).await;
    // Longer than the lease: heartbeats are answered, and serving time stands still.
    stays_active(&operator, &label, TTL * 2).await;
    operator.until_contact(&agent, Contact::Connected).await;

    // The next process finds the same disk. Whether it can begin its run or waits for that, nothing is lost.
    cluster.coordinator().kill();
    cluster.coordinator().begin_to_start();
    cluster.coordinator().ops().until_refused("/readyz", "disk: the disk is full").await;

    greedy.give_up();
    cluster.until_coordinator_listens().await;
    let operator = cluster.operator();
    operator.until_state(&label, DeploymentState::Succeeded).await;
    until_taken(&operator).await;
    ledger.check_begun(2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_on_a_full_disk_waits_for_room_and_says_so() {
    if !SmallDisk::can_be_had(1) {
        return;
    }
    let (mut cluster, _operator, _ledger, disks) = with_box_on(&["coordinator"]).await;
    // An orderly end leaves no log: the next start has to make one.
    assert!(cluster.coordinator().terminate().await.success());
    let greedy = Greedy::on(&disks[0]);
    cluster.coordinator().begin_to_start();
    // Where the log fits into what one page of the disk had left, it starts and takes nothing new; else it waits.
    wait::until_true("the start to say why it waits", wait::SOON, || {
        let log = log_of(&cluster, "coordinator");
        let waits = log.contains("waiting for room on the disk") && log.contains("HF-6005");
        waits || log.matches("listening").count() == 2
    })
    .await;
    cluster.coordinator().ops().until_refused("/readyz", "disk: the disk is").await;
    assert!(cluster.coordinator().status().is_none(), "it waits, or it serves");
    greedy.give_up();
    cluster.until_coordinator_listens().await;
    until_taken(&cluster.operator()).await;
}

/// The journal writes over what it has as long as it need not grow: a kill on the full disk costs nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_whose_disk_stays_full_lives_through_a_kill_and_takes_no_new_work_until_there_is_room() {
    if !SmallDisk::can_be_had(1) {
        return;
    }
    let (mut cluster, operator, ledger, disks) = with_box_on(&AGENTS).await;
    let (label, agent) = begun(&operator, &ledger, LONG, "unsafe").await;
    let greedy = disks.iter().map(Greedy::on).collect::<Vec<_>>();
    cluster.agent(&agent).ops().until_refused("/readyz", "disk: the disk is").await;
    cluster.agent(&agent).kill();
    ledger.open_gate("go");
    ledger.until_ended(0).await;
    cluster.agent(&agent).start();
    operator.until_contact(&agent, Contact::Connected).await;

    // Nobody takes new work, and the reason is told.
    operator.apply_target(&files::command_target("other@test", false)).await;
    let other = files::DeploymentFile::new("other@test", LONG).mutates("change", "unsafe", &ledger.command());
    let waiting = submit(&operator, other.text()).await;
    operator
        .until(&waiting, "declined for lack of room", |deployment| {
            deployment.attempts.iter().any(|attempt| attempt.decline_reason.contains("its host has no room"))
        })
        .await;
    ledger.check_begun(1);

    greedy.into_iter().for_each(Greedy::give_up);
    operator.until_state(&label, DeploymentState::Succeeded).await;
    operator.until_state(&waiting, DeploymentState::Succeeded).await;
    ledger.check_begun(2);
}
