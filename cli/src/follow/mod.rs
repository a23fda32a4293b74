//! Following a deployment's events, over lost connections, without losing or repeating one.

mod events;
mod teller;

pub use events::{Follower, News};
pub use teller::{Teller, Told};
