//! The gate before every handler.
//!
//! It looks a request's path up in [`super::methods`], checks what that row demands against the connection's
//! certificate and the request's token, leaves who the caller is in the request's extensions, and bounds the time of
//! methods that answer once. A path without a row never reaches a service.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use holdfast_common::code::Code;
use holdfast_common::id::{AgentName, TargetName};
use holdfast_common::problem::Problem;
use holdfast_common::time::Wall;
use holdfast_net::bearer;
use holdfast_net::peer::Peer;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::metadata::MetadataMap;

use super::guesses::Guesses;
use super::methods::{Answers, Demand, Method, Over, method};
use super::revocations::{Revocations, ShownCertificate};
use super::role::Permission;
use super::scope::Scope;
use super::secret::Hash;
use super::token::{Standing, Token};
use super::{DEADLINE, Operator, PresentedToken, WallClock};
use crate::grpc::status;

/// Where tokens are looked up.
pub trait Tokens: Send + Sync + 'static {
    /// The token with that hash. The error's text goes to the log, never to a caller.
    fn find(&self, hash: Hash) -> Pin<Box<dyn Future<Output = Result<Option<Token>, String>> + Send + '_>>;
}

/// Where it is kept that somebody who is signed in was refused.
pub trait Refusals: Send + Sync + 'static {
    /// Keeps it, or drops it when there is too much to do: a refusal never waits.
    fn keep(&self, who: String, what: String, why: String);
}

/// The gate around `inner`.
#[derive(Clone)]
pub struct Guard<S> {
    inner: S,
    books: Books,
}

/// What the gate looks things up in.
#[derive(Clone)]
pub struct Books {
    /// Operators' tokens.
    pub tokens: Arc<dyn Tokens>,
    /// Where refusals are kept.
    pub refusals: Arc<dyn Refusals>,
    /// Certificates that open nothing.
    pub revocations: Revocations,
    /// Who presented wrong join tokens.
    pub guesses: Arc<Guesses>,
    /// For people, and for the expiry of tokens.
    pub clock: WallClock,
}

impl<S> Guard<S> {
    /// Around a service that answers every row of the table.
    pub fn new(inner: S, books: Books) -> Self {
        Self { inner, books }
    }
}

impl<S> Service<Request<Body>> for Guard<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send> + Clone + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        // The clone takes the place of the one that was polled ready.
        let next = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, next);
        let books = self.books.clone();
        Box::pin(async move {
            let Some(method) = method(request.uri().path()) else {
                return Ok(Status::unimplemented("no such method").into_http());
            };
            if let Err(refused) = admit(method, &mut request, &books).await {
                return Ok(refused.into_http());
            }
            match method.answers {
                Answers::Streaming => ready.call(request).await,
                Answers::Once => tokio::time::timeout(DEADLINE, ready.call(request))
                    .await
                    .unwrap_or_else(|_| Ok(status::of(&too_slow()).into_http())),
            }
        })
    }
}

async fn admit(method: &Method, request: &mut Request<Body>, books: &Books) -> Result<(), Status> {
    match method.demand {
        Demand::Nothing => Ok(()),
        Demand::AgentCertificate => {
            let shown = request.extensions().get::<Peer>().and_then(of_agent);
            let (agent, shown) = shown.ok_or_else(|| status::plain(Code::NotAnAgent, Code::NotAnAgent.title()))?;
            if books.revocations.bar(&agent, &shown) {
                books.refusals.keep(format!("agent {agent}"), method.path.to_owned(), revoked_title(&agent));
                return Err(revoked(&agent));
            }
            request.extensions_mut().insert(super::CertifiedAgent(agent));
            request.extensions_mut().insert(shown);
            Ok(())
        }
        Demand::JoinToken => {
            let hash = presented(request.headers())?;
            let address = request.extensions().get::<Peer>().map(|peer| peer.address.ip());
            let address = address.ok_or_else(|| Status::internal("a connection without a peer"))?;
            if books.guesses.shut_out(address, Instant::now()) {
                return Err(guessing());
            }
            request.extensions_mut().insert(PresentedToken { hash, address });
            Ok(())
        }
        Demand::SignedIn => {
            let operator = signed_in(presented(request.headers())?, books).await?;
            request.extensions_mut().insert(operator);
            Ok(())
        }
        Demand::Token(permission, over) => {
            let operator = signed_in(presented(request.headers())?, books).await?;
            if !enough(&operator.scope, permission, over) {
                let problem = not_allowed(&operator, permission, None);
                books.refusals.keep(operator.name.to_string(), method.path.to_owned(), problem.title.clone());
                return Err(status::of(&problem));
            }
            request.extensions_mut().insert(operator);
            Ok(())
        }
    }
}

fn of_agent(peer: &Peer) -> Option<(AgentName, ShownCertificate)> {
    let (fingerprint, validity) = (peer.fingerprint.clone()?, peer.validity?);
    let (valid_from, valid_until) = (validity.from, validity.until);
    Some((peer.agent.clone()?, ShownCertificate { fingerprint, valid_from, valid_until }))
}

fn revoked_title(agent: &AgentName) -> String {
    format!("this certificate of agent {agent} was revoked, or the agent was removed")
}

/// The refusal to an agent whose certificate opens nothing any more.
pub(crate) fn revoked(agent: &AgentName) -> Status {
    status::of(
        &Problem::new(Code::CertificateRevoked, revoked_title(agent))
            .so("what runs on its host goes on and is not touched; what it would report is refused")
            .next(format!(
                "if the host is to come back, an operator: holdfast agent remove {agent} --confirm {agent} --reason TEXT, unless it \
                 was removed; then holdfast agent token create --name {agent}"
            ))
            .next("then on the host: holdfast-agent join")
            .with("agent", agent.as_str()),
    )
}

/// The refusal to an address that guessed too often.
pub(crate) fn guessing() -> Status {
    status::of(
        &Problem::new(Code::JoinGuessing, "too many wrong join tokens came from this address")
            .so("no token from there is looked at for ten minutes; agents that are enrolled are not affected")
            .next("wait ten minutes, then join with the token as it was shown"),
    )
}

fn presented(headers: &HeaderMap) -> Result<Hash, Status> {
    let metadata = MetadataMap::from_headers(headers.clone());
    let text = bearer::token(&metadata).map_err(|error| status::of(&not_signed_in(&error.to_string())))?;
    text.map(Hash::of).ok_or_else(|| status::of(&not_signed_in("a token is required")))
}

async fn signed_in(hash: Hash, books: &Books) -> Result<Operator, Status> {
    standing(books.tokens.find(hash).await, hash, (books.clock)())
}

/// Who it is that a token was found for, if it is good now.
pub(crate) fn standing(found: Result<Option<Token>, String>, hash: Hash, now: Wall) -> Result<Operator, Status> {
    let found = found.map_err(|error| {
        tracing::error!(%error, "could not look a token up");
        status::plain(Code::StoreFailed, Code::StoreFailed.title())
    })?;
    let token = found.ok_or_else(|| status::of(&not_signed_in("the token is not known")))?;
    match token.standing(now) {
        Standing::Valid => Ok(Operator { name: token.name, scope: token.scope, expires_at: token.expires_at, hash }),
        // The same answer as for a token that never was.
        Standing::Revoked => Err(status::of(&not_signed_in("the token is not known"))),
        Standing::Expired => Err(status::of(
            &Problem::new(Code::TokenExpired, "the token has expired")
                .so("nothing was changed")
                .next("ask an admin for a new one: holdfast token create --name NAME --role ROLE --ttl 30d")
                .next("then: holdfast login ADDRESS"),
        )),
    }
}

/// What the gate itself can tell. About one target, and of lists, the handler tells the rest.
fn enough(scope: &Scope, permission: Permission, over: Over) -> bool {
    match over {
        Over::OneTarget | Over::Each => scope.may_somewhere(permission),
    }
}

/// The refusal to somebody who is signed in, and may see that target if one is named.
pub(crate) fn not_allowed(operator: &Operator, permission: Permission, target: Option<&TargetName>) -> Problem {
    let words = permission.words();
    let problem = match target {
        Some(target) => Problem::new(Code::NotAllowed, format!("{} may not {words} on {target}", operator.name))
            .with("target", target.as_str()),
        None => Problem::new(Code::NotAllowed, format!("{} may not {words}", operator.name)),
    };
    problem
        .known(format!("the token's grants are {}", operator.scope))
        .so("nothing was changed")
        .next("holdfast whoami")
}

fn not_signed_in(why: &str) -> Problem {
    Problem::new(Code::NotSignedIn, format!("not signed in: {why}"))
        .so("nothing was changed")
        .next("holdfast login ADDRESS, with a token of this coordinator")
}

fn too_slow() -> Problem {
    Problem::new(Code::NoAnswer, format!("no answer within {} s", DEADLINE.as_secs()))
        .not_known("whether the request was taken")
        .so("repeat a submission under the same request id; look before you repeat anything else")
}
