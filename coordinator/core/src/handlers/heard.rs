//! A sign of life under a claim.
//!
//! ```text
//! on             planned absence        what follows
//! session        none, or it is over    renewed; written once for each run
//! session        under way              renewed; the absence is over, which is written
//! upload         none, or it is over    renewed; written once for each run
//! upload         under way              renewed, and the absence goes on: output may arrive after the word of who goes
//! ```

use holdfast_common::claim::Claim;

use crate::authority;
use crate::decision::Answer;
use crate::draft::Draft;
use crate::event::Event;
use crate::input::{Speaker, Via};
use crate::state::AttemptState;

/// Renews the lease of a running attempt: in memory, and once per run also on disk, as after a planned absence. An offer is not kept alive by
/// anything but its answer, so that it is answered or lapses.
pub(crate) fn heard(draft: &mut Draft<'_>, speaker: &Speaker, claim: &Claim, via: Via) -> Answer {
    let now = draft.now;
    let Ok(attempt) = authority::current(draft.state(), now, speaker, claim) else { return Answer::Superseded };
    let Some(lease) = attempt.lease.as_ref() else { return Answer::Superseded };
    if attempt.state != AttemptState::Running {
        return Answer::Done;
    }
    let ttl = lease.ttl;
    let away = lease.away.as_ref().is_some_and(|away| !away.is_back);
    let writes = match (away, via) {
        (true, Via::Session) => true,
        (true, Via::Upload) => false,
        (false, Via::Session | Via::Upload) => lease.written_run != now.run,
    };
    if writes {
        draft.record(Event::LeaseRenewed { attempt: claim.attempt, run: now.run, serving: now.serving });
    }
    Answer::Renewed { heard: now.serving, ttl }
}
