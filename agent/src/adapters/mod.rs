//! What changes resources and reads them.

pub mod command;
pub mod exit;
pub mod halt;
pub mod postgres;
pub mod release;
pub mod system;
