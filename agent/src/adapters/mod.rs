//! What changes resources and reads them.

pub mod command;
pub mod release;
