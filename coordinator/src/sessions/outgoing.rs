//! The way to one agent: a bounded queue that never makes its sender wait.

use holdfast_common::code::Code;
use holdfast_proto::v1;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Messages that may wait for an agent that reads slowly. One that falls further behind loses its session; what it
/// missed is derived again when it comes back.
pub const QUEUE: usize = 256;

/// The sending end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Outgoing {
    sender: mpsc::Sender<v1::ConnectResponse>,
    over: CancellationToken,
}

impl Outgoing {
    /// Both ends.
    pub(super) fn new() -> (Self, mpsc::Receiver<v1::ConnectResponse>) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Self { sender, over: CancellationToken::new() }, receiver)
    }

    /// Queues a message. A queue that is full or closed ends the session.
    pub fn send(&self, message: v1::connect_response::Message) {
        if self.over.is_cancelled() {
            return;
        }
        if let Err(error) = self.sender.try_send(v1::ConnectResponse { message: Some(message) }) {
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

    /// Returns once the session has been ended from this side.
    pub async fn over(&self) {
        self.over.cancelled().await;
    }
}
