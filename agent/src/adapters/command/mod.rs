//! Commands: an argv without a shell, in a scrubbed environment.
//!
//! Nothing is enforced at the resource. Where a target declares an inspection command, the first line it prints is the
//! resource's revision.

mod environment;
mod inspect;

pub(crate) use environment::search_path;
pub use environment::{Context, environment};
pub use inspect::{Error, Inspection, inspect};
