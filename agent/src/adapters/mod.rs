//! What changes resources and reads them.

pub mod command;
pub mod exit;
pub mod external;
pub(crate) mod git;
pub mod halt;
mod http;
pub mod postgres;
pub mod release;
pub mod system;
