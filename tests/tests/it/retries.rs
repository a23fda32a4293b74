//! What is tried again by itself, and what the next attempt finds at what it carries over: real processes.

use std::path::{Path, PathBuf};

use holdfast_proto::v1::{CarryState, DecisionKind, Deployment, DeploymentState, OperationState, StepRun, StepState};
use holdfast_tests::api::{Operator, state_of};
use holdfast_tests::cluster::{Cluster, LONG, Plan};
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::ledger::Ledger;
use holdfast_tests::{site, wait};

use crate::PROGRAM;
use crate::support::{BOX, SHOP, last_attempt, submit, with_box};

/// The target whose application can be read, beside a box that can't.
const APP: &str = "app@test";
/// Exit statuses are listed so.
const LISTED: &str = "transient_exit_codes = [75]\n";

/// A deployment of that target to which exit status 75 is worth another try.
fn listing(target: &str) -> DeploymentFile {
    DeploymentFile::new(target, LONG).retries(LISTED)
}

async fn retries(operator: &Operator, label: &str) -> Vec<(serde_json::Value, String)> {
    let events = operator.events(label).await.into_iter().filter(|event| event.kind == "retry_scheduled");
    events.map(|event| (serde_json::from_str(&event.body_json).expect("JSON"), event.sentence)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listed_exit_is_tried_again_each_time_as_an_event_until_the_tries_are_used_up() {
    let (cluster, operator, ledger) = with_box().await;
    let file = listing(BOX).mutates("change", "idempotent", &ledger.command_with(&["--exit", "75"]));
    let label = submit(&operator, file.text()).await;
    let ended = operator.until_ended(&label).await;
    assert_eq!((state_of(&ended), ended.attempts.len()), (DeploymentState::Failed, 3), "{ended:#?}");
    assert_eq!((ended.tries, ended.max_tries), (3, 3));
    ledger.check_begun(3);
    let retries = retries(&operator, &label).await;
    for (number, (body, sentence)) in (1..).zip(&retries) {
        let told = (&body["class"], &body["step"], &body["number"], &body["used"], &body["left"]);
        let expected = ("transient".into(), "change".into(), number.into(), number.into(), (3 - number).into());
        assert_eq!(told, (&expected.0, &expected.1, &expected.2, &expected.3, &expected.4), "{body}");
        assert_eq!(body["after"], ended.attempts[number - 1].id, "{body}");
        assert!(body["delay"].as_u64().is_some_and(|delay| delay <= 500), "{body}");
        assert!(sentence.contains(&format!("try {} of 3 follows in", number + 1)), "{sentence}");
    }
    assert_eq!(retries.len(), 2);
    let because = ended.summary.expect("a summary").because;
    assert!(because.ends_with("all 3 tries are used up"), "{because}");
    let shown = cluster.cli().run(&["show", &label]).await;
    assert!(shown.expect(0).stdout.contains("3 tries of 3 are used up"), "{}", shown.stdout);
    let events = cluster.cli().run(&["events", &label]).await;
    assert!(events.expect(0).stdout.contains("(transient): try 2 of 3 follows in"), "{}", events.stdout);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_listed_is_permanent_and_what_is_not_safe_to_repeat_is_held() {
    let (_cluster, operator, ledger) = with_box().await;
    let permanent = listing(BOX).mutates("change", "idempotent", &ledger.command_with(&["--exit", "74"]));
    let ended = operator.until_ended(&submit(&operator, permanent.text()).await).await;
    assert_eq!((state_of(&ended), ended.attempts.len()), (DeploymentState::Failed, 1), "{ended:#?}");
    ledger.check_begun(1);
    // It may be there in part, so the box is read before anybody goes on: nobody can, so a person says.
    let unread = submit(&operator, listing(BOX).mutates("change", "unsafe", &ledger.command()).text()).await;
    operator.until(&unread, "the revision to be unknown", |found| found.waiting.contains("is unknown")).await;
    assert_eq!(operator.cancel(&unread).await, holdfast_proto::v1::CancelAnswer::Cancelled);
}

/// `held`, each of its exits told, and what stands behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn held_is_left_by_a_decision_and_an_unknown_revision_by_an_attestation_and_the_queue_goes_on_in_order() {
    let (cluster, operator, ledger) = with_box().await;
    let exits = listing(BOX).mutates("change", "unsafe", &ledger.command_with(&["--exit", "75"]));
    let label = submit(&operator, exits.text()).await;
    let good = || listing(BOX).mutates("change", "unsafe", &ledger.command()).text().to_owned();
    let behind = [submit(&operator, &good()).await, submit(&operator, &good()).await];
    operator.until_state(&label, DeploymentState::Held).await;
    ledger.check_begun(1);

    let list = operator.checklist(&label).await;
    let open: Vec<DecisionKind> = list.options.iter().filter(|open| open.allowed).map(|open| open.kind()).collect();
    assert_eq!(open, [DecisionKind::AcceptFailed, DecisionKind::Note], "{list:#?}");
    assert!(list.options.iter().all(|option| option.allowed == option.why_not.is_empty()), "{list:#?}");
    let shown = cluster.cli().run(&["reconcile", "show", &label]).await;
    let text = &shown.expect(0).stdout;
    for word in ["accept-failed", "retry", "not safe to repeat", "abandon", "readmit"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let waited = cluster.cli().run(&["wait", &label, "--for", "settled"]).await;
    assert_eq!((waited.code, waited.stdout.as_str(), waited.stderr.as_str()), (12, "", ""), "without a word");
    let summary = cluster.cli().run(&["watch", &label]).await;
    assert_eq!(summary.code, 12, "{summary:?}");
    assert!(summary.stdout.contains(&format!("holdfast reconcile show {label}")), "{summary:?}");

    operator.decide(&label, BOX, DecisionKind::AcceptFailed).await.expect("open");
    operator.until(&behind[0], "it to wait for a reading", |found| found.waiting.contains("is unknown")).await;
    assert_eq!(state_of(&operator.deployment(&behind[1]).await), DeploymentState::Queued);
    ledger.check_begun(1);
    let attest = ["reconcile", "attest", &behind[0], "--runner", "stopped", "--target-state", "applied"];
    let more = ["--observed", "as-i-saw-it", "--how", "looked", "--confirm", BOX];
    cluster.cli().run(&[&attest[..], &more[..]].concat()).await.expect(0);
    for label in &behind {
        operator.until_state(label, DeploymentState::Succeeded).await;
    }
    ledger.check_begun(3);
    let mut reserved: Vec<_> = Vec::new();
    for label in [&label, &behind[0], &behind[1]] {
        reserved.push(operator.deployment(label).await.reserved_at.map(|at| (at.seconds, at.nanos)));
    }
    assert!(reserved.is_sorted(), "{reserved:?}");
}

/// An application in a file, which a command reads, and the box behind it.
struct App {
    cluster: Cluster,
    operator: Operator,
    ledger: Ledger,
    folder: PathBuf,
}

impl App {
    async fn new() -> Self {
        let cluster = Plan::new(PROGRAM).start().await;
        let (operator, ledger) = (cluster.operator(), cluster.ledger("box"));
        let folder = cluster.folder().join("app");
        std::fs::create_dir(&folder).expect("made");
        let slow = "while test -e slow; do sleep 0.02; done";
        let look = format!("cd {} && echo look >> looks; {slow}; test ! -e broken && cat revision", folder.display());
        let target = format!(
            "{}\n[[resource]]\nname = \"app\"\nadapter = \"command\"\nreach = \"shared\"\nwith = {{ inspect = {:?}, outlives = false }}\n",
            files::command_target(APP, false),
            ["sh", "-c", &look]
        );
        operator.apply_target(&target).await;
        Self { cluster, operator, ledger, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("it is there").trim().to_owned()
    }

    /// The application is changed, then the box waits for a gate and exits with 75 unless it is told otherwise.
    fn file(&self, retry: &str) -> String {
        let folder = self.folder.display();
        let change =
            ["sh".to_owned(), "-c".to_owned(), format!("echo v2 > {folder}/revision; echo run >> {folder}/runs")];
        let exits = format!("test -e {folder}/well || exit 75");
        let mut gated = self.ledger.gated("go");
        gated.splice(0..0, ["sh", "-c", &format!("\"$0\" \"$@\"; {exits}")].map(str::to_owned));
        let app =
            format!("resource = \"app\"\nretry = \"{retry}\"\nrun = {change:?}\nwith = {{ revision = \"v2\" }}\n");
        let more = format!("resource = \"box\"\nretry = \"idempotent\"\nrun = {gated:?}\n");
        listing(APP).step("app", &app).step("more", &more).text().to_owned()
    }

    /// The first attempt has changed the application, and its second step runs.
    async fn begun(&self, file: &str) -> String {
        let label = submit(&self.operator, file).await;
        self.ledger.until_begun(1).await;
        assert_eq!(self.read("revision"), "v2");
        label
    }

    fn runs(&self) -> usize {
        self.read("runs").lines().count()
    }
}

#[track_caller]
fn step<'a>(deployment: &'a Deployment, name: &str) -> &'a StepRun {
    last_attempt(deployment).steps.iter().find(|step| step.name == name).expect("it has the step")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_carried_over_is_read_again_and_not_run_again() {
    let app = App::new().await;
    let label = app.begun(&app.file("unsafe")).await;
    app.ledger.open_gate("go");
    app.operator.until(&label, "the second attempt", |found| found.attempts.len() > 1).await;
    std::fs::write(app.path("well"), "").expect("written");
    let ended = app.operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
    let carried = step(&ended, "app");
    let seen = (carried.state(), carried.carry(), carried.observed_revision.as_str());
    assert_eq!(seen, (StepState::Carried, CarryState::AsLeft, "v2"));
    assert_eq!(app.runs(), 1);
    let events: Vec<String> = app.operator.events(&label).await.into_iter().map(|event| event.sentence).collect();
    let read =
        events.iter().position(|text| text.contains("what step app had left was read again: applied, revision v2"));
    let permits: Vec<usize> = (0..events.len()).filter(|at| events[*at].contains("step more is permitted")).collect();
    assert!(read > Some(permits[0]) && read < Some(permits[1]), "{events:#?}");
    let shown = app.cluster.cli().run(&["show", &label]).await;
    assert!(shown.expect(0).stdout.contains("read again: as it was left"), "{}", shown.stdout);
}

/// F14 between two attempts: noticed, shown, and not overwritten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hand_edit_between_two_attempts_is_noticed_and_held_until_a_person_decides() {
    let app = App::new().await;
    let label = app.begun(&app.file("idempotent")).await;
    std::fs::write(app.path("revision"), "by-hand\n").expect("written");
    app.ledger.open_gate("go");
    let held = app.operator.until_state(&label, DeploymentState::Held).await;
    let carried = step(&held, "app");
    let seen = (carried.state(), carried.carry(), carried.observed_revision.as_str());
    assert_eq!(seen, (StepState::Carried, CarryState::Differs, "by-hand"), "{held:#?}");
    assert_eq!((step(&held, "more").state(), held.attempts.len()), (StepState::Pending, 2));
    assert_eq!((app.read("revision").as_str(), app.runs()), ("by-hand", 1));
    app.ledger.check_begun(1);
    let shown = app.cluster.cli().run(&["show", &label]).await;
    let text = &shown.expect(0).stdout;
    assert!(text.contains("read again: somebody else has changed it"), "{text}");
    assert!(text.contains("applied, and since changed by somebody else: app"), "{text}");

    let list = app.operator.checklist(&label).await;
    assert_eq!((list.open_steps[0].step.as_str(), list.open_steps[0].state()), ("app", OperationState::Unknown));
    let looked = app.operator.inspect(&label).await.expect("it can be read");
    assert!(looked.sentence.contains("by-hand"), "{}", looked.sentence);
    std::fs::write(app.path("well"), "").expect("written");
    app.operator.decide(&label, APP, DecisionKind::Retry).await.expect("it is safe to repeat");
    let ended = app.operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
    assert_eq!((app.read("revision").as_str(), app.runs()), ("v2", 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_given_up_over_a_hand_edit_leaves_the_revision_unknown_and_the_queue_waiting() {
    let app = App::new().await;
    let file = app.file("unsafe");
    let label = app.begun(&file).await;
    let behind = submit(&app.operator, &file).await;
    std::fs::write(app.path("revision"), "by-hand\n").expect("written");
    app.ledger.open_gate("go");
    app.operator.until_state(&label, DeploymentState::Held).await;
    let refused = app.operator.decide(&label, APP, DecisionKind::Retry).await.expect_err("not safe to repeat");
    assert!(refused.message().contains("not safe to repeat"), "{refused}");
    app.operator.inspect(&label).await.expect("it can be read");
    let attest = ["reconcile", "attest", &label, "--runner", "stopped", "--target-state", "partial"];
    let more = ["--observed", "by-hand", "--how", "looked", "--confirm", APP];
    app.cluster.cli().run(&[&attest[..], &more[..]].concat()).await.expect(0);
    app.operator.decide(&label, APP, DecisionKind::Abandon).await.expect("attested");
    app.operator.until(&behind, "it to wait for a reading", |found| found.waiting.contains("is unknown")).await;
    assert_eq!((app.read("revision").as_str(), app.runs()), ("by-hand", 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_look_that_fails_is_tried_again_and_changes_nothing() {
    let app = App::new().await;
    let file = app.file("unsafe").replace("max_attempts = 3", "max_attempts = 50");
    let label = app.begun(&file).await;
    std::fs::write(app.path("broken"), "").expect("written");
    app.ledger.open_gate("go");
    app.operator
        .until(&label, "a look to fail", |found| {
            found.attempts.iter().any(|attempt| attempt.steps[0].carry() == CarryState::Failed)
        })
        .await;
    std::fs::write(app.path("well"), "").expect("written");
    std::fs::remove_file(app.path("broken")).expect("removed");
    let ended = app.operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
    assert_eq!((step(&ended, "app").carry(), app.runs()), (CarryState::AsLeft, 1));
    let retries = retries(&app.operator, &label).await;
    assert!(retries.iter().any(|(body, _)| body["class"] == "infrastructure" && body["step"] == "app"), "{retries:?}");
    app.ledger.check_begun(2);
}

/// The same at a release: `current` is pointed elsewhere by hand, between two attempts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_that_was_switched_by_hand_between_two_attempts_is_held() {
    let cluster = Plan::new(PROGRAM).agents(&["web-01"]).start().await;
    let (operator, ledger) = (cluster.operator(), cluster.ledger("box"));
    let root = cluster.folder().join("shop");
    let boxed =
        "\n[[resource]]\nname = \"box\"\nadapter = \"command\"\nreach = \"shared\"\nwith = { outlives = false }\n";
    operator.apply_target(&(files::release_target(SHOP, &root, "host") + boxed)).await;
    let archive = site::archive(cluster.folder(), "v1");
    let keys = |argv: &[String]| format!("resource = \"box\"\nretry = \"idempotent\"\nrun = {argv:?}\n");
    let mut gated = ledger.gated("go");
    gated.splice(0..0, ["sh", "-c", "\"$0\" \"$@\"; exit 75"].map(str::to_owned));
    let release = format!(
        "resource = \"site\"\nretry = \"idempotent\"\nwith = {{ archive = {:?}, sha256 = \"{}\", revision = \"v1\" }}\n",
        archive.path, archive.sha256
    );
    let file = listing(SHOP).step("switch", &release).step("more", &keys(&gated)).text().to_owned();
    let label = submit(&operator, &file).await;
    ledger.until_begun(1).await;
    by_hand(&root);
    ledger.open_gate("go");
    let held = operator.until_state(&label, DeploymentState::Held).await;
    let carried = step(&held, "switch");
    assert_eq!((carried.carry(), carried.observed_revision.as_str()), (CarryState::Differs, ""), "{held:#?}");
    assert_eq!(std::fs::read_to_string(root.join("current/index.html")).expect("it is there"), "by hand");
    ledger.check_begun(1);
}

fn by_hand(root: &Path) {
    let own = root.join("own");
    std::fs::create_dir(&own).expect("made");
    std::fs::write(own.join("index.html"), "by hand").expect("written");
    let link = root.join("by-hand");
    std::os::unix::fs::symlink(&own, &link).expect("made");
    std::fs::rename(&link, root.join("current")).expect("switched");
}

/// An agent that dies while it looks loses nothing: its next life looks anew, in the same attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_killed_while_it_looks_looks_anew_and_nothing_runs_twice() {
    let mut app = App::new().await;
    let label = app.begun(&app.file("unsafe")).await;
    let looks = app.path("looks");
    let looks = || std::fs::read_to_string(&looks).map_or(0, |text| text.lines().count());
    let before = looks();
    std::fs::write(app.path("slow"), "").expect("written");
    app.ledger.open_gate("go");
    wait::until_true("it to look again", wait::SOON, || looks() > before).await;
    std::fs::write(app.path("well"), "").expect("written");
    let second = last_attempt(&app.operator.deployment(&label).await).clone();
    app.cluster.agent(&second.agent).kill();
    app.cluster.agent(&second.agent).start();
    std::fs::remove_file(app.path("slow")).expect("removed");
    let ended = app.operator.until_ended(&label).await;
    assert_eq!((state_of(&ended), ended.attempts.len()), (DeploymentState::Succeeded, 2), "{ended:#?}");
    assert_eq!((step(&ended, "app").carry(), app.runs()), (CarryState::AsLeft, 1));
    app.ledger.check_begun(2);
}
