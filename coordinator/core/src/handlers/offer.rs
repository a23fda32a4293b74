//! An agent answered an offer.
//!
//! ```text
//! standing    state      answer      what follows
//! current     offered    accepts     running; heard
//! current     offered    declines    uncertain again, where it was to go on with a running process
//! current     offered    declines    declined: no try; cancelled where a stop is recorded, else waits and is offered again
//! current     running    either      nothing: the answer came twice, or after a report that implied it
//! not current -          -           superseded
//! ```

use holdfast_common::claim::Claim;
use holdfast_common::report::Declined;

use crate::authority;
use crate::decision::Answer;
use crate::draft::Draft;
use crate::event::Event;
use crate::explain;
use crate::handlers::heard;
use crate::input::{Jitter, Speaker, Via};
use crate::lease;
use crate::split;
use crate::state::{Attempt, AttemptState};

pub(crate) fn answered(
    draft: &mut Draft<'_>,
    speaker: &Speaker,
    claim: &Claim,
    declined: Option<Declined>,
    jitter: Jitter,
) -> Answer {
    let Ok(attempt) = authority::current(draft.state(), draft.now, speaker, claim) else { return Answer::Superseded };
    let on_offer = attempt.state == AttemptState::Offered;
    match declined {
        None => {
            take(draft, claim);
            heard::heard(draft, speaker, claim, Via::Session)
        }
        Some(_) if on_offer && attempt.open_permit().is_some() => {
            let because = format!("{} can't go on with what it had begun", speaker.agent);
            split::uncertain(draft, because);
            Answer::Done
        }
        Some(Declined { reason, detail }) if on_offer => {
            draft.record(Event::OfferDeclined { attempt: claim.attempt, reason, detail: detail.clone() });
            wait_or_cancel(draft, speaker, &Declined { reason, detail }, jitter);
            Answer::Done
        }
        Some(_) => Answer::Done,
    }
}

/// Records that the offer was taken, where that was not heard yet: any word of work under the claim implies it.
pub(crate) fn take(draft: &mut Draft<'_>, claim: &Claim) {
    let last = draft.current().and_then(|deployment| deployment.attempts.last());
    let on_offer = |attempt: &&Attempt| attempt.id == claim.attempt && attempt.state == AttemptState::Offered;
    if last.filter(on_offer).is_some() {
        let timeout = draft.current().filter(|deployment| deployment.deadline.is_none());
        let timeout = timeout.and_then(|deployment| deployment.spec.timeouts.deployment);
        let deadline = timeout.map(|timeout| draft.now.serving.after(timeout));
        draft.record(Event::OfferAccepted { attempt: claim.attempt, deadline });
    }
}

fn wait_or_cancel(draft: &mut Draft<'_>, speaker: &Speaker, declined: &Declined, jitter: Jitter) {
    let Some(deployment) = draft.current() else { return };
    if deployment.cancel.is_some() {
        return split::after_cancel(draft);
    }
    let declines = deployment.attempts.iter().rev().take_while(|attempt| !attempt.state.is_try()).count();
    let delay = lease::backoff(&deployment.spec.retry, u32::try_from(declines).unwrap_or(u32::MAX), jitter);
    let because = explain::declined(deployment, &speaker.agent, declined);
    split::wait(draft, &because, delay);
}
