//! The holder of the target gets its next attempt, or the reason that nobody can take it.

use std::collections::BTreeMap;

use holdfast_common::id::{AgentName, AttemptId, IncarnationId};

use crate::authority;
use crate::bugs::{self, Bug};
use crate::decision::Answer;
use crate::draft::Draft;
use crate::due;
use crate::event::Event;
use crate::fate;
use crate::handlers::reread;
use crate::input::Candidate;
use crate::refusal::Refusal;
use crate::state::{AttemptState, Deployment, TargetState, Waiting};

pub(crate) fn assign(draft: &mut Draft<'_>, candidates: &[Candidate], attempt: AttemptId) -> Result<Answer, Refusal> {
    let now = draft.now;
    let Some(deployment) = draft.current().filter(|deployment| due::is_assignable(draft.state(), deployment, now))
    else {
        return Ok(Answer::Done);
    };
    let Some((agent, incarnation)) = pick(draft.state(), deployment, candidates) else {
        let why = Waiting::NoEligibleAgent { agents: whys(draft.state(), deployment, candidates) };
        if deployment.waiting.as_ref() != Some(&why) {
            draft.record(Event::Waits { deployment: deployment.id, why, not_before: None });
        }
        return Ok(Answer::Done);
    };
    let next = authority::next_fence(draft.state(), now.epoch).ok_or(Refusal::FenceExhausted)?;
    let before = draft.state().fence.filter(|_| bugs::on(Bug::ForgetFenceOnRequeue));
    let event = Event::LeaseGranted {
        deployment: deployment.id,
        attempt,
        number: u32::try_from(deployment.attempts.len() + 1).unwrap_or(u32::MAX),
        agent,
        incarnation,
        fence: before.unwrap_or(next),
        ttl: deployment.spec.lease_ttl,
        run: now.run,
        serving: now.serving,
        carried: fate::applied(deployment),
        reread: reread::due(draft.state(), deployment),
        readmits: None,
    };
    draft.record(event);
    Ok(Answer::Done)
}

/// The fit candidate that declined this deployment or was silent on it least often, the first by name among those.
fn pick(state: &TargetState, deployment: &Deployment, candidates: &[Candidate]) -> Option<(AgentName, IncarnationId)> {
    let fit = candidates.iter().filter(|candidate| why_not(state, Some(deployment), candidate).is_none());
    let best = fit.min_by_key(|candidate| (misses(deployment, &candidate.agent), &candidate.agent))?;
    Some((best.agent.clone(), best.incarnation?))
}

fn misses(deployment: &Deployment, agent: &AgentName) -> usize {
    let missed = |state| match state {
        AttemptState::Declined(_) | AttemptState::Lapsed | AttemptState::Interrupted => true,
        AttemptState::Offered
        | AttemptState::Running
        | AttemptState::Succeeded
        | AttemptState::Failed
        | AttemptState::Stopped
        | AttemptState::Uncertain
        | AttemptState::Resolved => false,
    };
    deployment.attempts.iter().filter(|attempt| &attempt.agent == agent && missed(attempt.state)).count()
}

fn whys(state: &TargetState, deployment: &Deployment, candidates: &[Candidate]) -> BTreeMap<AgentName, String> {
    let why = |candidate: &Candidate| Some((candidate.agent.clone(), why_not(state, Some(deployment), candidate)?));
    candidates.iter().filter_map(why).collect()
}

/// Why that agent can't have an attempt of that deployment, or of any of the target where none is named, now.
pub(crate) fn why_not(state: &TargetState, deployment: Option<&Deployment>, candidate: &Candidate) -> Option<String> {
    match &state.home {
        Some(home) if home != &candidate.agent => {
            return Some(format!("the target's resources are on the host of {home}"));
        }
        Some(_) | None => {}
    }
    match deployment.and_then(fate::checked_on) {
        Some(host) if host != &candidate.agent => {
            return Some(format!("only the checks are left, and they belong on {host}, which made the last change"));
        }
        Some(_) | None => {}
    }
    let silent = candidate.incarnation.is_none().then(|| "no session".to_owned());
    candidate.unfit.clone().or(silent)
}
