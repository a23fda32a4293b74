//! Waiting for a step's records to say how it ended, or that nobody saw it.

use std::time::Duration;

use holdfast_common::outcome::Exit;
use holdfast_common::spec::StepBody;

use super::ending::words_of;
use super::stop::SIGNALLED;
use super::{AGAIN_AFTER, Bench, Job};
use crate::driver::HandEvent;
use crate::logs::Output;
use crate::supervisor::{Known, Sight};

/// How long one look at a step's records waits for it to settle.
const WATCH: Duration = Duration::from_secs(5);

impl Bench {
    pub(super) fn survey(&self, job: &Job) {
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

    /// It began after all.
    pub(super) fn goes_on(&self, job: &Job) {
        self.tell(HandEvent::Started(job.attempt(), job.step.name.clone()));
        self.watch(job);
    }

    /// Waits until the step's records say how it ended, or that nobody saw it.
    pub(super) fn watch(&self, job: &Job) {
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
}
