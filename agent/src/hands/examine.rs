//! What would be refused, found before a permit is asked for. Nothing is changed.

use holdfast_agent_core::decide::Refused;
use holdfast_agent_core::work::Assignment;
use holdfast_common::id::Revision;
use holdfast_common::outcome::FailureClass;
use holdfast_common::spec::{ResourceAdapter, StepBody};

use super::{Bench, Job};
use crate::adapters::release;
use crate::archive::{self, Archive, Limits};
use crate::driver::HandEvent;
use crate::fetch::Fetcher;

impl Bench {
    /// Brings the archive and looks at it. The shim looks again when it unpacks: what was seen here may have been changed since.
    pub(super) fn examine(&self, job: &Job) {
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
}

impl Job {
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
}
