//! What a service tells of itself to those who look after it: `/livez`, `/readyz` and `/metrics`, and to its manager.
//!
//! ```text
//!   kubelet, Prometheus, curl ── plain HTTP ──▶ server ── answer ─┬─ Health: parts that register themselves
//!                                                                 └─ metrics: a text made when it is asked for
//! ```
//!
//! The listener is one of its own, so that whoever asks needs no certificate and can't get in the way of agents. It takes
//! GET and HEAD of three paths, one request per connection, and everything about a connection is bounded. What it
//! tells has no ids and no secrets; still it listens on loopback unless it is told otherwise.
//!
//! | file | holds |
//! | --- | --- |
//! | `settings.rs` | where to listen, how slow is dead |
//! | `health.rs` | parts and what they say |
//! | `kept.rs` | a part that a file is |
//! | `notify.rs` | what the service manager hears |
//! | `pulse.rs` | whether a work loop turns |
//! | `answer.rs` | a request's answer, pure |
//! | `server.rs` | the listener |
//! | `table.rs` | metrics as a table, checked against what is served |
//! | `process.rs` | the process's own figures |

mod answer;
mod health;
mod kept;
mod notify;
pub mod process;
mod pulse;
mod server;
mod settings;
pub mod table;

pub use answer::{Answer, Asked, Form, Page};
pub use health::{Health, Part, Report, State};
pub use kept::kept;
pub use notify::Manager;
pub use pulse::{Doing, Pulse};
pub use server::{Error, Pages, Server, listen};
pub use settings::{Address, Settings};
