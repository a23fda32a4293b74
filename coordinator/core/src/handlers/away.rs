//! An agent says that it goes and will be back.
//!
//! ```text
//! standing      state      absence before      what follows
//! current       running    none                the lease outlasts it, within the bound; it was heard
//! current       running    one already         nothing: once for each lease
//! current       offered    -                   nothing: an offer is answered, or it lapses
//! not current   -          -                   superseded
//! ```
//!
//! It moves an end and nothing else: no permit, no step, no other attempt. When its time is over the lease lapses as ever.

use holdfast_common::claim::Claim;
use holdfast_common::time::Millis;

use crate::authority;
use crate::decision::Answer;
use crate::draft::Draft;
use crate::event::Event;
use crate::input::Speaker;
use crate::lease;
use crate::state::AttemptState;

pub(crate) fn away(draft: &mut Draft<'_>, speaker: &Speaker, claim: &Claim, asked: Millis, bound: Millis) -> Answer {
    let now = draft.now;
    let Ok(attempt) = authority::current(draft.state(), now, speaker, claim) else { return Answer::Superseded };
    let Some(lease) = attempt.lease.as_ref().filter(|_| attempt.state == AttemptState::Running) else {
        return Answer::Done;
    };
    if let Some(away) = lease::away(lease, now, asked, bound) {
        draft.record(Event::AgentAway { attempt: claim.attempt, away, serving: now.serving });
    }
    Answer::Done
}
