//! The driver's hands: threads that wait for shims and look at resources, and tell the driver what came of it.
//!
//! ```text
//!   launch ─▶ shim starts ─▶ Started ─▶ watch ─▶ exit record, or nobody saw it ─▶ look at the resource ─▶ Ended
//!                └─ refused ─▶ tombstone ─▶ Tombstoned
//! ```
//!
//! Nothing here decides: what an ending means is told by the outcome table in the core.

mod look;
mod prune;
mod system;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use holdfast_agent_core::decide::Refused;
use holdfast_agent_core::outcome::{self, Ending};
use holdfast_agent_core::work::{Assignment, Boot};
use holdfast_common::adapter::{Capability, Enforce, Inspect};
use holdfast_common::id::{AttemptId, OperationId, Revision, StepName};
use holdfast_common::outcome::{Exit, FailureClass, StepEnd};
use holdfast_common::spec::{Probe, ResourceAdapter, ResourceSpec, StepBody, StepEffect, StepSpec};
use holdfast_common::text::bounded;
use holdfast_common::time::Millis;

use crate::adapters::command::{Context, environment};
use crate::adapters::exit;
use crate::adapters::release::{self, ApplySpec, Content};
use crate::archive::{self, Archive, Limits};
use crate::boottime::BootTime;
use crate::bugs::{self, Bug};
use crate::checks;
use crate::config;
use crate::crash::{self, CrashPoint};
use crate::driver::{Event, HandEvent, Hands, Sender, Told};
use crate::fetch::Fetcher;
use crate::logs::{Output, Uploader};
use crate::places::{Places, StepFolder};
use crate::policy::{Grant, Host, Refusal, of_user};
use crate::room::HostRoom;
use crate::secrets::{self, Redactor, Sources};
use crate::session::Inquiry;
use crate::supervisor::{Body, Cgroups, ExitRecord, Known, Launch, Sight, Supervisor, Survivor, Tombstone};

pub(crate) use look::{outside_leases, read_command};
pub use prune::prune;
pub(crate) use system::{About, Desk, Failed, environment as call_environment, shown};

/// Bound of each output file of a step.
pub(crate) const OUTPUT_BYTES: u64 = 16 * 1024 * 1024;
/// How long the shim waits for the target's lock: the shim of the step before may be on its last lines.
const LOCK_WAIT: Millis = Millis(2_000);
/// How long output is waited for after the body ended.
const DRAIN: Millis = Millis(2_000);
/// Longest refusal of our own adapter that goes into a report.
const REFUSAL_BYTES: usize = 500;
/// Processes that a report names of those which a step left running.
const SURVIVORS_NAMED: usize = 5;
/// What is told of a stop that reached a process.
const SIGNALLED: &str = "SIGTERM was sent to the step's process group";
/// Between two tries of what nothing goes on without.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// How long one look at a step's records waits for it to settle.
const WATCH: Duration = Duration::from_secs(5);

/// The real hands.
#[derive(Debug)]
pub struct Workshop {
    bench: Arc<Bench>,
    /// Steps that a stop was asked for: it is asked once.
    stopping: BTreeSet<(AttemptId, StepName)>,
}

/// What every thread of the workshop uses.
#[derive(Debug)]
struct Bench {
    places: Places,
    supervisor: Supervisor,
    events: Sender,
    logs: Uploader,
    fetcher: Fetcher,
    room: Arc<HostRoom>,
    host: Host,
    surroundings: Surroundings,
}

/// What this host puts around each step.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Where its cgroup is.
    pub cgroups: Cgroups,
    /// What a command or a check may use.
    pub limits: config::Limits,
    /// The machine's fingerprint; empty where it can't be told.
    pub machine: String,
    /// How long its folder stays.
    pub keep: config::Keep,
}

/// One step of one attempt, for a thread of its own.
#[derive(Clone, Debug)]
struct Job {
    assignment: Assignment,
    step: StepSpec,
}

impl Workshop {
    /// In that state folder, which the journal has locked.
    pub fn new(
        places: Places,
        events: Sender,
        logs: Uploader,
        fetcher: Fetcher,
        room: Arc<HostRoom>,
        host: Host,
        surroundings: Surroundings,
    ) -> io::Result<Self> {
        places.prepare()?;
        let supervisor = Supervisor::default().on_machine(&surroundings.machine);
        let bench = Bench { places, supervisor, events, logs, fetcher, room, host, surroundings };
        Ok(Self { bench: Arc::new(bench), stopping: BTreeSet::new() })
    }

    fn spawn(&self, name: &str, work: impl FnOnce(&Bench) + Send + 'static) {
        let bench = Arc::clone(&self.bench);
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&bench));
        if let Err(error) = spawned {
            // Without a thread nothing of the step can be known: only a restart can find out.
            tracing::error!(%error, "could not make a thread: stopping");
            std::process::abort();
        }
    }
}

impl Hands for Workshop {
    fn examine(&mut self, assignment: &Assignment, step: &StepSpec) {
        let job = Job { assignment: assignment.clone(), step: step.clone() };
        self.spawn("archive", move |bench| bench.examine(&job));
    }

    fn reread(&mut self, assignment: &Assignment, step: &StepSpec) {
        let job = Job { assignment: assignment.clone(), step: step.clone() };
        self.spawn("reread", move |bench| {
            let found = look::again(&job, bench);
            bench.tell(HandEvent::Reread(job.attempt(), job.step.name.clone(), found));
        });
    }

    fn launch(&mut self, assignment: &Assignment, step: &StepSpec, not_after: Option<Boot>) {
        let job = Job { assignment: assignment.clone(), step: step.clone() };
        self.spawn("step", move |bench| bench.launch(&job, not_after));
    }

    fn stop(&mut self, assignment: &Assignment, step: &StepSpec) {
        let attempt = assignment.folder();
        if self.stopping.insert((attempt, step.name.clone())) {
            let (grace, step) = (assignment.grace, step.name.clone());
            self.spawn("stop", move |bench| bench.stop(attempt, &step, grace));
        }
    }

    fn tombstone(&mut self, assignment: &Assignment, step: &StepSpec) {
        let job = Job { assignment: assignment.clone(), step: step.clone() };
        self.spawn("tombstone", move |bench| bench.bury(&job, "its permit was not used"));
    }

    fn survey(&mut self, assignment: &Assignment, step: &StepSpec) {
        let job = Job { assignment: assignment.clone(), step: step.clone() };
        self.spawn("survey", move |bench| bench.survey(&job));
    }

    fn prune(&mut self, needed: BTreeSet<AttemptId>) {
        self.spawn("prune", move |bench| bench.prune(needed));
    }

    fn inquire(&mut self, inquiry: Inquiry) {
        self.spawn("inquiry", move |bench| {
            crash::point(CrashPoint::BeforeInquiry);
            let finding = look::answer(&inquiry, bench);
            crash::point(CrashPoint::AfterInquiry);
            bench.tell(HandEvent::Inquired(inquiry.id, finding));
        });
    }
}

impl Bench {
    fn tell(&self, event: HandEvent) {
        let _driver_stopped = self.events.send(Event::Hand(event));
    }

    /// Brings the archive and looks at it. The shim looks again when it unpacks: what was seen here may have been changed since.
    fn examine(&self, job: &Job) {
        let allowed = self.host.archive(&job.assignment, &job.step);
        let refused = match (&job.step.body, allowed) {
            (_, Err(refusal)) => Some(Refused { class: FailureClass::Permanent, detail: refusal.to_string() }),
            (StepBody::Release { .. }, Ok(())) => self.brought(job).err(),
            (StepBody::Restore, Ok(())) => job.all_retained().err(),
            (StepBody::System(_), Ok(())) => self.brought(job).and_then(|()| job.examine_system(self)).err(),
            (StepBody::Command { .. } | StepBody::Check(_), Ok(())) => None,
        };
        self.tell(HandEvent::Examined(job.attempt(), job.step.name.clone(), refused));
    }

    /// Where the step needs an archive, it is there and is the one.
    fn brought(&self, job: &Job) -> Result<(), Refused> {
        let Some((archive, sha256)) = job.step.body.archive() else { return Ok(()) };
        let refused = |is_final: bool, error: &dyn std::error::Error| Refused {
            class: if is_final { FailureClass::Permanent } else { FailureClass::Infrastructure },
            detail: crate::internal::with_causes(error),
        };
        self.fetcher
            .bring(job.assignment.claim, &job.step.name, archive, sha256)
            .map_err(|error| refused(error.is_final(), &error))?;
        let path = Fetcher::path(&self.places, job.attempt(), archive, sha256);
        Archive::check(&path, sha256, Limits::default()).map(drop).map_err(|error| {
            let is_fetched = path.starts_with(self.places.archives_of(job.attempt()));
            if is_fetched && matches!(error, archive::Error::Digest { .. }) {
                self.fetcher.distrust(job.attempt(), sha256);
            }
            refused(error.is_refusal(), &error)
        })
    }

    fn launch(&self, job: &Job, not_after: Option<Boot>) {
        let grant = match self.host.step(&job.assignment, &job.step, &self.places.work(job.attempt())) {
            Ok(grant) => grant,
            Err(refusal) => return self.refused(job, &refusal),
        };
        let started = self.prepare(job, not_after, grant).and_then(|(folder, launch)| {
            self.supervisor.start(&folder, &launch).map_err(|error| crate::internal::with_causes(&error))
        });
        match started {
            Ok(()) => {
                self.tell(HandEvent::Started(job.attempt(), job.step.name.clone()));
                self.watch(job);
            }
            Err(why) => {
                tracing::warn!(attempt = %job.attempt(), step = %job.step.name, why, "the step was not seen to start");
                self.bury(job, &why);
            }
        }
    }

    /// Nothing of it began, and that is made sure of before it is said.
    fn refused(&self, job: &Job, refusal: &Refusal) {
        let stands = self.buried(job, &refusal.to_string());
        let told = Told {
            end: StepEnd::Failed { maybe_partial: false, class: FailureClass::Permanent },
            exit: Some(Exit::NotSpawned),
            observed: None,
            detail: refusal.to_string(),
        };
        match stands {
            Tombstone::Stands => self.tell(HandEvent::Ended(job.attempt(), job.step.name.clone(), told)),
            Tombstone::TooLate => self.goes_on(job),
        }
    }

    fn prepare(&self, job: &Job, not_after: Option<Boot>, grant: Grant) -> Result<(StepFolder, Launch), String> {
        let folder = self
            .places
            .make_step(job.attempt(), &job.step.name)
            .map_err(|error| format!("could not make the step's folder: {error}"))?;
        let body = self.body(job, &grant)?;
        let is_command = matches!(body, Body::Command { .. });
        let is_shown = matches!(body, Body::Command { .. } | Body::System { .. });
        let is_ours = matches!(body, Body::Release { .. } | Body::System { .. });
        let mut environment = job.environment();
        if let Some(user) = &grant.user {
            self.places
                .let_in(job.attempt(), user)
                .map_err(|error| format!("could not make way for {}: {error}", user.name))?;
            of_user(&mut environment, user);
        }
        let credentials = match job.step.effect {
            StepEffect::Mutates if is_shown => secrets::sources(&grant.credentials.deploy)?,
            StepEffect::Mutates | StepEffect::None => Sources::default(),
        };
        let launch = Launch {
            effect: job.step.effect,
            target_lock: self.places.target_lock(&job.assignment.target),
            lock_wait: LOCK_WAIT,
            not_after: not_after.map(|boot| BootTime::from_millis(boot.0)),
            body: run_file(body, grant.program.as_deref()),
            environment,
            program: grant.program.filter(|_| is_command),
            user: grant.user,
            credentials,
            credentials_folder: self.places.credentials(job.attempt()),
            secrets: self.all_sources()?,
            cgroup: self.surroundings.cgroups.of(job.attempt(), &job.step.name),
            limits: if is_ours { config::Limits::default() } else { self.surroundings.limits },
            machine: self.surroundings.machine.clone(),
            work: self.places.work(job.attempt()),
            output_bytes: OUTPUT_BYTES,
            drain: DRAIN,
        };
        Ok((folder, launch))
    }

    /// Every set of this host: a command may come by what is not its own.
    fn all_sources(&self) -> Result<Vec<Sources>, String> {
        let sets = self.host.credentials().flat_map(|sets| sets.named().map(|(_, set)| set.clone()));
        let all = sets.map(|set| secrets::sources(&set)).collect::<Result<Vec<_>, _>>()?;
        Ok(all.into_iter().filter(|sources| !sources.is_empty()).collect())
    }

    /// Takes every secret of this host out of a text.
    fn redactor(&self) -> Result<Redactor, String> {
        let read = self.all_sources()?.iter().map(Sources::read).collect::<Result<Vec<_>, _>>();
        Ok(Redactor::of(&read.map_err(|error| error.to_string())?))
    }

    fn desk(&self) -> Result<Desk<'_>, String> {
        Ok(Desk { places: &self.places, redactor: self.redactor()? })
    }

    fn body(&self, job: &Job, grant: &Grant) -> Result<Body, String> {
        match &job.step.body {
            StepBody::Command { argv } => Ok(Body::Command { argv: argv.clone() }),
            StepBody::Check(check) => Ok(Body::Check { check: check.clone() }),
            StepBody::System(_) => Ok(Body::System { order: Box::new(job.system_order(self, grant)?) }),
            StepBody::Release { archive, sha256 } => {
                let named = job.step.revision.clone().map_or_else(|| release::default_revision(sha256), Ok);
                let path = Fetcher::path(&self.places, job.attempt(), archive, sha256);
                let content = Content::Archive { path, sha256: sha256.clone() };
                job.apply(named.map_err(|error| error.to_string())?, content)
            }
            StepBody::Restore => {
                let revision = job.step.revision.clone().ok_or("the step names no revision to go back to")?;
                job.apply(revision, Content::Retained)
            }
        }
    }

    /// Waits until the step's records say how it ended, or that nobody saw it.
    fn watch(&self, job: &Job) {
        let folder = self.places.step(job.attempt(), &job.step.name);
        self.logs.follow(Output { claim: job.assignment.claim, step: job.step.name.clone(), folder: job.attempt() });
        loop {
            match self.supervisor.wait(&folder, WATCH) {
                Ok(known) if known.is_settled() => return self.settled(job, known),
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(%error, step = %job.step.name, "could not read a step's records");
                    std::thread::sleep(AGAIN_AFTER);
                }
            }
        }
    }

    fn settled(&self, job: &Job, known: Known) {
        if let StepBody::Release { sha256, .. } = &job.step.body {
            self.fetcher.drop_link(job.attempt(), sha256);
        }
        if let Err(error) = self.places.shut(job.attempt()) {
            tracing::warn!(%error, attempt = %job.attempt(), "could not shut an attempt's folder");
        }
        let event = match known {
            Known::NeverStarted { .. } => HandEvent::Tombstoned(job.attempt(), job.step.name.clone()),
            Known::Ended(record) => {
                self.logs.look();
                // The thread that asked for the signal may see it sent only later: what led to the end is told before the end.
                if record.stopped_by_us {
                    self.tell(HandEvent::StopActed(job.attempt(), SIGNALLED.to_owned()));
                }
                HandEvent::Ended(job.attempt(), job.step.name.clone(), self.told(job, &record))
            }
            Known::Gone { sight, .. } => {
                self.logs.look();
                let ending = job.ending(Exit::Unknown, false, sight != Sight::Nothing);
                let told = self.told_by(job, ending, Some(words_of(sight)));
                HandEvent::Ended(job.attempt(), job.step.name.clone(), told)
            }
            // Not settled: nobody asks for these.
            Known::NotYetStarted | Known::Running => return,
        };
        if let Err(error) = self.supervisor.tidy(&self.places.step(job.attempt(), &job.step.name)) {
            tracing::warn!(%error, attempt = %job.attempt(), "could not remove a step's cgroup");
        }
        self.tell(event);
    }

    fn told(&self, job: &Job, record: &ExitRecord) -> Told {
        let ending = job.ending(record.exit, record.stopped_by_us, record.survivors.is_empty());
        let redacted = record.stdout.redacted + record.stderr.redacted;
        let redacted = (redacted > 0).then(|| format!("secrets taken out of its output: {redacted}"));
        let detail = record.detail.clone().or_else(|| self.last_line(job, ending));
        let details: Vec<String> = [detail, left_behind(&record.survivors), redacted].into_iter().flatten().collect();
        self.told_by(job, ending, (!details.is_empty()).then(|| details.join("; ")).as_deref())
    }

    /// Why our own adapter refused, and what our own check saw: the last line that it wrote. What a command writes stays in its
    /// output.
    fn last_line(&self, job: &Job, ending: Ending) -> Option<String> {
        let tells = match (&job.step.body, ending.exit) {
            (StepBody::Release { .. } | StepBody::Restore | StepBody::System(_), Exit::Exited(status)) => status != 0,
            (StepBody::Check(_), Exit::Exited(_)) => true,
            (
                StepBody::Command { .. }
                | StepBody::Release { .. }
                | StepBody::Restore
                | StepBody::System(_)
                | StepBody::Check(_),
                _,
            ) => false,
        };
        if !tells {
            return None;
        }
        let text = std::fs::read(self.places.step(job.attempt(), &job.step.name).stderr()).ok()?;
        let text = String::from_utf8_lossy(&text);
        text.lines().rfind(|line| !line.trim().is_empty()).map(|line| bounded(line, REFUSAL_BYTES))
    }

    fn told_by(&self, job: &Job, ending: Ending, detail: Option<&str>) -> Told {
        let (look, observed) = look::after(job, ending, self);
        let mut told = outcome::tell(job.step.effect, ending, job.capability(), &look);
        match (detail, &job.step.body, ending.exit) {
            // What a check saw says more than its exit.
            (Some(detail), StepBody::Check(_), Exit::Exited(_)) => told.detail = detail.to_owned(),
            (Some(detail), ..) => told.detail = format!("{}; {detail}", told.detail),
            (None, ..) => {}
        }
        let end = if told.end == StepEnd::Unknown { holdfast_agent_core::decide::gone() } else { told.end };
        Told { end, exit: Some(ending.exit), observed, detail: told.detail }
    }

    fn bury(&self, job: &Job, why: &str) {
        if bugs::on(Bug::TombstoneNotDurable) {
            return self.tell(HandEvent::Tombstoned(job.attempt(), job.step.name.clone()));
        }
        match self.buried(job, why) {
            Tombstone::Stands => self.tell(HandEvent::Tombstoned(job.attempt(), job.step.name.clone())),
            Tombstone::TooLate => self.goes_on(job),
        }
    }

    fn buried(&self, job: &Job, why: &str) -> Tombstone {
        crash::point(CrashPoint::BeforeTombstone);
        // Nothing may be said before: without a tombstone "never started" is not known.
        let made = self.until_done("make a tombstone", &job.step.name, || {
            let folder = self.places.make_step(job.attempt(), &job.step.name)?;
            self.supervisor.tombstone(&folder, why)
        });
        crash::point(CrashPoint::AfterTombstone);
        made
    }

    /// It began after all.
    fn goes_on(&self, job: &Job) {
        self.tell(HandEvent::Started(job.attempt(), job.step.name.clone()));
        self.watch(job);
    }

    /// Does what nothing goes on without, out of the reserve if need be, again and again: a full disk or missing descriptors
    /// pass.
    fn until_done<T>(&self, doing: &str, step: &StepName, mut act: impl FnMut() -> io::Result<T>) -> T {
        let mut told = false;
        loop {
            match self.room.with(&mut act) {
                Ok(done) => return done,
                Err(error) if !told => tracing::error!(%error, %step, "could not {doing}: trying until it can be done"),
                Err(_) => {}
            }
            told = true;
            std::thread::sleep(AGAIN_AFTER);
        }
    }

    fn survey(&self, job: &Job) {
        let folder = self.places.step(job.attempt(), &job.step.name);
        match self.supervisor.survey(&folder) {
            Ok(Known::NotYetStarted) => self.tell(HandEvent::FoundNotStarted(job.attempt())),
            Ok(Known::Running) => {
                self.tell(HandEvent::FoundRunning(job.attempt()));
                self.watch(job);
            }
            Ok(Known::NeverStarted { .. } | Known::Ended(_) | Known::Gone { .. }) => self.watch(job),
            // No descriptors, perhaps: they pass.
            Err(error) => {
                tracing::error!(%error, step = %job.step.name, "could not read a step's records");
                std::thread::sleep(AGAIN_AFTER);
                self.survey(job);
            }
        }
    }

    /// What can't be removed now is tried again the next time.
    fn prune(&self, mut needed: BTreeSet<AttemptId>) {
        let removed = self.logs.unsent().and_then(|unsent| {
            needed.extend(unsent);
            prune(&self.places, &self.supervisor, &needed, self.surroundings.keep, SystemTime::now())
        });
        match removed {
            Ok(removed) if removed.is_empty() => {}
            Ok(removed) => tracing::info!(count = removed.len(), "removed folders of attempts that are over"),
            Err(error) => tracing::warn!(%error, "could not remove folders of attempts that are over"),
        }
    }

    /// Asks the shim, and says that it was acted on only once the signal was seen sent. The launch may be no further than its
    /// first line on a thread of its own: the request then waits in the step's folder for the shim.
    fn stop(&self, attempt: AttemptId, step: &StepName, grace: Millis) {
        crash::point(CrashPoint::BeforeStopRequest);
        let folder = self.until_done("ask for a stop", step, || {
            let folder = self.places.make_step(attempt, step)?;
            self.supervisor.request_stop(&folder, grace)?;
            Ok(folder)
        });
        crash::point(CrashPoint::AfterStopRequest);
        loop {
            let known = self.supervisor.wait(&folder, Duration::from_millis(20));
            let detail = match known {
                _ if self.supervisor.is_signalled(&folder) => SIGNALLED,
                Ok(Known::Ended(_) | Known::NeverStarted { .. }) => "the step was over before a signal was sent",
                Ok(Known::Gone { survivors, .. }) if survivors.is_empty() => "no process of the step was left",
                Ok(Known::Gone { .. }) => {
                    self.stop_survivors(&folder, grace);
                    "its shim was gone; what was left of the step was signalled"
                }
                Ok(Known::Running | Known::NotYetStarted) | Err(_) => continue,
            };
            return self.tell(HandEvent::StopActed(attempt, detail.to_owned()));
        }
    }

    fn stop_survivors(&self, folder: &StepFolder, grace: Millis) {
        let term = self.supervisor.signal_survivors(folder, false);
        let ended = self.supervisor.wait(folder, grace.into());
        if !matches!(ended, Ok(known) if known.is_settled()) {
            let kill = self.supervisor.signal_survivors(folder, true);
            tracing::warn!(?term, ?kill, "processes of a lost shim outlived the grace");
        }
    }
}

impl Job {
    /// The attempt whose folder holds the step's records.
    fn attempt(&self) -> AttemptId {
        self.assignment.folder()
    }

    fn operation(&self) -> OperationId {
        OperationId { deployment: self.assignment.claim.deployment, step: self.step.name.clone() }
    }

    fn resource(&self) -> Option<&ResourceSpec> {
        let name = self.step.resource.as_ref()?;
        self.assignment.resources.iter().find(|resource| &resource.name == name)
    }

    /// A step without a resource has nothing that could be read, and nothing that could outlive it.
    fn capability(&self) -> Capability {
        let none = Capability { inspect: Inspect::None, enforce: Enforce::None, outlives: true };
        self.resource().map_or(none, |resource| self.step.capability(resource))
    }

    fn environment(&self) -> std::collections::BTreeMap<String, String> {
        let context = Context {
            claim: self.assignment.claim,
            target: &self.assignment.target,
            step: &self.step.name,
            expected_revision: self.step.expected_revision.as_ref(),
        };
        let mut environment = environment(&context, |name| std::env::var(name).ok());
        if self.step.body.check().is_some() {
            // Whom the host trusts, where that is not the default place.
            let trust = ["SSL_CERT_FILE", "SSL_CERT_DIR"].into_iter();
            environment.extend(trust.filter_map(|name| Some((name.to_owned(), std::env::var(name).ok()?))));
        }
        environment
    }

    /// Whether the deployment lists that exit status of a command as worth another try.
    fn is_transient(&self, status: i32) -> bool {
        u8::try_from(status).is_ok_and(|status| self.assignment.transient_exit_codes.contains(&status))
    }

    /// To put a revision in place on the step's resource.
    fn apply(&self, revision: Revision, content: Content) -> Result<Body, String> {
        let resource = self.resource().ok_or("the step's resource is not part of the offer")?;
        let ResourceAdapter::Release { root, retain } = &resource.adapter else {
            return Err("the step's resource is no release folder".to_owned());
        };
        let apply = ApplySpec {
            root: root.into(),
            operation: self.operation(),
            fence: self.assignment.claim.fence,
            revision,
            expected_revision: self.step.expected_revision.clone(),
            content,
            retain: *retain,
        };
        Ok(Body::Release { apply })
    }

    /// Whether every revision that the attempt is still to put back is there: looked at before the first of them changes anything.
    fn all_retained(&self) -> Result<(), Refused> {
        let Assignment { steps, carried, .. } = &self.assignment;
        let left = steps.iter().filter(|step| matches!(step.body, StepBody::Restore) && !carried.contains(&step.name));
        left.cloned().try_for_each(|step| Job { assignment: self.assignment.clone(), step }.is_retained())
    }

    fn is_retained(&self) -> Result<(), Refused> {
        let refused = |class, detail| Refused { class, detail };
        let (Some(resource), Some(revision)) = (self.resource(), &self.step.revision) else {
            return Err(refused(FailureClass::Permanent, "the step names no revision or no resource".to_owned()));
        };
        let ResourceAdapter::Release { root, .. } = &resource.adapter else {
            return Err(refused(FailureClass::Permanent, format!("{} keeps no older release", resource.name)));
        };
        let retained = release::retained(root.as_ref())
            .map_err(|error| refused(FailureClass::Infrastructure, crate::internal::with_causes(&error)))?;
        if retained.contains(revision) {
            return Ok(());
        }
        let there: Vec<_> = retained.iter().map(Revision::to_string).collect();
        let there = if there.is_empty() { "nothing".to_owned() } else { there.join(", ") };
        let detail = format!("revision {revision} is not retained on {}: it has {there}", resource.name);
        Err(refused(FailureClass::Permanent, detail))
    }

    fn ending(&self, exit: Exit, stopped_by_us: bool, none_left: bool) -> Ending {
        let class = match (&self.step.body, exit) {
            (StepBody::Release { .. } | StepBody::Restore | StepBody::System(_), Exit::Exited(status)) => {
                exit::class_of_exit(status)
            }
            (_, Exit::NotSpawned) => FailureClass::Infrastructure,
            (StepBody::Command { .. }, Exit::Exited(status)) if self.is_transient(status) => FailureClass::Transient,
            // The check could not look, or something ended it: no word on what it was to look at.
            (StepBody::Check(_), exit) if !is_word_of_a_check(exit) => FailureClass::Infrastructure,
            (
                StepBody::Release { .. }
                | StepBody::Restore
                | StepBody::System(_)
                | StepBody::Command { .. }
                | StepBody::Check(_),
                _,
            ) => FailureClass::Permanent,
        };
        let tells = match (&self.step.body, exit) {
            (StepBody::System(_), Exit::Exited(status)) => exit::tells(status),
            (
                StepBody::System(_)
                | StepBody::Release { .. }
                | StepBody::Restore
                | StepBody::Command { .. }
                | StepBody::Check(_),
                _,
            ) => true,
        };
        Ending { exit, stopped_by_us, none_left, class, tells }
    }
}

/// What is told of a step whose shim was lost.
fn words_of(sight: Sight) -> &'static str {
    match sight {
        Sight::Cgroup => "its shim was lost; its cgroup is empty",
        Sight::Session => {
            "its shim was lost; no process of its session is left, and one that left the session can't be found"
        }
        Sight::Booted => "the machine has booted since: nothing of it is left",
        Sight::Nothing => {
            "another boot, perhaps of another machine, or another pid namespace: whether anything of it is left can't be seen \
             from here"
        }
    }
}

/// The processes that a step left running, by name. More are counted.
fn left_behind(survivors: &[Survivor]) -> Option<String> {
    let (named, more) = survivors.split_at(survivors.len().min(SURVIVORS_NAMED));
    let mut names: Vec<String> = named.iter().map(|one| format!("{} ({})", one.name, one.pid)).collect();
    if !more.is_empty() {
        names.push(format!("{} more", more.len()));
    }
    (!names.is_empty()).then(|| format!("left running: {}", names.join(", ")))
}

/// A check runs its command by itself: by the file that the host's policy looked at.
fn run_file(body: Body, program: Option<&Path>) -> Body {
    let (Body::Check { mut check }, Some(program)) = (body.clone(), program) else { return body };
    if let Probe::Command { argv } = &mut check.probe
        && let Some(name) = argv.first_mut()
    {
        *name = program.to_string_lossy().into_owned();
    }
    Body::Check { check }
}

fn is_word_of_a_check(exit: Exit) -> bool {
    [checks::HELD, checks::NOT_HELD].map(|exit| Exit::Exited(i32::from(exit))).contains(&exit)
}
