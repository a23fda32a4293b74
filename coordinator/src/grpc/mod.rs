//! The services on the wire. Thin: they translate, ask the driver, and translate back.

pub mod agent;
pub mod enroll;
mod files;
mod measure;
pub mod operator;
mod refused;
pub mod shared;
pub mod status;
pub mod view;

pub use agent::{Agents, Measures, PaceBounds};
pub use enroll::{Enrolling, Signer};
pub use files::Files;
pub use measure::Measured;
pub use operator::Operators;
pub use shared::{Limits, Shared};
