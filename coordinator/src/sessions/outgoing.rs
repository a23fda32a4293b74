//! The way to one agent: a bounded queue that never makes its sender wait.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use holdfast_common::code::Code;
use holdfast_proto::{MAX_MESSAGE_BYTES, v1};
use prost::Message as _;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// Messages that may wait for an agent that reads slowly. One that falls further behind loses its session; what it
/// missed is derived again when it comes back.
pub const QUEUE: usize = 1024;

/// Bytes of messages that may wait for an agent, in whole numbers of the largest: whoever asks much and reads nothing costs no more.
const QUEUE_BYTES: usize = 4 * MAX_MESSAGE_BYTES;

/// A message and its size on the wire.
#[derive(Debug)]
struct Queued {
    response: v1::ConnectResponse,
    bytes: usize,
}

/// The sending end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Outgoing {
    // Boxed: a queue of tokio has room for 32 messages from the start, and most sessions are idle.
    sender: mpsc::Sender<Box<Queued>>,
    bytes: Arc<AtomicUsize>,
    over: CancellationToken,
}

impl Outgoing {
    /// Both ends.
    #[must_use]
    pub fn new() -> (Self, Answers) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let bytes = Arc::new(AtomicUsize::new(0));
        (Self { sender, bytes: Arc::clone(&bytes), over: CancellationToken::new() }, Answers { receiver, bytes })
    }

    /// Queues a message. A queue that is full or closed ends the session.
    pub fn send(&self, message: v1::connect_response::Message) {
        if self.over.is_cancelled() {
            return;
        }
        let response = v1::ConnectResponse { message: Some(message) };
        let bytes = response.encoded_len();
        let waiting = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let queued = waiting <= QUEUE_BYTES && self.sender.try_send(Box::new(Queued { response, bytes })).is_ok();
        if !queued {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            tracing::warn!(waiting, "an agent does not read its messages, its session is dropped");
            self.over.cancel();
        }
    }

    /// Whether so much waits for the agent that nothing more of it is to be read.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.sender.capacity() < QUEUE / 2
    }

    /// Returns once it has read half of what may wait, or is gone.
    pub async fn until_read(&self) {
        drop(self.sender.reserve_many(QUEUE / 2).await);
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

    /// Whether the session has been ended from either side.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over.is_cancelled() || self.sender.is_closed()
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
pub struct Answers {
    receiver: mpsc::Receiver<Box<Queued>>,
    bytes: Arc<AtomicUsize>,
}

impl Answers {
    /// What is queued, without waiting.
    #[cfg(test)]
    pub(super) fn take(&mut self) -> Vec<v1::connect_response::Message> {
        std::iter::from_fn(|| self.receiver.try_recv().ok()).filter_map(|queued| queued.response.message).collect()
    }
}

impl Stream for Answers {
    type Item = Result<v1::ConnectResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.receiver.poll_recv(cx);
        next.map(|next| {
            let Queued { response, bytes } = *next?;
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
            Some(Ok(response))
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _};

    use super::*;

    fn message(bytes: usize) -> v1::connect_response::Message {
        v1::connect_response::Message::Bye(v1::Bye { code: String::new(), detail: "x".repeat(bytes) })
    }

    #[test]
    fn who_reads_nothing_is_left_by_count_and_by_bytes_and_who_reads_is_not() {
        let (small, _answers) = Outgoing::new();
        (0..QUEUE).for_each(|_| small.send(message(1)));
        assert!(!small.is_over());
        small.send(message(1));
        assert!(small.is_over());

        let (large, mut answers) = Outgoing::new();
        let bytes = QUEUE_BYTES / 3;
        for _ in 0..100 {
            large.send(message(bytes));
            large.send(message(bytes));
            for _ in 0..2 {
                assert!(answers.next().now_or_never().flatten().is_some_and(|answer| answer.is_ok()));
            }
        }
        assert!(!large.is_over(), "what was read does not count");
        (0..3).for_each(|_| large.send(message(bytes)));
        assert!(large.is_over());
    }
}
