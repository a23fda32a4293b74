//! I2: fences per target strictly increase with every lease and every fence-off.

use super::Step;
use crate::event::Event;
use crate::state::InquiryKind;

pub(super) fn holds(step: &Step<'_>) -> Result<(), &'static str> {
    let highest = step.before.and_then(|before| before.fence);
    let allocated = match &step.recorded.event {
        Event::LeaseGranted { fence, .. } => Some(*fence),
        Event::InquiryOpened { inquiry, .. } => match inquiry.kind {
            InquiryKind::FenceOff { fence } => Some(fence),
            InquiryKind::Inspect => None,
        },
        _ => None,
    };
    match allocated {
        Some(fence) if Some(fence) <= highest => Err("a fence was allocated that is not above all before it"),
        Some(fence) if step.after.fence != Some(fence) => Err("an allocated fence did not raise the target's"),
        None if step.after.fence != highest => Err("the target's fence changed without an allocation"),
        Some(_) | None => Ok(()),
    }
}
