//! Who may call what.
//!
//! Agents are known by their certificate, operators by a token that only its hash is kept of. [`methods`] is the one
//! table of what each method demands, [`guard`] enforces it before any handler, [`role`] says what a token may.

pub mod guard;
pub mod methods;
pub mod role;
pub mod secret;
pub mod token;

use std::time::Duration;

use holdfast_common::id::{AgentName, OperatorName};
use holdfast_common::time::Wall;
use tonic::Status;

pub use guard::{Guard, Tokens};
pub use role::{Permission, Role};
pub use secret::{Hash, Secret};
pub use token::{Standing, Token};

/// Longest time that a call may take which answers once.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// Tells the time for people, and for the expiry of tokens.
pub type WallClock = fn() -> Wall;

/// The operator behind a request. Put there by [`Guard`], from the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// Whose token it is.
    pub name: OperatorName,
    /// What it may.
    pub role: Role,
    /// When the token ends.
    pub expires_at: Wall,
}

/// The agent behind a request. Put there by [`Guard`], from the certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedAgent(pub AgentName);

/// Who the guard let in. A handler whose row demands it can't be reached without.
pub fn caller<C: Clone + Send + Sync + 'static, T>(request: &tonic::Request<T>) -> Result<C, Status> {
    request.extensions().get::<C>().cloned().ok_or_else(|| {
        tracing::error!("a request reached its handler past the guard");
        Status::unauthenticated("not signed in")
    })
}
