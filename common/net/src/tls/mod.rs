//! TLS 1.3, and nothing older, with aws-lc-rs as the only provider.
//!
//! Files are read again when they change: a sound set counts from the next handshake on, a broken one is told and the old
//! one stays.
//!
//! Sessions are never resumed and early data is off: every connection proves itself by a full handshake, so a rotated
//! CA or a revoked certificate counts from the next connection on, and nothing recorded can be replayed.

mod client;
mod error;
mod few;
mod kept;
mod looking;
mod pem;
mod server;

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

pub use client::ClientTls;
pub use error::Error;
pub use kept::{LOOK_EVERY, Looked};
pub use server::{Handshake, ServerTls};

/// gRPC is HTTP/2 and says so.
const ALPN: &[u8] = b"h2";

/// Makes aws-lc-rs the process's provider, for libraries that ask for the default one. For `main`; a second call does
/// nothing.
pub fn install_default() {
    // An error means that a provider is already there, and this workspace builds only one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}
