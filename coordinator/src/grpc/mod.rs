//! The services on the wire. Thin: they translate, ask the driver, and translate back.

pub mod status;
pub mod view;
