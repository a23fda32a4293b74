//! Tombstones: a step that is said to be never started can never start.

use super::{Bench, Job};
use crate::bugs::{self, Bug};
use crate::crash::{self, CrashPoint};
use crate::driver::HandEvent;
use crate::supervisor::Tombstone;

impl Bench {
    pub(super) fn bury(&self, job: &Job, why: &str) {
        if bugs::on(Bug::TombstoneNotDurable) {
            return self.tell(HandEvent::Tombstoned(job.attempt(), job.step.name.clone()));
        }
        match self.buried(job, why) {
            Tombstone::Stands => self.tell(HandEvent::Tombstoned(job.attempt(), job.step.name.clone())),
            Tombstone::TooLate => self.goes_on(job),
        }
    }

    pub(super) fn buried(&self, job: &Job, why: &str) -> Tombstone {
        crash::point(CrashPoint::BeforeTombstone);
        // Nothing may be said before: without a tombstone "never started" is not known.
        let made = self.until_done("make a tombstone", &job.step.name, || {
            let folder = self.places.make_step(job.attempt(), &job.step.name)?;
            self.supervisor.tombstone(&folder, why)
        });
        crash::point(CrashPoint::AfterTombstone);
        made
    }
}
