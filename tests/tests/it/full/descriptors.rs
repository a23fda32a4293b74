//! Services that have no descriptors left.

use std::time::{Duration, Instant};

use holdfast_proto::v1::{ApplyTargetRequest, Contact, DeploymentState};
use holdfast_tests::api::{Operator, code_of};
use holdfast_tests::cluster::LONG;
use holdfast_tests::{files, wait};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tokio::net::TcpStream;

use crate::support::{begun, change, submit, with_box};

/// Gives a process so many descriptors.
fn limit(pid: u32, descriptors: u64) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process's number");
    let bound = Rlimit { current: Some(descriptors), maximum: Some(4096) };
    prlimit(Some(pid), Resource::Nofile, bound).expect("a process of ours can be limited");
}

fn open_descriptors(pid: u32) -> u64 {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, |entries| entries.count() as u64)
}

async fn apply(operator: &Operator) -> Result<(), tonic::Status> {
    let request = ApplyTargetRequest { file: files::command_target("other@test", false) };
    operator.client.clone().apply_target(request).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_without_descriptors_keeps_its_sessions_refuses_new_work_and_goes_on_by_itself() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, _agent) = begun(&operator, &ledger, LONG, "unsafe").await;
    let pid = cluster.coordinator().pid();
    let ops = cluster.coordinator().ops();
    limit(pid, open_descriptors(pid) + 4);
    wait::until("new work to be refused", wait::SOON, async || match apply(&operator).await {
        Err(status) if code_of(&status) == "HF-6006" => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    let told = ops.until_refused("/readyz", "descriptors: ").await.body;
    assert!(told.contains("descriptors are open"), "{told}");

    // Nothing is left for anybody new.
    let address = cluster.coordinator().address();
    let mut held = Vec::new();
    for _ in 0..32 {
        held.push(TcpStream::connect(address).await.expect("the kernel takes it"));
    }
    ledger.open_gate("go");
    operator.until_state(&label, DeploymentState::Succeeded).await;
    // While it answers nothing else, a second of its time would be a second of ours.
    let (begun, used) = (Instant::now(), cpu_ticks(pid));
    wait::until_true("a second to pass", wait::SOON, || begun.elapsed() >= Duration::from_secs(1)).await;
    assert!(cpu_ticks(pid) - used < 50, "it spins");

    drop(held);
    limit(pid, 4096);
    wait::until("new work to be taken", wait::SOON, async || apply(&operator).await.map_err(|s| s.to_string())).await;
    ops.until_status("/readyz", 200).await;
    let fresh = cluster.operator();
    let next = submit(&fresh, &change(LONG, "unsafe", &ledger.command())).await;
    fresh.until_state(&next, DeploymentState::Succeeded).await;
    ledger.check_begun(2);
}

/// Used in user and kernel mode, in hundredths of a second.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let (_, rest) = stat.rsplit_once(')').expect("a name in parentheses");
    rest.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().expect("a number")).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_without_descriptors_declines_before_any_permit_and_ends_what_it_has() {
    let (mut cluster, operator, ledger) = with_box().await;
    let (label, agent) = begun(&operator, &ledger, LONG, "unsafe").await;
    let pids = ["web-01", "web-02"].map(|name| cluster.agent(name).pid());
    // Two are left: the others are in use.
    pids.iter().for_each(|pid| limit(*pid, open_descriptors(*pid) + 2));
    let ops = cluster.agent(&agent).ops();
    for name in ["web-01", "web-02"] {
        cluster.agent(name).ops().until_refused("/readyz", "descriptors are open").await;
    }
    ledger.open_gate("go");
    operator.until_state(&label, DeploymentState::Succeeded).await;

    let waiting = submit(&operator, &change(LONG, "unsafe", &ledger.command())).await;
    operator
        .until(&waiting, "declined for lack of descriptors", |deployment| {
            deployment.attempts.iter().any(|attempt| attempt.decline_reason.contains("no descriptors are left"))
        })
        .await;
    ledger.check_begun(1);
    operator.until_contact(&agent, Contact::Connected).await;

    pids.iter().for_each(|pid| limit(*pid, 4096));
    operator.until_state(&waiting, DeploymentState::Succeeded).await;
    ops.until_status("/readyz", 200).await;
    ledger.check_begun(2);
}
