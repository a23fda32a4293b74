//! Time has passed.
//!
//! ```text
//! what passed                    what is recorded
//! a lease                        the split; nothing else in the same tick
//! a deadline                     see `deadline`: a request to stop with cause timeout; ends nothing that may have begun
//! a delay                        it waits for its assignment; under a hold that is seen when the hold ends
//! a hold's time                  the hold ends, and what waited for it goes on
//! ```

use crate::decision::Answer;
use crate::draft::Draft;
use crate::due;
use crate::event::Event;
use crate::handlers::{deadline, hold};
use crate::input::Jitter;
use crate::split;
use crate::state::{Deployment, Waiting};

pub(crate) fn tick(draft: &mut Draft<'_>, jitter: Jitter) -> Answer {
    let before = draft.current().and_then(Deployment::live).map(|attempt| attempt.id);
    split::lapse(draft, jitter);
    let after = draft.current().and_then(Deployment::live).map(|attempt| attempt.id);
    if before == after {
        deadline::pass(draft);
        hold::expire(draft);
        delay(draft);
    }
    Answer::Done
}

fn delay(draft: &mut Draft<'_>) {
    if due::is_on_hold(draft.state()) {
        return;
    }
    let Some(deployment) = draft.current().filter(|deployment| deployment.live().is_none()) else { return };
    if deployment.not_before.is_some_and(|instant| instant <= draft.now.serving) {
        let id = deployment.id;
        draft.record(Event::Waits { deployment: id, why: Waiting::Assignment, not_before: None });
    }
}
