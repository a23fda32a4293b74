//! Counts calls: each once, when its answer is over, under the code that its caller was told.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::codegen::{Bytes, Service};
use tonic::{Code, Status};

use crate::auth::methods::{Answers, method};
use crate::metrics::{Metrics, facts, label_of};

/// A service whose calls are counted.
#[derive(Clone)]
pub struct Measured<S> {
    inner: S,
    metrics: Arc<Metrics>,
}

impl<S> Measured<S> {
    /// Around all of them.
    pub fn new(inner: S, metrics: Arc<Metrics>) -> Self {
        Self { inner, metrics }
    }
}

impl<S> Service<Request<Body>> for Measured<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let call = Call::begin(Arc::clone(&self.metrics), request.uri().path());
        let answer = self.inner.call(request);
        Box::pin(async move {
            // Dropped before its answer, the call counts as cancelled.
            let mut call = call;
            let response = answer.await?;
            if let Some(status) = Status::from_header_map(response.headers()) {
                call.over(&status);
                return Ok(response);
            }
            Ok(response.map(|body| Body::new(Counted { body, call: Some(call) })))
        })
    }
}

/// A call under way.
struct Call {
    metrics: Arc<Metrics>,
    method: &'static str,
    once: bool,
    begun: Instant,
    over: bool,
}

impl Call {
    fn begin(metrics: Arc<Metrics>, path: &str) -> Self {
        // What is no method of ours must not become a label.
        let row = method(path);
        let name = row.map_or("other", |row| label_of(row.path));
        metrics.call_began(name);
        let once = row.is_some_and(|row| row.answers == Answers::Once);
        Self { metrics, method: name, once, begun: Instant::now(), over: false }
    }

    fn over(&mut self, status: &Status) {
        if let Some(code) = facts::refusal(status) {
            self.metrics.refused(self.method, code);
        }
        self.end(status.code());
    }

    fn end(&mut self, code: Code) {
        if !std::mem::replace(&mut self.over, true) {
            let took = self.once.then(|| self.begun.elapsed());
            self.metrics.call_ended(self.method, word(code), took);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.end(Code::Cancelled);
    }
}

/// A body whose end is the end of its call.
struct Counted {
    body: Body,
    call: Option<Call>,
}

impl Counted {
    fn over(&mut self, trailers: Option<&HeaderMap>) {
        let Some(mut call) = self.call.take() else { return };
        match trailers.and_then(Status::from_header_map) {
            Some(status) => call.over(&status),
            None => call.end(Code::Unknown),
        }
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(trailers) = frame.trailers_ref() {
                    self.over(Some(trailers));
                }
            }
            Some(Err(_)) | None => self.over(None),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// As gRPC spells it.
fn word(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
