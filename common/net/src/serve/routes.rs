use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use futures_util::future::Either;
use http::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Body as HttpBody, Bytes, StdError};
use tonic::server::NamedService;
use tower::util::{BoxCloneSyncService, Oneshot};
use tower::{Service, ServiceExt};

type Route = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// Several gRPC services on one server, told apart by the first part of the path. A service that is not here is
/// `UNIMPLEMENTED`.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    services: BTreeMap<&'static str, Route>,
}

impl Routes {
    /// No services.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With one more service: a generated `...Server`, with or without an interceptor.
    #[must_use]
    pub fn with<S, B>(mut self, service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>, Error = Infallible, Future: Send>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        B: HttpBody<Data = Bytes, Error: Into<StdError>> + Send + 'static,
    {
        let plain = service.map_response(|response: Response<B>| response.map(Body::new));
        self.services.insert(S::NAME, BoxCloneSyncService::new(plain));
        self
    }

    /// The full names of the services, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.services.keys().copied()
    }
}

impl Service<Request<Body>> for Routes {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<Oneshot<Route, Request<Body>>, Ready<Result<Response<Body>, Infallible>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match request.uri().path().split('/').nth(1).and_then(|name| self.services.get(name)) {
            Some(service) => Either::Left(service.clone().oneshot(request)),
            None => Either::Right(ready(Ok(Status::unimplemented("no such service").into_http()))),
        }
    }
}
