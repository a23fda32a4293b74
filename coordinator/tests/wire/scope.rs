//! A token that counts on one target does not see another: not by a call, a list, a stream, a prefix or an error.

use holdfast_coordinator::auth::methods::{Demand, METHODS, Over};
use holdfast_coordinator::serve::wall;
use holdfast_coordinator::store::Store;
use holdfast_coordinator::store::sqlite::SqliteStore;
use holdfast_proto::v1;
use tonic::{Code, Response, Status};

use crate::requests::{FILE, TARGET, at_work, submission};
use crate::world::{Operators, World, problem, soon};

/// What must be in no answer to somebody who may not view `shop@prod`.
const TRACES: [&str; 4] = ["shop", "web-07", "switch", "anna"];

fn mail(text: &str) -> String {
    text.replace("shop", "mail").replace("\"site\"", "\"box\"")
}

/// The target that exists, or one that does not, for the same call.
struct About {
    target: String,
    deployment: String,
}

/// Makes the call of that path about somebody else's target, with every other field sound. What was answered, as text.
async fn call(by: &mut Operators, path: &str, about: &About) -> Result<String, Status> {
    let (deployment, target) = (about.deployment.clone(), about.target.clone());
    let confirm = "shop@prod".to_owned();
    fn shown<T: std::fmt::Debug>(answer: Response<T>) -> String {
        format!("{:?}", answer.into_inner())
    }
    let method = path.rsplit('/').next().expect("a path");
    match method {
        "WhoAmI" => by.who_am_i(v1::WhoAmIRequest {}).await.map(shown),
        "ApplyTarget" => {
            let file = TARGET.replace("shop@prod", &target);
            by.apply_target(v1::ApplyTargetRequest { file }).await.map(shown)
        }
        "GetTarget" => by.get_target(v1::GetTargetRequest { target }).await.map(shown),
        "ListTargets" => by.list_targets(v1::ListTargetsRequest::default()).await.map(shown),
        "InspectTarget" => by.inspect_target(v1::InspectTargetRequest { target, wait: None }).await.map(shown),
        "Submit" => {
            let file = FILE.replace("shop@prod", &target);
            by.submit(v1::SubmitRequest { file, ..submission(1) }).await.map(shown)
        }
        "GetDeployment" => by.get_deployment(v1::GetDeploymentRequest { deployment }).await.map(shown),
        "ListDeployments" => {
            let mut answers = String::new();
            for target in ["", target.as_str()] {
                let request = v1::ListDeploymentsRequest { target: target.to_owned(), ..Default::default() };
                answers += &by.list_deployments(request).await.map(shown)?;
            }
            Ok(answers)
        }
        "WatchEvents" => {
            let request = v1::WatchEventsRequest { deployment, from_sequence: 0, follow: false };
            let mut stream = by.watch_events(request).await?.into_inner();
            stream.message().await.map(|message| format!("{message:?}"))
        }
        "ReadLogs" => {
            let request = v1::ReadLogsRequest { deployment, ..Default::default() };
            let mut stream = by.read_logs(request).await?.into_inner();
            stream.message().await.map(|message| format!("{message:?}"))
        }
        "ListEvidence" => by.list_evidence(v1::ListEvidenceRequest { deployment }).await.map(shown),
        "Cancel" => {
            let request = v1::CancelDeploymentRequest { deployment, reason: "mine".to_owned() };
            by.cancel(request).await.map(shown)
        }
        "GetReconciliation" => by.get_reconciliation(v1::GetReconciliationRequest { deployment }).await.map(shown),
        "InspectDeployment" => {
            by.inspect_deployment(v1::InspectDeploymentRequest { deployment, wait: None }).await.map(shown)
        }
        "FenceOffDeployment" => {
            let reason = "mine".to_owned();
            let request = v1::FenceOffDeploymentRequest { deployment, confirm, reason, wait: None };
            by.fence_off_deployment(request).await.map(shown)
        }
        "Attest" => {
            let request = v1::AttestRequest {
                deployment,
                runner: v1::AttestedRunner::HostGone as i32,
                target_state: v1::AttestedTarget::NotApplied as i32,
                how: "I say so".to_owned(),
                confirm,
                ..Default::default()
            };
            by.attest(request).await.map(shown)
        }
        "AttestRevision" => {
            let request = v1::AttestRevisionRequest {
                target,
                resource: "site".to_owned(),
                observed_revision: "v1".to_owned(),
                how: "I say so".to_owned(),
                confirm,
            };
            by.attest_revision(request).await.map(shown)
        }
        "Decide" => {
            let kind = v1::DecisionKind::Abandon as i32;
            let request =
                v1::DecideRequest { deployment, kind, reason: "mine".to_owned(), evidence_sequence: 0, confirm };
            by.decide(request).await.map(shown)
        }
        "HoldTarget" => {
            let request = v1::HoldTargetRequest { target, reason: "mine".to_owned(), until: None };
            by.hold_target(request).await.map(shown)
        }
        "UnholdTarget" => by.unhold_target(v1::UnholdTargetRequest { target }).await.map(shown),
        "Plan" => {
            let file = FILE.replace("shop@prod", &target);
            by.plan(v1::PlanRequest { file, ..Default::default() }).await.map(shown)
        }
        "ListRollbackCandidates" => {
            let request = v1::ListRollbackCandidatesRequest { target, wait: None };
            by.list_rollback_candidates(request).await.map(shown)
        }
        "Rollback" => {
            let request = v1::RollbackRequest {
                request_id: uuid::Uuid::new_v4().to_string(),
                target,
                to: "v1".to_owned(),
                reason: "mine".to_owned(),
                confirm,
                ..Default::default()
            };
            by.rollback(request).await.map(shown)
        }
        // About no target: an archive is named by its digest, which nobody guesses.
        "UploadArchive" => {
            let asked = v1::UploadArchiveRequest { sha256: "0".repeat(64), size: 1, ..Default::default() };
            let mut stream = by.upload_archive(tokio_stream::iter([asked])).await?.into_inner();
            stream.message().await.map(|message| format!("{message:?}"))
        }
        "ListAgents" => by.list_agents(v1::ListAgentsRequest::default()).await.map(shown),
        "CreateToken" => {
            let life = Some(prost_types::Duration { seconds: 60, nanos: 0 });
            let grants = vec![v1::Grant { role: v1::Role::Viewer as i32, targets: target }];
            by.create_token(v1::CreateTokenRequest { name: "mine".to_owned(), grants, life }).await.map(shown)
        }
        "ListTokens" => by.list_tokens(v1::ListTokensRequest::default()).await.map(shown),
        "RevokeToken" => by.revoke_token(v1::RevokeTokenRequest { name: "anna".to_owned() }).await.map(shown),
        "ExportAudit" => {
            let mut all = String::new();
            for target in [String::new(), target] {
                let mut stream = by.export_audit(v1::ExportAuditRequest { target }).await?.into_inner();
                while let Some(piece) = stream.message().await? {
                    all += &piece.lines.concat();
                }
            }
            Ok(all)
        }
        "ListAudit" => {
            let mut all = String::new();
            for target in [String::new(), target] {
                let request = v1::ListAuditRequest { target, ..Default::default() };
                all += &by.list_audit(request).await.map(shown)?;
            }
            Ok(all)
        }
        "CreateJoinToken" => {
            let life = Some(prost_types::Duration { seconds: 60, nanos: 0 });
            let request = v1::CreateJoinTokenRequest { life, ..Default::default() };
            by.create_join_token(request).await.map(shown)
        }
        "ListJoinTokens" => by.list_join_tokens(v1::ListJoinTokensRequest::default()).await.map(shown),
        "RevokeJoinToken" => {
            by.revoke_join_token(v1::RevokeJoinTokenRequest { id: "mine".to_owned() }).await.map(shown)
        }
        "RemoveAgent" => {
            let agent = "web-07".to_owned();
            let request = v1::RemoveAgentRequest { confirm: agent.clone(), agent, reason: "mine".to_owned() };
            by.remove_agent(request).await.map(shown)
        }
        "RevokeCertificate" => {
            let request =
                v1::RevokeCertificateRequest { fingerprint: "0".repeat(64), reason: "mine".to_owned(), confirm };
            by.revoke_certificate(request).await.map(shown)
        }
        "UnlockAgent" => {
            let (agent, reason) = ("web-07".to_owned(), "mine".to_owned());
            by.unlock_agent(v1::UnlockAgentRequest { agent, reason, admit_new_journal: true }).await.map(shown)
        }
        "DrainAgent" => {
            let request = v1::DrainAgentRequest { agent: "web-07".to_owned(), reason: "mine".to_owned() };
            by.drain_agent(request).await.map(shown)
        }
        "ResumeAgent" => by.resume_agent(v1::ResumeAgentRequest { agent: "web-07".to_owned() }).await.map(shown),
        other => panic!("{other} has no call here: a new method needs one"),
    }
}

/// All that a refusal tells.
fn told(status: &Status) -> String {
    let problem = problem(status);
    format!("{:?} {} {} {problem:?}", status.code(), status.message(), problem.code)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_of_another_target_sees_nothing_by_any_method() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    let (_agent, _offer) = at_work(&world, &mut admin).await;
    let id = {
        let request = v1::GetDeploymentRequest { deployment: "shop@prod#1".to_owned() };
        let shown = admin.get_deployment(request).await.expect("there").into_inner().deployment.expect("it");
        shown.summary.expect("a summary").id
    };
    // May everything, but on its own targets.
    let mut eve = world.operators(&world.granted("eve", &["admin:mail@*"])).await;
    let before = admin.get_target(v1::GetTargetRequest { target: "shop@prod".to_owned() }).await.expect("there");
    for row in METHODS {
        let Demand::Token(_, over) = row.demand else { continue };
        for name in ["shop@prod#1", id.as_str(), &id[..8]] {
            let about = About { target: "shop@prod".to_owned(), deployment: name.to_owned() };
            let none = About { target: "none@prod".to_owned(), deployment: name.replace("shop", "none") };
            match (over, call(&mut eve, row.path, &about).await) {
                (Over::Each, Ok(answer)) => {
                    for trace in TRACES {
                        assert!(!answer.contains(trace), "{} tells {trace}: {answer}", row.path);
                    }
                }
                (Over::OneTarget, Ok(answer)) => panic!("{} answered {answer}", row.path),
                (_, Err(status)) => {
                    let code = status.code();
                    assert!([Code::NotFound, Code::PermissionDenied].contains(&code), "{} {status:?}", row.path);
                    if name.starts_with("shop") {
                        let other = call(&mut eve, row.path, &none).await.expect_err("there is none");
                        let (hidden, other) = (told(&status), told(&other));
                        assert_eq!(hidden.replace("shop", "none"), other, "{}", row.path);
                    } else if told(&status).contains(name) {
                        assert!(!told(&status).contains("shop"), "{}: {status:?}", row.path);
                    }
                }
            }
        }
    }
    let after = admin.get_target(v1::GetTargetRequest { target: "shop@prod".to_owned() }).await.expect("there");
    assert_eq!(before.into_inner().target, after.into_inner().target, "nothing was changed by it");
    let store = SqliteStore::open_beside(&world.store(), holdfast_common::id::StoreId(uuid::Uuid::nil()), wall());
    let refusals = store.expect("the store").reader().refusals(100).expect("read");
    for what in ["read on shop@prod", "cancel deployments on shop@prod", "attest on shop@prod"] {
        assert!(refusals.iter().any(|row| row.who == "eve" && row.what == what), "{what} is not kept: {refusals:?}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_are_of_what_one_may_view_and_their_pages_are_full() {
    let world = World::new().await;
    let mut admin = world.admin().await;
    for file in [TARGET.to_owned(), mail(TARGET)] {
        admin.apply_target(v1::ApplyTargetRequest { file }).await.expect("declared");
    }
    for number in 0..9 {
        let file = if number % 3 == 0 { mail(FILE) } else { FILE.to_owned() };
        admin.submit(v1::SubmitRequest { file, ..submission(number) }).await.expect("taken");
    }
    let mut postman = world.operators(&world.granted("postman", &["viewer:mail@*", "deployer:none@*"])).await;
    let (mut labels, mut pages, mut page_token) = (Vec::new(), 0, String::new());
    loop {
        let request = v1::ListDeploymentsRequest { page_size: 2, page_token, ..Default::default() };
        let page = postman.list_deployments(request).await.expect("listed").into_inner();
        labels.extend(page.deployments.into_iter().map(|one| one.label));
        (pages, page_token) = (pages + 1, page.next_page_token);
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!((labels, pages), (["mail@prod#3", "mail@prod#2", "mail@prod#1"].map(str::to_owned).to_vec(), 2));
    let targets = postman.list_targets(v1::ListTargetsRequest::default()).await.expect("listed").into_inner().targets;
    assert_eq!(targets.iter().map(|target| target.name.as_str()).collect::<Vec<_>>(), ["mail@prod"]);

    // Seen, and not allowed: that is said as it is.
    let request = v1::CancelDeploymentRequest { deployment: "mail@prod#1".to_owned(), reason: "x".to_owned() };
    let refused = postman.cancel(request).await.expect_err("a viewer there");
    assert_eq!(problem(&refused).code.to_string(), "HF-4003");
    assert!(refused.message().contains("mail@prod"), "{refused:?}");
    // A request id that somebody else used on a target that is not seen names nothing of it.
    let mut poster = world.operators(&world.granted("poster", &["deployer:mail@*"])).await;
    let reused = v1::SubmitRequest { file: mail(FILE), ..submission(1) };
    let refused = soon("an answer", poster.submit(reused)).await.expect_err("another request");
    let told = told(&refused);
    assert!(told.contains("HF-2010") && !told.contains("shop") && !told.contains("holdfast show"), "{told}");
    // A resource that belongs to somebody else says no more than that.
    let mut keeper = world.operators(&world.granted("keeper", &["operator:mail@*"])).await;
    let taken = |root: &str, name: &str| {
        format!(
            "schema = \"holdfast/v1\"\nname = \"{name}\"\nagents = {{ role = \"shop\" }}\n[[resource]]\nname = \"r\"\nadapter = \"release\"\nreach = \"shared\"\nwith = {{ root = \"{root}\" }}\n"
        )
    };
    admin.apply_target(v1::ApplyTargetRequest { file: taken("/srv/a", "shop@a") }).await.expect("declared");
    let refused = keeper.apply_target(v1::ApplyTargetRequest { file: taken("/srv/a", "mail@a") }).await;
    let told = self::told(&refused.expect_err("taken"));
    assert!(told.contains("HF-2041") && !told.contains("shop"), "{told}");
    keeper
        .apply_target(v1::ApplyTargetRequest { file: taken("/srv/b", "mail@a") })
        .await
        .expect("an operator declares");
    world.stop().await;
}
