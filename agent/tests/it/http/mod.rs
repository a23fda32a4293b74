//! The http adapter's real processes against the example's real API, through a proxy that loses things.

mod access;
pub(crate) mod api;
mod fences;
pub(crate) mod proxy;
mod reading;
pub(crate) mod scene;
mod submitting;
mod tls;

const REFUSED_CONTENT: i32 = 65;
const MACHINERY: i32 = 71;
const REFUSED_FENCE: i32 = 73;
const REFUSED_REVISION: i32 = 74;
const TRANSIENT: i32 = 75;
const REFUSED_RESOURCE: i32 = 78;
