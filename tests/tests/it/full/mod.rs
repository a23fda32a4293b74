//! Full disks at every named point of coordinator, agent and shim, in blocks and in inodes; a reserve that is used up; and no
//! descriptors. New work is refused, what runs ends on record, health says why, and all goes on by itself.

mod descriptors;
pub(crate) mod filling;
mod points;
mod reserve;
