//! How an attempt goes on with a process that an earlier attempt of this journal began.
//!
//! | the journal holds | then |
//! | --- | --- |
//! | the step's process, which may be alive | it is the new attempt's from now on; nothing is started |
//! | the end of that step, told under an earlier claim | that end is told again under the new claim, and what follows from it |
//! | neither | declined: nothing may be said of it |

use holdfast_common::id::SessionId;
use holdfast_common::report::ReportBody;

use crate::decide::{Action, Input, decide};
use crate::work::{Assignment, Boot, LeaseCount, Phase, Stop, Work};

/// Takes up what an earlier attempt began. `held` is what is held of the newest earlier attempt, `told` what the journal holds
/// of its reports, in order. `None` declines.
#[must_use]
pub fn readmit(
    assignment: Assignment,
    held: Option<&Work>,
    told: &[ReportBody],
    lease: LeaseCount,
    session: SessionId,
    now: Boot,
) -> Option<(Work, Vec<Action>)> {
    let step = assignment.goes_on.as_ref()?.step.clone();
    let at = assignment.steps.iter().position(|spec| spec.name == step)?;
    let stop = held.map_or(Stop::NotAsked, |held| held.stop);
    let phase = held.filter(|held| held.may_run() && held.at == at).map(|held| held.phase.clone());
    let mut work = Work::taken(assignment, lease, Some(session));
    work.at = at;
    work.stop = stop;
    if let Some(phase) = phase {
        work.phase = phase;
        return Some((work, vec![Action::Journal]));
    }
    let ended =
        told.iter().rev().find_map(|body| ended(body).filter(|(of, _)| *of == &step).map(|(_, input)| input))?;
    work.phase = Phase::Running;
    let mut actions = vec![Action::Journal];
    actions.extend(decide(&mut work, now, ended));
    Some((work, actions))
}

fn ended(body: &ReportBody) -> Option<(&holdfast_common::id::StepName, Input)> {
    match body {
        ReportBody::StepEnded { step, end, exit, observed, detail } => {
            let (end, exit, observed, detail) = (*end, *exit, observed.clone(), detail.clone());
            Some((step, Input::Ended { step: step.clone(), end, exit, observed, detail }))
        }
        ReportBody::StepStarted { .. }
        | ReportBody::AttemptEnded { .. }
        | ReportBody::CancelReceived { .. }
        | ReportBody::CancelActed { .. }
        | ReportBody::Reread { .. } => None,
    }
}
