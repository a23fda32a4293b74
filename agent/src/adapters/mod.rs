//! What changes resources and reads them.

pub mod command;
pub mod exit;
pub mod external;
pub mod halt;
pub mod release;
pub mod system;
