//! What our own adapters exit with, and how that is classed.
//!
//! | exit | means | class |
//! | --- | --- | --- |
//! | 0 | applied, now or before | |
//! | 65, 73, 74, 78 | refused, and nothing was changed | permanent |
//! | 75 | the resource asks for another try later, and nothing is under way | transient |
//! | 72 | a part of it is there, the rest was refused, and nothing is under way | permanent |
//! | 69 | it could not be begun | infrastructure |
//! | any other | what became of it is not said | infrastructure |

use holdfast_common::outcome::FailureClass;

/// What was to be put in place is not fit for it.
pub(crate) const REFUSED_CONTENT: u8 = 65;
/// A higher fence was seen.
pub(crate) const REFUSED_FENCE: u8 = 73;
/// The revision is not the expected one.
pub(crate) const REFUSED_REVISION: u8 = 74;
/// Another try later may go well.
pub(crate) const TRANSIENT: u8 = 75;
/// A part of it is there, and the rest was refused.
pub(crate) const PART: u8 = 72;
/// It could not be begun.
pub(crate) const NOT_BEGUN: u8 = 69;
/// The resource is not what it was declared to be.
pub(crate) const REFUSED_RESOURCE: u8 = 78;
/// A call failed, and what became of it is not said.
pub(crate) const MACHINERY: u8 = 71;

/// Whether an exit says that nothing was changed, and that another try would change nothing either.
#[must_use]
pub(crate) fn is_refusal(status: i32) -> bool {
    let refusals = [REFUSED_CONTENT, REFUSED_FENCE, REFUSED_REVISION, REFUSED_RESOURCE];
    refusals.iter().any(|refusal| i32::from(*refusal) == status)
}

/// Whether an exit other than 0 says that nothing of what was asked for is under way.
#[must_use]
pub(crate) fn tells(status: i32) -> bool {
    is_refusal(status) || [TRANSIENT, NOT_BEGUN, PART].iter().any(|exit| i32::from(*exit) == status)
}

/// How a failed call of an adapter of ours is classed.
#[must_use]
pub fn class_of_exit(status: i32) -> FailureClass {
    match status {
        status if is_refusal(status) || status == i32::from(PART) => FailureClass::Permanent,
        status if status == i32::from(TRANSIENT) => FailureClass::Transient,
        _ => FailureClass::Infrastructure,
    }
}
