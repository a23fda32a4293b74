//! What our own adapters exit with, and how that is classed.
//!
//! | exit | means | class |
//! | --- | --- | --- |
//! | 0 | applied, now or before | |
//! | 65, 73, 74, 78 | refused, and nothing was changed | permanent |
//! | 75 | the resource asks for another try later | transient |
//! | any other | the machinery: what became of it is not said | infrastructure |

use holdfast_common::outcome::FailureClass;

/// What was to be put in place is not fit for it.
pub(crate) const REFUSED_CONTENT: u8 = 65;
/// A higher fence was seen.
pub(crate) const REFUSED_FENCE: u8 = 73;
/// The revision is not the expected one.
pub(crate) const REFUSED_REVISION: u8 = 74;
/// Another try later may go well.
pub(crate) const TRANSIENT: u8 = 75;
/// The resource is not what it was declared to be.
pub(crate) const REFUSED_RESOURCE: u8 = 78;
/// A call failed.
pub(crate) const MACHINERY: u8 = 71;

/// Whether an exit says that nothing was changed, and that another try would change nothing either.
#[must_use]
pub(crate) fn is_refusal(status: i32) -> bool {
    let refusals = [REFUSED_CONTENT, REFUSED_FENCE, REFUSED_REVISION, REFUSED_RESOURCE];
    refusals.iter().any(|refusal| i32::from(*refusal) == status)
}

/// How a failed call of an adapter of ours is classed.
#[must_use]
pub fn class_of_exit(status: i32) -> FailureClass {
    match status {
        status if is_refusal(status) => FailureClass::Permanent,
        status if status == i32::from(TRANSIENT) => FailureClass::Transient,
        _ => FailureClass::Infrastructure,
    }
}
