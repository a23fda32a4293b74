//! From a permit to a running shim: what it is to run, as whom, and with what around it.

use std::path::Path;

use holdfast_agent_core::work::Boot;
use holdfast_common::id::Revision;
use holdfast_common::outcome::{Exit, FailureClass, StepEnd};
use holdfast_common::spec::{Probe, ResourceAdapter, StepBody, StepEffect};
use holdfast_common::time::Millis;

use super::{Bench, Job};
use crate::adapters::release::{self, ApplySpec, Content};
use crate::boottime::BootTime;
use crate::config;
use crate::driver::{HandEvent, Told};
use crate::fetch::Fetcher;
use crate::places::StepFolder;
use crate::policy::{Grant, Refusal, of_user};
use crate::secrets::{self, Sources};
use crate::supervisor::{Body, Launch, Tombstone};

/// Bound of each output file of a step.
pub(crate) const OUTPUT_BYTES: u64 = 16 * 1024 * 1024;
/// How long the shim waits for the target's lock: the shim of the step before may be on its last lines.
const LOCK_WAIT: Millis = Millis(2_000);
/// How long output is waited for after the body ended.
const DRAIN: Millis = Millis(2_000);

impl Bench {
    pub(super) fn launch(&self, job: &Job, not_after: Option<Boot>) {
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
}

impl Job {
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
