//! The disk is filled while a process stands still at a point. The tables say how far the work comes on the full disk.

use holdfast_agent::crash::CrashPoint as AgentPoint;
use holdfast_coordinator::crash::CrashPoint as CoordinatorPoint;
use holdfast_proto::v1::{ApplyTargetRequest, DeploymentState};
use holdfast_tests::api::state_of;
use holdfast_tests::cluster::LONG;
use holdfast_tests::files::{DeploymentFile, command_target};
use holdfast_tests::small_disk::{Of, SmallDisk};

use crate::cases::Cases;
use crate::crash_case::Case;
use crate::crash_points::{Scene, play};

/// How far the work comes while the disk is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// To its end: all that is missing are results.
    OnTheFullDisk,
    /// New work, a permit or a step is still to come: it waits, and goes on by itself when there is room.
    WhenThereIsRoom,
}

/// What goes on, which passes of the point are cases, how far the work comes.
fn coordinator_case(point: CoordinatorPoint) -> (Scene, &'static [u32], Ends) {
    use CoordinatorPoint as P;
    match point {
        P::BeforeCommit | P::AfterCommit | P::BeforeReply | P::AfterReply => {
            (Scene::MainJob, &[1, 4], Ends::WhenThereIsRoom)
        }
        P::BeforeSubmitCommit
        | P::AfterSubmitCommit
        | P::BeforeLeaseCommit
        | P::AfterLeaseCommit
        | P::BeforePermitCommit => (Scene::MainJob, &[1], Ends::WhenThereIsRoom),
        P::AfterPermitCommit => (Scene::MainJob, &[1], Ends::OnTheFullDisk),
        P::BeforeReportCommit | P::AfterReportCommit => (Scene::MainJob, &[1, 2], Ends::OnTheFullDisk),
        P::BeforeOffer | P::AfterOffer => (Scene::MainJob, &[1], Ends::WhenThereIsRoom),
        P::BeforeCancelCommit | P::AfterCancelCommit | P::BeforeCancel | P::AfterCancel => {
            (Scene::Cancel, &[1], Ends::OnTheFullDisk)
        }
        P::BeforeInquiryCommit
        | P::AfterInquiryCommit
        | P::BeforeInquiry
        | P::AfterInquiry
        | P::BeforeDecisionCommit
        | P::AfterDecisionCommit => (Scene::Reconcile, &[1], Ends::OnTheFullDisk),
    }
}

fn agent_case(point: AgentPoint) -> (Scene, &'static [u32], Ends) {
    use AgentPoint as P;
    match point {
        P::BeforeJournalCommit | P::AfterJournalCommit => (Scene::MainJob, &[1, 2], Ends::WhenThereIsRoom),
        P::BeforeOfferAnswer
        | P::AfterOfferAnswer
        | P::BeforePermitRequest
        | P::AfterPermitRequest
        | P::PermitHeard
        | P::BeforeShimSpawn
        | P::AfterShimSpawn
        | P::BeforeStartRecord => (Scene::MainJob, &[1], Ends::WhenThereIsRoom),
        P::AfterStartRecord | P::AfterBodySpawn | P::BeforeExitRecord | P::AfterExitRecord => {
            (Scene::MainJob, &[1], Ends::OnTheFullDisk)
        }
        P::BeforeReportSend | P::AfterReportSend | P::DispositionHeard => {
            (Scene::MainJob, &[1, 2], Ends::OnTheFullDisk)
        }
        P::CancelHeard | P::BeforeStopRequest | P::AfterStopRequest => (Scene::Cancel, &[1], Ends::OnTheFullDisk),
        P::BeforeTombstone | P::AfterTombstone => (Scene::TakeUp, &[1], Ends::WhenThereIsRoom),
        P::BeforeInquiry | P::AfterInquiry => (Scene::Reconcile, &[1], Ends::OnTheFullDisk),
    }
}

/// Points of the agent before which files are made, or after it: there, inodes are a matter of their own.
fn makes_files(point: AgentPoint) -> bool {
    use AgentPoint as P;
    matches!(
        point,
        P::BeforeShimSpawn
            | P::BeforeStartRecord
            | P::AfterStartRecord
            | P::BeforeExitRecord
            | P::BeforeStopRequest
            | P::BeforeTombstone
    )
}

#[test]
fn a_coordinator_whose_disk_fills_at_any_point_stores_what_runs_and_goes_on_by_itself() {
    let mut cases = Cases::default();
    for point in CoordinatorPoint::ALL {
        let (scene, passes, ends) = coordinator_case(*point);
        for pass in passes {
            let name = format!("coordinator:{}:{pass}=stop", point.name());
            cases.add(&format!("{name} {scene:?}"), async move || {
                let case = Case::coordinator_fills_at(&name, Of::Blocks, ends == Ends::WhenThereIsRoom).await;
                run(case, scene, ends).await;
            });
        }
    }
    if SmallDisk::can_be_had(cases.count()) {
        cases.run();
    }
}

#[test]
fn an_agent_whose_disk_fills_at_any_point_tells_how_everything_ended_and_goes_on_by_itself() {
    let mut cases = Cases::default();
    for (point, of) in AgentPoint::ALL.iter().flat_map(|point| [(*point, Of::Blocks), (*point, Of::Inodes)]) {
        let (scene, passes, ends) = agent_case(point);
        for pass in passes.iter().filter(|_| of == Of::Blocks || makes_files(point)) {
            let name = format!("{}:{pass}=stop", point.name());
            cases.add(&format!("{name} {of:?} {scene:?}"), async move || {
                let first = if scene == Scene::TakeUp { AgentPoint::BeforeShimSpawn.name() } else { name.as_str() };
                let mut case = Case::agent_fills_at(first, of, ends == Ends::WhenThereIsRoom).await;
                case.next_point = (scene == Scene::TakeUp).then(|| name.clone());
                run(case, scene, ends).await;
            });
        }
    }
    if SmallDisk::can_be_had(cases.count()) {
        cases.run();
    }
}

async fn run(mut case: Case, scene: Scene, ends: Ends) {
    let settled = play(&mut case, scene).await;
    let wanted = match scene {
        Scene::MainJob | Scene::TakeUp => DeploymentState::Succeeded,
        Scene::Cancel => DeploymentState::Cancelled,
        Scene::Reconcile => DeploymentState::Uncertain,
    };
    assert_eq!(settled, wanted);
    case.until_said_full().await;
    let filling = case.filling.as_ref().expect("a case of small disks");
    assert!(filling.was_full(), "no process stood still at the point");
    if ends == Ends::OnTheFullDisk {
        filling.free();
    }
    case.ledger().check_begun(1);
    // New work is taken again, by the same processes.
    again(&mut case).await;
    case.ledger().check_begun(2);
    case.check().await;
}

async fn again(case: &mut Case) {
    const OTHER: &str = "other@prod";
    case.until("a target to be declared", async |operator| {
        let request = ApplyTargetRequest { file: command_target(OTHER, false) };
        operator.client.clone().apply_target(request).await.map(drop).map_err(|status| status.to_string())
    })
    .await;
    let argv = case.ledger().command();
    let label = case.submit(DeploymentFile::new(OTHER, LONG).mutates("change", "unsafe", &argv).text()).await;
    case.deployment(&label, "a success", |deployment| state_of(deployment) == DeploymentState::Succeeded).await;
}
