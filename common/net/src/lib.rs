//! What Holdfast's three programs share at their edges: TLS, channels, backoff, configuration, room, telemetry.
//!
//! ```text
//!   agent, CLI                                            coordinator
//!   channel::connect ── TcpStream ─ tls::ClientTls ═══ tls::ServerTls ─ TcpListener ── serve::incoming
//!        │                                                                                  │
//!   tonic Channel                                                    PeerStream + Peer ── serve::builder
//! ```
//!
//! Both ends are generic over the byte stream below TLS, so that they also run over a simulated network.
//!
//! | module | holds |
//! | --- | --- |
//! | [`tls`] | TLS 1.3 for both sides, from PEM files |
//! | [`peer`] | who is at the other end, from its certificate |
//! | [`serve`] | accepting connections and the preset gRPC server |
//! | [`channel`] | dialling the coordinator |
//! | [`bearer`] | the operator's token in a request's metadata |
//! | [`backoff`] | exponential delays with full jitter |
//! | [`config`] | a TOML file overridden by `HOLDFAST_*` |
//! | [`room`] | whether there is room on the disk, and the reserve |
//! | [`telemetry`] | the log on stderr |
//! | [`ops`] | health and metrics, on a listener of their own |
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod backoff;
pub mod bearer;
pub mod channel;
pub mod config;
pub mod ops;
pub mod peer;
pub mod room;
pub mod serve;
mod socket;
pub mod telemetry;
pub mod tls;
