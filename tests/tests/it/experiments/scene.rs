//! A deployment of four steps, one of which comes to a point and stands there.
//!
//! | step | does | can stand |
//! | --- | --- | --- |
//! | `switch` | puts a release in place | before and after its flip, and around its permit |
//! | `settle` | looks, and changes nothing | while it looks |
//! | `migrate` | changes a box; nobody can read it back; `unsafe` | before and after its effect, and around its permit |
//! | `healthy` | a health check | while it looks |
//!
//! `web-01` is the agent that comes to the point. `web-02` is started when it stands there, and reaches both resources.

use std::path::PathBuf;
use std::time::Duration;

use holdfast_agent::crash::CrashPoint;
use holdfast_proto::v1::{
    AttestedRunner, AttestedTarget, Contact, DecisionKind, Deployment, RunnerState, StepRun, StepState,
};
use holdfast_tests::api::{Operator, code_of, id_of, is_terminal, state_of};
use holdfast_tests::cluster::{Cluster, Plan};
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::ledger::Ledger;
use holdfast_tests::{process, releases, site, wait};

use super::table::{Point, Step};
use crate::PROGRAM;
use crate::crash_case::is_settled;
use crate::support::submit;

/// The agent that is hit.
pub(super) const HIT: &str = "web-01";
/// The one that reaches everything too.
pub(super) const OTHER: &str = "web-02";
const TARGET: &str = "shop@prod";
const VERSION: &str = "v1";
const GATE: &str = "go";

/// What the command is like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    /// Its class of retry.
    pub(super) retry: &'static str,
    /// Its options: see [`holdfast_tests::ledger`].
    pub(super) options: &'static [&'static str],
}

impl Command {
    /// May not be repeated.
    pub(super) fn once_only() -> Self {
        Self { retry: "unsafe", options: &[] }
    }

    /// Does nothing where its operation was applied.
    pub(super) fn idempotent() -> Self {
        Self { retry: "idempotent", options: &["--once"] }
    }
}

/// A deployment under way.
pub(super) struct Scene {
    pub(super) cluster: Cluster,
    pub(super) operator: Operator,
    pub(super) step: Step,
    point: Point,
    label: String,
    id: String,
}

impl Step {
    /// Where it stands among the steps.
    pub(super) fn index(self) -> usize {
        match self {
            Step::Release => 0,
            Step::Look => 1,
            Step::Command => 2,
            Step::Check => 3,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Step::Release => "switch",
            Step::Look => "settle",
            Step::Command => "migrate",
            Step::Check => "healthy",
        }
    }

    /// How many permits were asked for when its own is.
    fn permits(self) -> usize {
        match self {
            Step::Release | Step::Look => 1,
            Step::Command | Step::Check => 2,
        }
    }
}

impl Scene {
    /// Starts it, with a seeded fault where one is named, and returns when the step stands at the point.
    pub(super) async fn at(step: Step, point: Point, ttl: Duration, command: Command, bug: Option<&str>) -> Self {
        let mut plan = Plan::new(PROGRAM).agents(&[HIT, OTHER]);
        if let Some(bug) = bug {
            plan = plan.coordinator_environment("HOLDFAST_BUG", bug).agent_environment("HOLDFAST_BUG", bug);
        }
        let mut cluster = plan.prepare().await;
        cluster.start_coordinator().await;
        let operator = cluster.operator();
        operator.apply_target(&target(&cluster)).await;
        arm(&mut cluster, step, point);
        cluster.agent(HIT).start();
        let label = submit(&operator, &file(&cluster, step, point, ttl, command)).await;
        let id = id_of(&operator.deployment(&label).await);
        let mut scene = Self { cluster, operator, step, point, label, id };
        scene.until_it_stands().await;
        scene.cluster.agent(OTHER).start();
        scene
    }

    async fn until_it_stands(&mut self) {
        match self.point {
            Point::BeforePermit | Point::Permitted => {
                let (pid, note) = (self.cluster.agent(HIT).pid(), note(&self.cluster));
                let stands = || note.exists() && process::state_of(pid) == Some('T');
                wait::until_true("the agent to stand at its permit", wait::SOON, stands).await;
            }
            Point::Begun | Point::EffectDone => {
                self.until_step("have begun", |step| step.started.is_some()).await;
                let _pid = self.process().await;
            }
            Point::Reported => {
                self.until_step("have ended", |step| step.state() == StepState::Applied).await;
                match self.step {
                    Step::Release => drop(ledger_of(&self.cluster, Step::Look).until_begun(1).await),
                    Step::Command => drop(ledger_of(&self.cluster, Step::Check).until_begun(1).await),
                    Step::Look | Step::Check => drop(self.operator.until_ended(&self.label).await),
                }
            }
        }
    }

    async fn until_step(&self, what: &str, is_so: impl Fn(&StepRun) -> bool) {
        let index = self.step.index();
        let what = format!("step {} to {what}", self.step.name());
        let of = |found: &Deployment| found.attempts.first().is_some_and(|attempt| is_so(&attempt.steps[index]));
        self.operator.until(&self.label, &what, of).await;
    }

    /// The step's process, which stands where it should.
    pub(super) async fn process(&self) -> i32 {
        wait::until("the step's process to stand there", wait::SOON, async || match self.step {
            Step::Release => self.cluster.still(HIT).first().copied().ok_or_else(|| "none is stopped".to_owned()),
            Step::Look | Step::Command | Step::Check => {
                let last = ledger_of(&self.cluster, self.step).intervals().pop().ok_or("none has begun")?;
                let is_there = self.point != Point::EffectDone || last.ended.is_some();
                if is_there {
                    i32::try_from(last.pid).map_err(|error| error.to_string())
                } else {
                    Err("no end".to_owned())
                }
            }
        })
        .await
    }

    /// Everything goes on, now and later.
    pub(super) fn let_go(&self) {
        for step in [Step::Look, Step::Command, Step::Check] {
            ledger_of(&self.cluster, step).open_gate(GATE);
        }
        self.cluster.still(HIT).into_iter().for_each(process::resume);
    }

    /// Its label.
    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// The deployment, now.
    pub(super) async fn deployment(&self) -> Deployment {
        self.operator.deployment(&self.label).await
    }

    /// Waits until the attempt that was hit is over, or the deployment is.
    pub(super) async fn until_lapsed(&self) -> Deployment {
        use holdfast_proto::v1::AttemptState::{Offered, Running};
        self.operator
            .until(&self.label, "the lease to lapse", |found| {
                let over = found.attempts.first().is_some_and(|one| !matches!(one.state(), Offered | Running));
                over || is_terminal(state_of(found))
            })
            .await
    }

    /// Waits until no timer changes it. What stands is let go, where that is said.
    pub(super) async fn settled(&self, let_go: bool) -> Deployment {
        wait::until("one true state", wait::SOON, async || {
            if let_go {
                self.let_go();
            }
            match self.operator.try_deployment(&self.label).await {
                Ok(found) if is_settled(&found) => Ok(found),
                Ok(found) => Err(format!("{found:#?}")),
                Err(status) => Err(status.to_string()),
            }
        })
        .await
    }

    /// Waits until it is terminal.
    pub(super) async fn ended(&self) -> Deployment {
        wait::until("its end", wait::SOON, async || {
            self.let_go();
            match self.operator.try_deployment(&self.label).await {
                Ok(found) if is_terminal(state_of(&found)) => Ok(found),
                Ok(found) => Err(format!("{found:#?}")),
                Err(status) => Err(status.to_string()),
            }
        })
        .await
    }

    /// A person asks for the resource to be raised. The policy takes it from there.
    pub(super) async fn ask(&self) {
        self.operator.until_contact(OTHER, Contact::Connected).await;
        let _raised = self.operator.fence_off(&self.label, TARGET).await.expect("the other agent raises the fence");
    }

    /// Waits until the agent's own journal has said that the process is over.
    pub(super) async fn until_stopped(&self) {
        wait::until("the runner to be out", wait::SOON, async || {
            let checklist = self.operator.checklist(&self.label).await;
            let is_out = checklist.runner() == RunnerState::Stopped;
            if is_out { Ok(()) } else { Err(checklist.runner_because) }
        })
        .await;
    }

    /// That decision is not open.
    pub(super) async fn refused(&self, kind: DecisionKind) {
        let refused = self.operator.decide(&self.label, TARGET, kind).await.expect_err("nothing is proven");
        assert!(code_of(&refused).starts_with("HF-"), "{refused:?}");
    }

    /// A person says what they saw, as soon as the runner is out, and decides as soon as that is open.
    pub(super) async fn decide(&self, attests: Option<AttestedTarget>, kind: DecisionKind) {
        if let Some(seen) = attests {
            self.until_stopped().await;
            let attested = self.operator.attest(&self.label, TARGET, AttestedRunner::Stopped, seen).await;
            let _evidence = attested.expect("attested");
        }
        wait::until("the decision to be open", wait::SOON, async || {
            let decided = self.operator.decide(&self.label, TARGET, kind).await;
            decided.map(drop).map_err(|status| status.to_string())
        })
        .await;
    }

    /// Waits until the step had its effect so often: a process that was cut off is on its way without anybody hearing of it.
    pub(super) async fn until_effects(&self, count: usize) {
        wait::until_true("its effect", wait::SOON, || self.effects(self.step) >= count).await;
    }

    /// How often the step had its effect, by the target's own ledger. What changes nothing counts as what it should be.
    pub(super) fn effects(&self, step: Step) -> usize {
        match step {
            Step::Release => releases::effects(&root(&self.cluster), &self.id, step.name()),
            Step::Command => ledger_of(&self.cluster, Step::Command).effects(&format!("{}/{}", self.id, step.name())),
            Step::Look | Step::Check => 1,
        }
    }

    /// The ledger of the box.
    pub(super) fn ledger(&self) -> Ledger {
        ledger_of(&self.cluster, Step::Command)
    }

    /// What must hold at the end: each changing step had its effect so often, no two at once, nothing is held, and all that is
    /// stored follows from its events.
    pub(super) async fn check(mut self, effects: usize) {
        assert_eq!((self.effects(Step::Release), self.effects(Step::Command)), (1, effects));
        let index = std::fs::read_to_string(root(&self.cluster).join("current/index.html"));
        assert_eq!(index.expect("it is there"), site::index(VERSION));
        self.ledger().check();
        let target = self.operator.target(TARGET).await;
        assert!(target.holder.is_none(), "{target:?}");
        assert!(self.cluster.coordinator().terminate().await.success());
        let _said = self.cluster.coordinator().run(&["verify"]);
    }
}

/// What makes the first agent, or its release, stand at the point.
fn arm(cluster: &mut Cluster, step: Step, point: Point) {
    let note = note(cluster).to_str().expect("plain text").to_owned();
    let environment = &mut cluster.agent(HIT).settings().environment;
    let at_permit = |name: CrashPoint| format!("{}:{}=stop", name.name(), step.permits());
    let (name, value) = match (point, step) {
        (Point::BeforePermit, _) => ("HOLDFAST_CRASH", at_permit(CrashPoint::BeforePermitRequest)),
        (Point::Permitted, _) => ("HOLDFAST_CRASH", at_permit(CrashPoint::PermitHeard)),
        (Point::Begun, Step::Release) => ("HOLDFAST_HALT", "apply.flip=stop".to_owned()),
        (Point::EffectDone, Step::Release) => ("HOLDFAST_HALT", "apply.record-applied=stop".to_owned()),
        (Point::Begun | Point::EffectDone, Step::Look | Step::Command | Step::Check) | (Point::Reported, _) => return,
    };
    environment.insert(name.to_owned(), value);
    environment.insert("HOLDFAST_CRASH_NOTE".to_owned(), note);
}

/// Where an agent says that it came to the point.
fn note(cluster: &Cluster) -> PathBuf {
    cluster.folder().join("point.note")
}

fn root(cluster: &Cluster) -> PathBuf {
    cluster.folder().join("shop")
}

fn ledger_of(cluster: &Cluster, step: Step) -> Ledger {
    cluster.ledger(step.name())
}

/// Its policy decides when a person asks for a look or a raise, and not before.
fn target(cluster: &Cluster) -> String {
    let site = files::release_target(TARGET, &root(cluster), "shared");
    let site = files::decided_by("when-proven", Duration::from_secs(3600), &site);
    format!(
        r#"{site}
[[resource]]
name = "box"
adapter = "command"
reach = "shared"
with = {{ outlives = false }}
"#
    )
}

fn file(cluster: &Cluster, step: Step, point: Point, ttl: Duration, command: Command) -> String {
    let site::Archive { path, sha256 } = site::archive(cluster.folder(), VERSION);
    let stands = |one: Step| {
        let ledger = ledger_of(cluster, one);
        let waits = match (step, point) {
            (Step::Release, Point::Reported) => one == Step::Look,
            (Step::Command, Point::Reported) => one == Step::Check,
            (_, Point::Begun) => one == step,
            (_, Point::BeforePermit | Point::Permitted | Point::EffectDone | Point::Reported) => false,
        };
        let lingers = (step, point) == (one, Point::EffectDone);
        if waits {
            ledger.gated(GATE)
        } else if lingers {
            ledger.lingering(GATE)
        } else {
            ledger.command()
        }
    };
    let Command { retry, options } = command;
    let more = options.iter().map(|option| (*option).to_owned());
    let migrate: Vec<String> = stands(Step::Command).into_iter().chain(more).collect();
    let with = format!("{{ archive = {path:?}, sha256 = \"{sha256}\", revision = \"{VERSION}\" }}");
    DeploymentFile::new(TARGET, ttl)
        .step("switch", &format!("resource = \"site\"\nretry = \"idempotent\"\nwith = {with}\n"))
        .looks("settle", &stands(Step::Look))
        .step("migrate", &format!("resource = \"box\"\nretry = \"{retry}\"\nrun = {migrate:?}\n"))
        .verify(&format!(
            "name = \"healthy\"\ncommand = {:?}\nfor = \"100ms\"\ninterval = \"100ms\"\ntimeout = \"1m\"\n",
            stands(Step::Check)
        ))
        .text()
        .to_owned()
}
