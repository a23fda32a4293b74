//! Whether an offered attempt is taken.
//!
//! | the agent holds | the offer | answer |
//! | --- | --- | --- |
//! | the same attempt under the same fence | again | taken already: accept, change nothing |
//! | the same attempt under another fence, or another attempt under the same fence | | conflict |
//! | another attempt of the deployment whose process may be alive | | conflict |
//! | an attempt of another deployment of the target whose process may be alive | | busy |
//! | nothing alive on the target | fence not above the highest seen | fence regression |
//! | nothing alive on the target | fence above the highest seen | take |

use holdfast_common::claim::Claim;
use holdfast_common::fence::Fence;
use holdfast_common::report::DeclineReason;

use crate::bugs::{self, Bug};
use crate::work::Work;

/// What to do about an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// Journal it and the fence, then accept.
    Take,
    /// It is held already: accept again.
    TakenAlready,
    /// Say why not.
    Decline(DeclineReason),
}

/// Judges an offer against what is held on its target and the highest fence seen there. A running work is never touched.
pub fn judge<'a>(claim: Claim, held: impl IntoIterator<Item = &'a Work>, seen: Option<Fence>) -> Verdict {
    for work in held {
        let other = work.assignment.claim;
        let same_attempt = other.attempt == claim.attempt;
        if other == claim {
            return Verdict::TakenAlready;
        }
        if same_attempt || other.fence == claim.fence {
            return Verdict::Decline(DeclineReason::Conflict);
        }
        if work.may_run() {
            let same_deployment = other.deployment == claim.deployment;
            let reason = if same_deployment { DeclineReason::Conflict } else { DeclineReason::Busy };
            return Verdict::Decline(reason);
        }
    }
    let regressed = seen.is_some_and(|seen| claim.fence <= seen);
    if regressed && !bugs::on(Bug::FenceNotCompared) {
        return Verdict::Decline(DeclineReason::FenceRegression);
    }
    Verdict::Take
}
