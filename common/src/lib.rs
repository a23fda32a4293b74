//! The words that every part of Holdfast shares.
//!
//! Nothing here does I/O, waits, reads a clock or draws a random number. Two different things never
//! share a type: every identity, fence, sequence, instant and duration is a type of its own, and text from
//! outside becomes one of them by a fallible conversion at the border.
//!
//! | module | holds |
//! | --- | --- |
//! | [`id`] | identities and names |
//! | [`fence`] | the generation of ownership |
//! | [`claim`] | what every message about work carries |
//! | [`time`] | wall time for people, serving time for leases, durations |
//! | [`spec`] | what was asked for: a deployment and a target, resolved |
//! | [`system`] | resources that keep a ledger of their own, and what is asked of them |
//! | [`file`] | the two TOML files that people write, read into a [`spec`] |
//! | [`archive`] | where an archive comes from |
//! | [`adapter`] | what each adapter can prove |
//! | [`outcome`] | what was observed: exits, ends of steps, readings |
//! | [`report`] | what an agent says, and how it is answered |
//! | [`recovery`] | runner and target states, decisions, attestations |
//! | [`code`] | the stable code of every refusal |
//! | [`explain`] | what each code and each state means, for people |
//! | [`problem`] | a refusal as it is shown and sent |
//! | [`text`] | text from outside, made safe to show |

#![warn(clippy::wildcard_enum_match_arm)]

pub mod adapter;
pub mod archive;
pub mod claim;
pub mod code;
pub mod explain;
pub mod fence;
pub mod file;
pub mod id;
pub mod outcome;
pub mod problem;
pub mod recovery;
pub mod report;
pub mod rollback;
pub mod spec;
pub mod system;
pub mod text;
pub mod time;
