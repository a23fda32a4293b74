//! Secret values: where they come from, and how they are kept out of what is written.
//!
//! The agent knows names and paths. Who needs values reads them at the moment of need: the shim for a step under a permit and for
//! redaction, the agent for an inspection. No value is written anywhere but into the folder that a command is shown.

mod folder;
mod forms;
mod redactor;
mod sources;

pub(crate) use folder::Folder;
pub use redactor::Redactor;
pub use sources::{Secrets, Sources, sources};

/// Values that are shorter are not redacted: they would be found everywhere.
pub const SHORTEST: usize = 6;
/// The variable that names the folder of a command's credentials.
pub const VARIABLE: &str = "HOLDFAST_CREDENTIALS";
