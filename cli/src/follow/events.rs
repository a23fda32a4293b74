//! ```text
//!          ┌── read what is recorded ──┐        ┌── stay for more ──┐
//!  ──────▶ │ WatchEvents follow=false  │ ─────▶ │ follow=true       │
//!     ▲    └───────────────────────────┘ caught └─────────┬─────────┘
//!     └───────────────── lost: wait, then again ──────────┘ up
//! ```
//!
//! Each stream begins after the last event that was seen. Reading up to the end first tells where the past ends: a
//! deployment that once was uncertain is not uncertain now.

use std::time::Duration;

use holdfast_net::backoff::Backoff;
use holdfast_proto::v1;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::Streaming;

use crate::client::Client;
use crate::failure::Failure;
use crate::refusal::{self, Call};

const FIRST_DELAY: Duration = Duration::from_millis(200);
const MAX_DELAY: Duration = Duration::from_secs(5);
/// How long a coordinator may be away before a command gives up. The deployment goes on either way.
const PATIENCE: Duration = Duration::from_secs(300);

/// What there is to tell.
#[derive(Debug)]
pub enum News {
    /// The next event.
    Event(Box<v1::Event>),
    /// Everything that is recorded was told; what follows is new.
    CaughtUp,
    /// Contact with the coordinator is lost. It is tried again.
    Lost(Failure),
}

/// A task that follows, and ends when nobody listens any more.
#[derive(Debug)]
pub struct Follower {
    news: mpsc::Receiver<Result<News, Failure>>,
}

impl Follower {
    /// From an event of this sequence number on.
    #[must_use]
    pub fn start(client: Client, deployment: String, from: u64, follow: bool) -> Self {
        let (sender, news) = mpsc::channel(64);
        let backoff = Backoff::new(FIRST_DELAY, MAX_DELAY, rand::random());
        let task = Task { client, deployment, next: from.max(1), follow, backoff, lost_since: None, sender };
        tokio::spawn(task.run());
        Self { news }
    }

    /// The next news; `None` after the last one. Can be dropped without losing any.
    pub async fn next(&mut self) -> Result<Option<News>, Failure> {
        self.news.recv().await.transpose()
    }
}

struct Task {
    client: Client,
    deployment: String,
    next: u64,
    follow: bool,
    backoff: Backoff,
    lost_since: Option<Instant>,
    sender: mpsc::Sender<Result<News, Failure>>,
}

/// How one stream ended.
enum End {
    NobodyListens,
    Over,
}

impl Task {
    async fn run(mut self) {
        loop {
            match self.round().await {
                Ok(End::NobodyListens) => return,
                Ok(End::Over) if !self.follow => return,
                Ok(End::Over) => {}
                Err(failure) => {
                    let since = *self.lost_since.get_or_insert_with(Instant::now);
                    let last = !self.follow || !failure.is_no_answer() || since.elapsed() >= PATIENCE;
                    let news = if last { Err(failure) } else { Ok(News::Lost(failure)) };
                    if self.sender.send(news).await.is_err() || last {
                        return;
                    }
                }
            }
            tokio::select! {
                () = self.sender.closed() => return,
                () = tokio::time::sleep(self.backoff.next()) => {}
            }
        }
    }

    async fn round(&mut self) -> Result<End, Failure> {
        let recorded = self.client.events(&self.deployment, self.next, false).await?;
        if let End::NobodyListens = self.tell(recorded).await? {
            return Ok(End::NobodyListens);
        }
        if self.sender.send(Ok(News::CaughtUp)).await.is_err() {
            return Ok(End::NobodyListens);
        }
        self.lost_since = None;
        self.backoff.reset();
        if !self.follow {
            return Ok(End::Over);
        }
        let live = self.client.events(&self.deployment, self.next, true).await?;
        self.tell(live).await
    }

    async fn tell(&mut self, mut stream: Streaming<v1::WatchEventsResponse>) -> Result<End, Failure> {
        loop {
            let message = tokio::select! {
                () = self.sender.closed() => return Ok(End::NobodyListens),
                message = stream.message() => message.map_err(|status| refusal::of(&status, &Call::Reads))?,
            };
            let Some(message) = message else { return Ok(End::Over) };
            let event = message.event.ok_or(Failure::incomplete("event"))?;
            if event.sequence < self.next {
                continue;
            }
            self.next = event.sequence.saturating_add(1);
            if self.sender.send(Ok(News::Event(Box::new(event)))).await.is_err() {
                return Ok(End::NobodyListens);
            }
        }
    }
}
