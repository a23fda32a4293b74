//! Going back on real processes: what is put back, what is refused, what holds the target.

use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_proto::v1::{
    AttestedRunner, AttestedTarget, Contact, DecisionKind, Deployment, DeploymentState, RollbackBase, RunnerState,
};
use holdfast_tests::api::{Operator, code_of, label_of, state_of};
use holdfast_tests::cluster::{Cluster, LONG, Plan, SHORT};
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::{process, site};
use uuid::Uuid;

use crate::PROGRAM;
use crate::support::{SHOP, last_attempt, lost, submit};

const PREVIOUS: &str = "strategy = \"previous-revision\"\n";

/// Two agents and a shop that both reach.
struct Shop {
    cluster: Cluster,
    operator: Operator,
    root: PathBuf,
}

impl Shop {
    async fn open() -> Self {
        let cluster = Plan::new(PROGRAM).start().await;
        let operator = cluster.operator();
        let root = cluster.folder().join("shop");
        operator.apply_target(&files::release_target(SHOP, &root, "shared")).await;
        Self { cluster, operator, root }
    }

    /// v1 is there, v2 was lost in the middle of its switch, and a person attests that a part of it may be there.
    async fn left_in_part() -> (Self, String) {
        let mut shop = Self::open().await;
        shop.deploy("v1", PREVIOUS).await;
        shop.cluster.halt_before("web-01", "flip");
        let second = submit(&shop.operator, &shop.file("v2", SHORT, PREVIOUS)).await;
        let paused = shop.lost(&second).await;
        process::kill(paused);
        shop.operator.attest(&second, SHOP, AttestedRunner::Stopped, AttestedTarget::Partial).await.expect("attested");
        (shop, second)
    }

    /// A release with a check and that way back.
    fn file(&self, revision: &str, ttl: Duration, way: &str) -> String {
        let archive = site::archive(self.cluster.folder(), revision);
        let page = self.root.join("current/index.html");
        let file = DeploymentFile::new(SHOP, ttl).release("switch", &archive, revision);
        file.verify_file("page", &page, Duration::ZERO).rollback(way).text().to_owned()
    }

    async fn deploy(&self, revision: &str, way: &str) -> String {
        let label = submit(&self.operator, &self.file(revision, LONG, way)).await;
        let ended = self.operator.until_ended(&label).await;
        assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
        self.serves(revision);
        label
    }

    #[track_caller]
    fn serves(&self, revision: &str) {
        let page = std::fs::read_to_string(self.root.join("current/index.html")).unwrap_or_default();
        assert_eq!(page, site::index(revision));
    }

    /// Takes the folders of a release away, as somebody who tidies up would.
    fn forget(&self, revision: &str) {
        let is_of =
            |folder: &Path| std::fs::read_to_string(folder.join("index.html")).ok() == Some(site::index(revision));
        let releases = std::fs::read_dir(self.root.join("releases")).expect("there are releases");
        let mut folders = releases.map(|entry| entry.expect("read").path()).filter(|folder| is_of(folder)).peekable();
        assert!(folders.peek().is_some(), "a folder of {revision}");
        folders.for_each(|folder| std::fs::remove_dir_all(folder).expect("removed"));
    }

    async fn lost(&mut self, label: &str) -> i32 {
        lost(&mut self.cluster, &self.operator, label).await
    }
}

fn undoes(deployment: &Deployment) -> Vec<String> {
    deployment.rollback.clone().unwrap_or_default().undoes
}

fn base(deployment: &Deployment) -> RollbackBase {
    deployment.rollback.clone().unwrap_or_default().base()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_old_release_is_put_back_and_the_chain_is_shown_from_both_ends() {
    let shop = Shop::open().await;
    shop.deploy("v1", PREVIOUS).await;
    let second = shop.deploy("v2", PREVIOUS).await;
    let candidates = shop.operator.rollback_candidates(SHOP).await;
    let nearest = &candidates[0];
    assert_eq!((nearest.undoes.as_slice(), nearest.compatible), ([second.clone()].as_slice(), true), "{nearest:?}");
    assert_eq!((nearest.revisions[0].revision.as_str(), nearest.revisions[0].asked), ("v1", true));
    assert!(!candidates[1].compatible && !candidates[1].may_be_attested, "nothing was there before v1");

    let request = Uuid::now_v7();
    let asked = shop.operator.rollback(SHOP, "v1", request, "").await.expect("compatible");
    let again = shop.operator.rollback(SHOP, "v1", request, "").await.expect("the same request");
    assert_eq!(label_of(&asked), label_of(&again));
    let rollback = shop.operator.until_ended(&label_of(&asked)).await;
    assert_eq!(state_of(&rollback), DeploymentState::Succeeded, "{rollback:#?}");
    shop.serves("v1");
    assert_eq!((undoes(&rollback), base(&rollback)), (vec![second.clone()], RollbackBase::AtRest));
    let steps: Vec<_> = last_attempt(&rollback).steps.iter().map(|step| step.name.clone()).collect();
    assert_eq!(steps, ["restore-site", "page"]);
    let undone = shop.operator.deployment(&second).await;
    assert_eq!(undone.rolled_back_by, [label_of(&rollback)]);
    assert_eq!(state_of(&undone), DeploymentState::Succeeded, "no record of it is edited");
    shop.deploy("v3", PREVIOUS).await;
    let nearest = shop.operator.rollback_candidates(SHOP).await.remove(0);
    assert_eq!(nearest.revisions[0].revision, "v1", "v2 does not stand any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_release_that_is_gone_is_refused_before_anything_stops() {
    let shop = Shop::open().await;
    shop.deploy("v1", PREVIOUS).await;
    shop.deploy("v2", PREVIOUS).await;
    shop.forget("v1");
    let nearest = shop.operator.rollback_candidates(SHOP).await.remove(0);
    assert!(!nearest.compatible && nearest.why_not.contains("does not retain v1 any more"), "{nearest:?}");
    let refused = shop.operator.rollback(SHOP, "v1", Uuid::now_v7(), "I know better").await.expect_err("gone");
    assert_eq!(code_of(&refused), "HF-2066", "{refused:?}");
    assert!(shop.operator.target(SHOP).await.holder.is_none());
    shop.serves("v2");
    let refused = shop.operator.rollback(SHOP, "v9", Uuid::now_v7(), "").await.expect_err("never there");
    assert_eq!(code_of(&refused), "HF-2065", "{refused:?}");
}

/// Between the look and the permit somebody tidies up: the agent looks once more, and nothing is stopped or changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_release_that_goes_after_the_request_changes_nothing_either() {
    let mut shop = Shop::open().await;
    shop.deploy("v1", PREVIOUS).await;
    shop.deploy("v2", PREVIOUS).await;
    shop.cluster.agent("web-01").kill();
    shop.cluster.agent("web-02").kill();
    shop.operator.until_contact("web-01", Contact::Silent).await;
    shop.operator.until_contact("web-02", Contact::Silent).await;
    let nearest = shop.operator.rollback_candidates(SHOP).await.remove(0);
    assert!(nearest.compatible && !nearest.revisions[0].asked, "nobody could be asked: {nearest:?}");
    let asked = shop.operator.rollback(SHOP, "v1", Uuid::now_v7(), "").await.expect("nobody says otherwise");
    shop.forget("v1");
    shop.cluster.agent("web-01").start();
    let ended = shop.operator.until_ended(&label_of(&asked)).await;
    assert_eq!(state_of(&ended), DeploymentState::Failed, "{ended:#?}");
    assert!(ended.never_mutated && last_attempt(&ended).steps.iter().all(|step| step.permitted_at.is_none()));
    shop.serves("v2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outside_its_window_going_back_is_refused_and_a_person_may_attest_otherwise() {
    let shop = Shop::open().await;
    shop.deploy("v1", PREVIOUS).await;
    let way = format!("{PREVIOUS}compatible = {{ until = 2020-01-31T00:00:00Z }}\n");
    shop.deploy("v2", &way).await;
    let nearest = shop.operator.rollback_candidates(SHOP).await.remove(0);
    assert!(!nearest.compatible && nearest.may_be_attested && nearest.why_not.contains("2020-01-31"), "{nearest:?}");
    let refused = shop.operator.rollback(SHOP, "v1", Uuid::now_v7(), "").await.expect_err("over");
    assert_eq!(code_of(&refused), "HF-2066");
    let asked = shop.operator.rollback(SHOP, "v1", Uuid::now_v7(), "tried on a copy").await.expect("attested");
    let rollback = shop.operator.until_ended(&label_of(&asked)).await;
    assert_eq!(state_of(&rollback), DeploymentState::Succeeded);
    assert_eq!(rollback.rollback.unwrap_or_default().attested, "tried on a copy");
    shop.serves("v1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_release_is_rolled_back_on_a_decision_and_nobody_gets_in_between() {
    let mut shop = Shop::open().await;
    shop.deploy("v1", PREVIOUS).await;
    shop.cluster.halt_before("web-01", "record-applied");
    let second = submit(&shop.operator, &shop.file("v2", SHORT, PREVIOUS)).await;
    let paused = shop.lost(&second).await;
    let third = submit(&shop.operator, &shop.file("v3", LONG, PREVIOUS)).await;
    let early = shop.operator.decide(&second, SHOP, DecisionKind::Rollback).await.expect_err("the runner is not out");
    assert_eq!(code_of(&early), "HF-3002", "{early:?}");
    let busy = shop.operator.rollback(SHOP, "v1", Uuid::now_v7(), "").await.expect_err("the target is held");
    assert_eq!(code_of(&busy), "HF-2031", "{busy:?}");

    shop.operator.fence_off(&second, SHOP).await.expect("the other agent raises the fence");
    let checklist = shop.operator.checklist(&second).await;
    assert_eq!(checklist.runner(), RunnerState::FencedOff);
    let original = shop.operator.decide(&second, SHOP, DecisionKind::Rollback).await.expect("open now");
    assert_eq!(state_of(&original), DeploymentState::Failed);
    let [rollback] = original.rolled_back_by.as_slice() else { panic!("{:?}", original.rolled_back_by) };
    let rollback = shop.operator.until_ended(rollback).await;
    assert_eq!(state_of(&rollback), DeploymentState::Succeeded, "{rollback:#?}");
    assert_eq!((undoes(&rollback), base(&rollback)), (vec![second.clone()], RollbackBase::Known));
    // Whoever waited has its turn now, after the rollback and under a fence above it.
    let third = shop.operator.until_ended(&third).await;
    assert_eq!(state_of(&third), DeploymentState::Succeeded);
    assert!(last_attempt(&third).fence > last_attempt(&rollback).fence);
    shop.serves("v3");

    process::resume(paused);
    shop.cluster.line("web-01").heal().await;
    shop.operator.until_evidence(&second, "the late end", |one| one.body_json.contains("step_ended")).await;
    shop.serves("v3");
    assert_eq!(state_of(&shop.operator.deployment(&second).await), DeploymentState::Failed, "late words are evidence");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_top_of_what_nobody_knows_only_a_change_of_its_own_or_a_person_frees_the_target() {
    let (shop, second) = Shop::left_in_part().await;
    let original = shop.operator.decide(&second, SHOP, DecisionKind::Rollback).await.expect("open");
    let rollback = original.rolled_back_by[0].clone();
    let asked = shop.operator.deployment(&rollback).await;
    assert_eq!(base(&asked), RollbackBase::Unresolved);
    let ended = shop.operator.until_ended(&rollback).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
    shop.serves("v1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_that_is_stopped_on_top_of_what_nobody_knows_holds_the_target() {
    let (mut shop, second) = Shop::left_in_part().await;
    shop.cluster.agent("web-02").kill();
    shop.operator.until_contact("web-02", Contact::Silent).await;
    let original = shop.operator.decide(&second, SHOP, DecisionKind::Rollback).await.expect("open");
    let rollback = original.rolled_back_by[0].clone();
    shop.operator.cancel(&rollback).await;
    let held = shop.operator.until_state(&rollback, DeploymentState::Held).await;
    assert!(held.holds_target);
    let refused = shop.operator.decide(&rollback, SHOP, DecisionKind::AcceptCancelled).await.expect_err("nobody knows");
    assert_eq!(code_of(&refused), "HF-3002");
    shop.operator.attest(&rollback, SHOP, AttestedRunner::Stopped, AttestedTarget::Partial).await.expect("attested");
    let decided = shop.operator.decide(&rollback, SHOP, DecisionKind::AcceptCancelled).await.expect("a person's word");
    assert_eq!(state_of(&decided), DeploymentState::Cancelled);
    assert!(decided.never_mutated, "it began nothing itself");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rollback_that_is_lost_holds_the_target_like_anything_else() {
    let mut shop = Shop::open().await;
    shop.deploy("v1", PREVIOUS).await;
    let file = shop.file("v2", SHORT, PREVIOUS);
    let second = submit(&shop.operator, &file).await;
    shop.operator.until_ended(&second).await;
    shop.cluster.halt_before("web-01", "flip");
    let asked = shop.operator.rollback(SHOP, "v1", Uuid::now_v7(), "").await.expect("compatible");
    let rollback = label_of(&asked);
    let paused = shop.lost(&rollback).await;
    let held = shop.operator.target(SHOP).await;
    assert_eq!(held.holder.map(|holder| holder.label), Some(rollback.clone()));
    shop.operator.fence_off(&rollback, SHOP).await.expect("the other agent raises the fence");
    shop.operator.decide(&rollback, SHOP, DecisionKind::Retry).await.expect("not applied");
    let ended = shop.operator.until_ended(&rollback).await;
    assert_eq!((state_of(&ended), ended.attempts.len()), (DeploymentState::Succeeded, 2), "{ended:#?}");
    shop.serves("v1");
    process::resume(paused);
    shop.cluster.line("web-01").heal().await;
    shop.operator.until_evidence(&rollback, "the refusal", |one| one.body_json.contains("step_ended")).await;
    shop.serves("v1");
}

/// Somebody switches back by hand between the flip and the look after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_that_is_replaced_before_it_is_read_back_is_not_told_as_applied() {
    let mut shop = Shop::open().await;
    shop.deploy("v1", PREVIOUS).await;
    let current = shop.root.join("current");
    let before = std::fs::read_link(&current).expect("v1 is current");
    shop.cluster.halt_before("web-01", "record-applied");
    let second = submit(&shop.operator, &shop.file("v2", LONG, PREVIOUS)).await;
    let paused = shop.cluster.standing_still("web-01").await;
    shop.serves("v2");
    std::fs::remove_file(&current).expect("removed");
    std::os::unix::fs::symlink(before, &current).expect("switched by hand");
    process::resume(paused);
    let ended = shop.operator.until_ended(&second).await;
    assert_eq!(state_of(&ended), DeploymentState::Failed, "{ended:#?}");
    let step = &last_attempt(&ended).steps[0];
    assert!(step.maybe_partial && step.observed_revision == "v1", "{step:#?}");
    let later = submit(&shop.operator, &shop.file("v3", LONG, PREVIOUS)).await;
    let waits = shop.operator.until(&later, "to wait for a reading", |found| found.waiting.contains("unknown")).await;
    assert_eq!(state_of(&waits), DeploymentState::Queued, "nobody says what is there");
}
