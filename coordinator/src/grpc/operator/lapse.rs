//! What is told for long ends with the token that opened it.
//!
//! A token is looked at when a call begins. A stream may outlive it, so the stream looks again from time to time: a token
//! that was taken back or has expired, also by another program on the store, ends it within seconds.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::Stream;
use holdfast_common::id::TargetName;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::find;
use crate::auth::guard;
use crate::auth::{Operator, Permission, Tokens};
use crate::grpc::shared::Shared;
use crate::tokens::StoredTokens;

/// How often a token is looked at while something is told under it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A stream under a token.
pub struct Told<T> {
    inner: ReceiverStream<Result<T, Status>>,
    lapse: Pin<Box<dyn Future<Output = Status> + Send>>,
    over: bool,
}

impl<T> Told<T> {
    /// What is told to `by` about the target, for as long as they may view it.
    pub(super) fn new(
        inner: ReceiverStream<Result<T, Status>>,
        shared: &Shared,
        by: Operator,
        target: TargetName,
    ) -> Self {
        Self { inner, lapse: Box::pin(lapse(shared.clone(), by, Some(target))), over: false }
    }

    /// What is told to `by` about no single target, for as long as their token is good.
    pub(super) fn anywhere(inner: ReceiverStream<Result<T, Status>>, shared: &Shared, by: Operator) -> Self {
        Self { inner, lapse: Box::pin(lapse(shared.clone(), by, None)), over: false }
    }
}

impl<T> Stream for Told<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        if let Poll::Ready(status) = self.lapse.as_mut().poll(cx) {
            self.over = true;
            return Poll::Ready(Some(Err(status)));
        }
        let next = ready!(Pin::new(&mut self.inner).poll_next(cx));
        self.over = next.is_none();
        Poll::Ready(next)
    }
}

/// Comes with the reason, once there is one.
async fn lapse(shared: Shared, by: Operator, target: Option<TargetName>) -> Status {
    let tokens = StoredTokens::new(shared.reader.clone());
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        match guard::standing(tokens.find(by.hash).await, by.hash, shared.now()) {
            Err(status) => return status,
            Ok(now) => match &target {
                Some(target) if !now.scope.may(Permission::View, target) => {
                    return find::no_such_deployment(target.as_str());
                }
                Some(_) | None => {}
            },
        }
    }
}
