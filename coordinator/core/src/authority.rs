//! Who may change what: the only place that compares fences, claims and leases.
//!
//! ```text
//! the claim names                                        standing
//! no attempt of the speaker                              Unknown (the same for what exists and what does not)
//! an attempt leased to another journal of the speaker    OtherJournal
//! an attempt under another fence                         OtherFence
//! an attempt with its accepted terminal observation      Observed
//! an attempt below the target's fence                    Superseded
//! an attempt whose lease is over                         LeaseOver
//! else                                                   current
//! ```

use holdfast_common::claim::Claim;
use holdfast_common::fence::{Epoch, Fence};
use holdfast_common::report::{FiledReason, PermitDenial};

use crate::bugs::{self, Bug};
use crate::input::{Now, Speaker};
use crate::lease;
use crate::state::{Attempt, AttemptState, PastAttempt, TargetState};

/// Why a claim is not the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NotCurrent {
    Unknown,
    OtherJournal,
    OtherFence,
    Observed,
    Superseded,
    LeaseOver,
}

/// The attempt that the claim names, if it is current at this instant.
pub(crate) fn current<'a>(
    state: &'a TargetState,
    now: Now,
    speaker: &Speaker,
    claim: &Claim,
) -> Result<&'a Attempt, NotCurrent> {
    let attempt = named(state, speaker, claim).ok_or(NotCurrent::Unknown)?;
    if attempt.incarnation != speaker.incarnation {
        return Err(NotCurrent::OtherJournal);
    }
    if attempt.fence != claim.fence && !bugs::on(Bug::SkipFenceCompare) {
        return Err(NotCurrent::OtherFence);
    }
    over(attempt.state, attempt.fence, state.fence)?;
    match &attempt.lease {
        Some(lease) if lease::lives(lease, now) || bugs::on(Bug::AcceptAfterLapse) => Ok(attempt),
        Some(_) | None => Err(NotCurrent::LeaseOver),
    }
}

fn over(state: AttemptState, fence: Fence, highest: Option<Fence>) -> Result<(), NotCurrent> {
    if state.is_observed() {
        return Err(NotCurrent::Observed);
    }
    if highest.is_some_and(|highest| fence < highest) {
        return Err(NotCurrent::Superseded);
    }
    if state.is_live() { Ok(()) } else { Err(NotCurrent::LeaseOver) }
}

/// The attempt of the current deployment that the claim names, if it was leased to the speaker's certificate.
pub(crate) fn named<'a>(state: &'a TargetState, speaker: &Speaker, claim: &Claim) -> Option<&'a Attempt> {
    let deployment = state.current.as_ref().filter(|deployment| deployment.id == claim.deployment)?;
    deployment.attempts.iter().find(|attempt| attempt.id == claim.attempt && attempt.agent == speaker.agent)
}

/// Why a claim on an attempt of an ended deployment is not current. `Unknown` where it is not the speaker's.
pub(crate) fn past(state: &TargetState, speaker: &Speaker, claim: &Claim, past: &PastAttempt) -> NotCurrent {
    if past.deployment != claim.deployment || past.id != claim.attempt || past.agent != speaker.agent {
        return NotCurrent::Unknown;
    }
    if past.incarnation != speaker.incarnation {
        return NotCurrent::OtherJournal;
    }
    if past.fence != claim.fence {
        return NotCurrent::OtherFence;
    }
    over(past.state, past.fence, state.fence).err().unwrap_or(NotCurrent::LeaseOver)
}

/// The fence of the next lease or fence-off; `None` when the epoch has no more.
pub(crate) fn next_fence(state: &TargetState, epoch: Epoch) -> Option<Fence> {
    match state.fence {
        Some(highest) => highest.next(epoch),
        None => Fence::first(epoch),
    }
}

/// Whether a fence is above the highest one of the target.
pub(crate) fn is_raise(state: &TargetState, fence: Fence) -> bool {
    state.fence.is_none_or(|highest| fence > highest)
}

/// Whether nothing was allocated above the attempt's fence: neither another lease nor a fence-off.
pub(crate) fn is_highest(state: &TargetState, attempt: &Attempt) -> bool {
    state.fence == Some(attempt.fence)
}

/// Whether a resource that was raised to `raised` refuses the attempt.
pub(crate) fn is_refused(attempt: &Attempt, raised: Fence) -> bool {
    attempt.fence < raised
}

impl NotCurrent {
    pub(crate) fn filed(self) -> FiledReason {
        match self {
            NotCurrent::Unknown => FiledReason::UnknownAttempt,
            NotCurrent::OtherJournal => FiledReason::WrongIncarnation,
            NotCurrent::OtherFence => FiledReason::WrongFence,
            NotCurrent::Observed => FiledReason::AttemptTerminal,
            NotCurrent::Superseded => FiledReason::SupersededFence,
            NotCurrent::LeaseOver => FiledReason::LeaseExpired,
        }
    }

    pub(crate) fn denied(self) -> PermitDenial {
        match self {
            NotCurrent::Unknown | NotCurrent::OtherJournal => PermitDenial::NotYours,
            NotCurrent::OtherFence | NotCurrent::Observed | NotCurrent::Superseded => PermitDenial::NotCurrent,
            NotCurrent::LeaseOver => PermitDenial::LeaseExpired,
        }
    }
}
