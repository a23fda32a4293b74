//! The way to one agent: a bounded queue that never makes its sender wait.

use std::pin::Pin;
use std::task::{Context, Poll};

use holdfast_common::code::Code;
use holdfast_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// Messages that may wait for an agent that reads slowly. One that falls further behind loses its session; what it
/// missed is derived again when it comes back.
pub const QUEUE: usize = 1024;

/// The sending end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Outgoing {
    // Boxed: a queue of tokio has room for 32 messages from the start, and most sessions are idle.
    sender: mpsc::Sender<Box<v1::ConnectResponse>>,
    over: CancellationToken,
}

impl Outgoing {
    /// Both ends.
    #[must_use]
    pub fn new() -> (Self, Answers) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self { sender, over: CancellationToken::new() }, Answers(receiver))
    }

    /// Queues a message. A queue that is full or closed ends the session.
    pub fn send(&self, message: v1::connect_response::Message) {
        if self.over.is_cancelled() {
            return;
        }
        if let Err(error) = self.sender.try_send(Box::new(v1::ConnectResponse { message: Some(message) })) {
            tracing::warn!(%error, "an agent does not read its messages, its session is dropped");
            self.over.cancel();
        }
    }

    /// Says goodbye and ends the session.
    pub fn bye(&self, code: Code, detail: &str) {
        self.send(v1::connect_response::Message::Bye(v1::Bye { code: code.to_string(), detail: detail.to_owned() }));
        self.over.cancel();
    }

    /// Ends the session without a word.
    pub fn close(&self) {
        self.over.cancel();
    }

    /// Whether the session has been ended from this side.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    /// Returns once the session has been ended from either side.
    pub async fn over(&self) {
        tokio::select! {
            () = self.over.cancelled() => {}
            () = self.sender.closed() => {}
        }
    }
}

/// What is written to the agent, in order. Ends when every sending end is gone.
#[derive(Debug)]
pub struct Answers(mpsc::Receiver<Box<v1::ConnectResponse>>);

impl Answers {
    /// What is queued, without waiting.
    #[cfg(test)]
    pub(super) fn take(&mut self) -> Vec<v1::connect_response::Message> {
        std::iter::from_fn(|| self.0.try_recv().ok()).filter_map(|response| response.message).collect()
    }
}

impl Stream for Answers {
    type Item = Result<v1::ConnectResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|next| next.map(|response| Ok(*response)))
    }
}
