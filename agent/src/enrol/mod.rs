//! How a host becomes an agent, and stays one.
//!
//! ```text
//! identity/
//!   joining/        key of a host that has asked and not heard: asked again with the same key it is the same enrolment
//!   <a number>/     agent.key  agent.pem  ca.pem  identity.json
//!   current      ─▶ the newest of them, changed by one rename
//! ```
//!
//! Keys are made here, for their owner alone, and never leave the host.

mod ask;
mod folder;
pub mod join;
pub mod renew;

pub use folder::{Error, Folder, Kept};
