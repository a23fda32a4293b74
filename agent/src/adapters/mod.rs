//! What changes resources and reads them.

pub mod release;
