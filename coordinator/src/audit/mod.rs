//! The record as a file that anybody can check.
//!
//! One JSON object per line, `line` says which kind:
//!
//! | line | holds |
//! | --- | --- |
//! | `head` | first: format, store, epoch, who exported it when, and of what |
//! | `event` | one event: what is hashed, the hash before it and its own. Its `body` is a text, exactly as it was hashed |
//! | `evidence`, `decision` | right behind the event that has it, as an object, for reading and searching |
//! | `act` | what was done and is about no target, chained by itself |
//! | `refusal` | what was asked for in vain; the latest ones, chained with nothing |
//! | `end` | last: how many lines are before it, their SHA-256 (`head -n -1 FILE \| sha256sum`), and the head of each chain |
//!
//! A target's events stand together and in order, from the first one. How a hash is made: [`crate::store::chain`]. Whoever can
//! rewrite a whole store can hash it anew; an earlier file tells: every later one goes on from its heads.

pub mod export;
mod file;
mod line;
#[cfg(test)]
mod tests;

pub use file::{Checked, Fault, check, goes_on};
pub use line::{FORMAT, Head, Line, Tip};
