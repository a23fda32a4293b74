//! What is told of an ending: the facts for the outcome table, and words for people.

use holdfast_agent_core::outcome::{self, Ending};
use holdfast_common::outcome::{Exit, FailureClass, StepEnd};
use holdfast_common::spec::StepBody;
use holdfast_common::text::bounded;

use super::{Bench, Job, look};
use crate::adapters::exit;
use crate::checks;
use crate::driver::Told;
use crate::supervisor::{ExitRecord, Sight, Survivor};

/// Longest refusal of our own adapter that goes into a report.
const REFUSAL_BYTES: usize = 500;
/// Processes that a report names of those which a step left running.
const SURVIVORS_NAMED: usize = 5;

impl Bench {
    pub(super) fn told(&self, job: &Job, record: &ExitRecord) -> Told {
        let ending = job.ending(record.exit, record.stopped_by_us, record.survivors.is_empty());
        let redacted = record.stdout.redacted + record.stderr.redacted;
        let redacted = (redacted > 0).then(|| format!("secrets taken out of its output: {redacted}"));
        let detail = record.detail.clone().or_else(|| self.last_line(job, ending));
        let details: Vec<String> = [detail, left_behind(&record.survivors), redacted].into_iter().flatten().collect();
        self.told_by(job, ending, (!details.is_empty()).then(|| details.join("; ")).as_deref())
    }

    pub(super) fn told_by(&self, job: &Job, ending: Ending, detail: Option<&str>) -> Told {
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
}

impl Job {
    pub(super) fn ending(&self, exit: Exit, stopped_by_us: bool, none_left: bool) -> Ending {
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

    /// Whether the deployment lists that exit status of a command as worth another try.
    fn is_transient(&self, status: i32) -> bool {
        u8::try_from(status).is_ok_and(|status| self.assignment.transient_exit_codes.contains(&status))
    }
}

fn is_word_of_a_check(exit: Exit) -> bool {
    [checks::HELD, checks::NOT_HELD].map(|exit| Exit::Exited(i32::from(exit))).contains(&exit)
}

/// What is told of a step whose shim was lost.
pub(super) fn words_of(sight: Sight) -> &'static str {
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
