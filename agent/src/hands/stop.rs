//! Asking a step to stop, and seeing that it was asked.

use std::time::{Duration, Instant};

use holdfast_common::id::{AttemptId, StepName};
use holdfast_common::time::Millis;

use super::Bench;
use crate::crash::{self, CrashPoint};
use crate::driver::HandEvent;
use crate::places::StepFolder;
use crate::supervisor::Known;

/// What is told of a stop that reached a process.
pub(super) const SIGNALLED: &str = "SIGTERM was sent to the step's process group";
/// How long a shim may take to act on a stop before it is looked at whether it stands still.
const ACTS_WITHIN: Duration = Duration::from_secs(1);

impl Bench {
    /// Asks the shim, and says that it was acted on only once the signal was seen sent. The launch may be no further than its
    /// first line on a thread of its own: the request then waits in the step's folder for the shim.
    pub(super) fn stop(&self, attempt: AttemptId, step: &StepName, grace: Millis) {
        crash::point(CrashPoint::BeforeStopRequest);
        let folder = self.until_done("ask for a stop", step, || {
            let folder = self.places.make_step(attempt, step)?;
            self.supervisor.request_stop(&folder, grace)?;
            Ok(folder)
        });
        crash::point(CrashPoint::AfterStopRequest);
        let (asked, mut told) = (Instant::now(), false);
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
                Ok(Known::Running | Known::NotYetStarted) | Err(_) => {
                    told = told || (asked.elapsed() >= ACTS_WITHIN && self.is_held_up(attempt, step, &folder));
                    continue;
                }
            };
            return self.tell(HandEvent::StopActed(attempt, detail.to_owned()));
        }
    }

    /// Whether the step's shim stands still, which is told then: the stop waits for whoever lets it go on.
    fn is_held_up(&self, attempt: AttemptId, step: &StepName, folder: &StepFolder) -> bool {
        let Ok(Some(shim)) = self.supervisor.standing_still(folder) else { return false };
        tracing::warn!(%attempt, %step, shim, "a stop is asked for, and the step's shim stands still");
        let why = format!(
            "the shim of step {step} stands still, stopped by a signal: no signal was seen sent to the step, and none will be before \
             somebody lets process {shim} go on (kill -CONT {shim} on its host)"
        );
        self.tell(HandEvent::StopHeldUp(attempt, why));
        true
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
