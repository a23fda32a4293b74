//! Who may call what.
//!
//! Agents are known by their certificate, operators by a token that only its hash is kept of. [`methods`] is the one
//! table of what each method demands, [`guard`] enforces it before any handler, [`role`] says what a role may, and
//! [`scope`] on which targets. Which target a request is about only its handler knows: it asks
//! [`crate::grpc`]'s own `find`, which gives out no target and no deployment without a permission on it.

pub mod guard;
pub mod guesses;
pub mod methods;
pub mod renewals;
pub mod revocations;
pub mod role;
pub mod scope;
pub mod secret;
pub mod token;

use std::time::Duration;

use holdfast_common::id::{AgentName, OperatorName};
use holdfast_common::time::Wall;
use tonic::Status;

pub use guard::{Books, Guard, Refusals, Tokens};
pub use guesses::Guesses;
pub use revocations::{Revocations, ShownCertificate};
pub use role::{Permission, Role};
pub use scope::{Grant, Scope};
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
    /// What it may, and where.
    pub scope: Scope,
    /// When the token ends.
    pub expires_at: Wall,
    /// By which the token is known: whoever serves for long looks from time to time whether it is still good.
    pub hash: Hash,
}

/// The agent behind a request. Put there by [`Guard`], from the certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertifiedAgent(pub AgentName);

/// The join token behind a request, and where it comes from. Put there by [`Guard`]: nobody has looked yet whether it is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresentedToken {
    /// By which it is looked up.
    pub hash: Hash,
    /// Whose guesses it counts among.
    pub address: std::net::IpAddr,
}

/// Who the guard let in. A handler whose row demands it can't be reached without.
pub fn caller<C: Clone + Send + Sync + 'static, T>(request: &tonic::Request<T>) -> Result<C, Status> {
    request.extensions().get::<C>().cloned().ok_or_else(|| {
        tracing::error!("a request reached its handler past the guard");
        Status::unauthenticated("not signed in")
    })
}
