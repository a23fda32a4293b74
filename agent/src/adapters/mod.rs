//! What changes resources and reads them.

pub mod command;
pub mod exit;
pub mod external;
pub mod git;
pub mod halt;
pub mod http;
pub mod postgres;
pub mod release;
pub mod system;
