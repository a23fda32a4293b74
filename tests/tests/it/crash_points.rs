//! `kill -9` at every named point of coordinator, agent and shim: after the restart there is one true state within 30 s, it can
//! be taken to its end, and nothing ran twice.

use std::time::Duration;

use holdfast_agent::crash::CrashPoint as AgentPoint;
use holdfast_coordinator::crash::CrashPoint as CoordinatorPoint;
use holdfast_proto::v1::{DecisionKind, Deployment, DeploymentState, InspectDeploymentRequest, ListEvidenceRequest};
use holdfast_tests::api::{is_terminal, state_of};
use holdfast_tests::files::DeploymentFile;

use crate::cases::Cases;
use crate::crash_case::{Case, TARGET};

/// Long enough that a restart loses no lease, short enough to wait for its lapse.
const TTL: Duration = Duration::from_secs(4);
/// Points that many different things pass: each of their first passes is a case of its own.
const PASSES: u32 = 5;

/// What goes on while the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scene {
    /// A deployment from its submission to its end.
    MainJob,
    /// A deployment that is asked to stop while it runs.
    Cancel,
    /// A step whose shim is lost; then an inspection, an attestation and a decision.
    Reconcile,
    /// The agent died before it spawned a shim, and takes that up.
    TakeUp,
}

/// The cases of a point: what goes on, and which pass.
fn cases_of_coordinator(point: CoordinatorPoint) -> Vec<(Scene, u32)> {
    use CoordinatorPoint as P;
    match point {
        P::BeforeCommit | P::AfterCommit | P::BeforeReply | P::AfterReply => first_passes(Scene::MainJob, PASSES),
        P::BeforeReportCommit | P::AfterReportCommit => first_passes(Scene::MainJob, 2),
        P::BeforeSubmitCommit
        | P::AfterSubmitCommit
        | P::BeforeLeaseCommit
        | P::AfterLeaseCommit
        | P::BeforePermitCommit
        | P::AfterPermitCommit
        | P::BeforeOffer
        | P::AfterOffer => first_passes(Scene::MainJob, 1),
        P::BeforeCancelCommit | P::AfterCancelCommit | P::BeforeCancel | P::AfterCancel => {
            first_passes(Scene::Cancel, 1)
        }
        P::BeforeInquiryCommit
        | P::AfterInquiryCommit
        | P::BeforeInquiry
        | P::AfterInquiry
        | P::BeforeDecisionCommit
        | P::AfterDecisionCommit => first_passes(Scene::Reconcile, 1),
    }
}

fn first_passes(scene: Scene, passes: u32) -> Vec<(Scene, u32)> {
    (1..=passes).map(|pass| (scene, pass)).collect()
}

/// The cases of a point, and how the deployment stands after it, before anybody decides.
fn cases_of_agent(point: AgentPoint) -> (Vec<(Scene, u32)>, DeploymentState) {
    use AgentPoint as P;
    use DeploymentState as S;
    match point {
        P::BeforeJournalCommit | P::AfterJournalCommit => (first_passes(Scene::MainJob, PASSES), S::Succeeded),
        P::BeforeReportSend | P::AfterReportSend | P::DispositionHeard => {
            (first_passes(Scene::MainJob, 2), S::Succeeded)
        }
        P::BeforeOfferAnswer
        | P::AfterOfferAnswer
        | P::BeforePermitRequest
        | P::AfterPermitRequest
        | P::PermitHeard
        | P::BeforeShimSpawn
        | P::AfterShimSpawn
        | P::AfterExitRecord => (first_passes(Scene::MainJob, 1), S::Succeeded),
        // Each try is proven not to have started. Then no try is left.
        P::BeforeStartRecord => (first_passes(Scene::MainJob, 1), S::Held),
        // Nobody saw whether the body ran, or how it ended.
        P::AfterStartRecord | P::AfterBodySpawn | P::BeforeExitRecord => {
            (first_passes(Scene::MainJob, 1), S::Uncertain)
        }
        P::CancelHeard | P::BeforeStopRequest | P::AfterStopRequest => (first_passes(Scene::Cancel, 1), S::Cancelled),
        P::BeforeTombstone | P::AfterTombstone => (first_passes(Scene::TakeUp, 1), S::Succeeded),
        P::BeforeInquiry | P::AfterInquiry => (first_passes(Scene::Reconcile, 1), S::Uncertain),
    }
}

/// A death of the coordinator costs no work: it ends as it would have without it.
#[test]
fn a_coordinator_that_dies_at_any_point_loses_and_repeats_nothing() {
    at_every_point_of_the_coordinator(false);
}

/// Nor does the death of everything at once: shims live on, journal and store tell the rest.
#[test]
fn a_coordinator_that_dies_together_with_its_agents_loses_and_repeats_nothing() {
    at_every_point_of_the_coordinator(true);
}

fn at_every_point_of_the_coordinator(takes_agents_along: bool) {
    let mut cases = Cases::default();
    for point in CoordinatorPoint::ALL {
        for (scene, pass) in cases_of_coordinator(*point) {
            let name = format!("coordinator:{}:{pass}", point.name());
            cases.add(&format!("{name} {scene:?}"), async move || {
                let mut case = Case::coordinator_at(&name).await;
                case.takes_agents_along = takes_agents_along;
                coordinator_case(case, scene).await;
            });
        }
    }
    cases.run();
}

async fn coordinator_case(mut case: Case, scene: Scene) {
    let settled = play(&mut case, scene).await;
    case.until_died(false).await;
    assert_eq!(case.died(), 1);
    let wanted = match scene {
        Scene::MainJob | Scene::TakeUp => DeploymentState::Succeeded,
        Scene::Cancel => DeploymentState::Cancelled,
        Scene::Reconcile => DeploymentState::Uncertain,
    };
    assert_eq!(settled, wanted);
    case.ledger().check_begun(1);
    case.check().await;
}

/// A death of an agent or a shim may leave an uncertain step, never a wrong one.
#[test]
fn an_agent_or_shim_that_dies_at_any_point_leaves_one_true_state() {
    let mut cases = Cases::default();
    for point in AgentPoint::ALL {
        let (scenes, wanted) = cases_of_agent(*point);
        for (scene, pass) in scenes {
            let name = format!("{}:{pass}", point.name());
            let point = *point;
            cases.add(&format!("{name} {scene:?}"), async move || {
                let first = if scene == Scene::TakeUp { AgentPoint::BeforeShimSpawn.name() } else { name.as_str() };
                let mut case = Case::agent_at(first).await;
                case.next_point = (scene == Scene::TakeUp).then(|| name.clone());
                agent_case(case, point, scene, wanted).await;
            });
        }
    }
    cases.run();
}

async fn agent_case(mut case: Case, point: AgentPoint, scene: Scene, wanted: DeploymentState) {
    let settled = play(&mut case, scene).await;
    case.until_died(point.is_in_shim()).await;
    assert_eq!(settled, wanted);
    if wanted == DeploymentState::Succeeded {
        case.ledger().check_begun(1);
    }
    case.check().await;
}

/// Plays a scene to its end. Gives the first state that no timer changes, before anybody decides.
pub(crate) async fn play(case: &mut Case, scene: Scene) -> DeploymentState {
    let label = match scene {
        Scene::MainJob => main_job(case).await,
        Scene::Cancel => cancel(case).await,
        Scene::Reconcile => lost_shim(case).await,
        Scene::TakeUp => take_up(case).await,
    };
    let settled = state_of(&case.settled(&label).await);
    let ended = match scene {
        _ if is_terminal(settled) => settled,
        Scene::Reconcile => state_of(&reconcile(case, &label).await),
        Scene::MainJob | Scene::Cancel | Scene::TakeUp => state_of(&case.bring_to_its_end(&label).await),
    };
    assert!(is_terminal(ended), "{ended:?}");
    settled
}

async fn main_job(case: &mut Case) -> String {
    let argv = case.ledger().command_with(&["--seconds", "0.2"]);
    case.submit(DeploymentFile::new(TARGET, TTL).mutates("change", "unsafe", &argv).text()).await
}

async fn cancel(case: &mut Case) -> String {
    // It ends by the request to stop alone.
    let argv = case.ledger().gated("never");
    let label = case.submit(DeploymentFile::new(TARGET, TTL).mutates("change", "idempotent", &argv).text()).await;
    case.until_begun().await;
    case.cancel(&label).await;
    label
}

/// The step ends its own shim: nobody saw how it ended.
async fn lost_shim(case: &mut Case) -> String {
    let words = ["sh", "-c", "kill -9 $PPID; exec \"$@\"", "sh"].map(str::to_owned);
    let argv: Vec<String> = words.into_iter().chain(case.ledger().command()).collect();
    let keys = format!("retry = \"unsafe\"\nrun = {argv:?}\nwith = {{ revision = \"v1\" }}\n");
    case.submit(DeploymentFile::new(TARGET, TTL).step("change", &keys).text()).await
}

async fn reconcile(case: &mut Case, label: &str) -> Deployment {
    let request = InspectDeploymentRequest { deployment: label.to_owned(), wait: None };
    case.until("the question to be recorded", async |operator| {
        let answer = operator.client.clone().inspect_deployment(request.clone()).await;
        answer.map(drop).map_err(|status| status.to_string())
    })
    .await;
    case.until("its answer", async |operator| {
        let request = ListEvidenceRequest { deployment: label.to_owned() };
        let answer = operator.client.clone().list_evidence(request).await.map_err(|status| status.to_string())?;
        let evidence = answer.into_inner().evidence;
        if evidence.iter().any(|one| one.kind == "inspection") { Ok(()) } else { Err(format!("{evidence:?}")) }
    })
    .await;
    let ledger = case.ledger();
    case.attest(label, &ledger).await;
    case.decide(label, DecisionKind::AcceptFailed).await
}

/// Dies between the journal's "starting" and the shim; then again while it takes that up.
async fn take_up(case: &mut Case) -> String {
    let argv = case.ledger().command();
    case.submit(DeploymentFile::new(TARGET, TTL).mutates("change", "unsafe", &argv).text()).await
}
