//! Serving on several threads, each with a runtime of its own.
//!
//! A connection lives on one of them from its handshake on, with all that is done for its calls: what happens for it wakes that
//! thread and no second one, and two connections are served by two processors. Connections are dealt out in turn.
//!
//! ```text
//! listener ──▶ accepted here ──┬──▶ serve-0: handshake, HTTP/2, handlers
//!                              └──▶ serve-1: the same
//! ```

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::{SendError, TrySendError};
use tokio::task::JoinHandle;
use tonic::transport;

use super::accept::Door;
use super::{Incoming, Limits, Listener, incoming};
use crate::tls::ServerTls;

/// Connections that may wait for a thread that is busy.
const WAITING: usize = 64;

/// How serving ended on one thread.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server failed.
    #[error(transparent)]
    Server(#[from] transport::Error),
    /// It panicked.
    #[error("a server panicked: {0}")]
    Panic(#[from] tokio::task::JoinError),
}

/// Runtimes of one thread each. What runs in them is left behind when this is dropped.
#[derive(Debug)]
pub struct Threads(Vec<Runtime>);

impl Threads {
    /// As many as there are processors for this process.
    ///
    /// # Errors
    /// The system gives no thread, or no descriptors for its runtime.
    pub fn start() -> io::Result<Self> {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = |number| {
            Builder::new_multi_thread().worker_threads(1).thread_name(format!("serve-{number}")).enable_all().build()
        };
        (0..count).map(runtime).collect::<io::Result<_>>().map(Self)
    }

    /// The runtimes, to be measured.
    #[must_use]
    pub fn runtimes(&self) -> Vec<Handle> {
        self.0.iter().map(|runtime| runtime.handle().clone()).collect()
    }

    /// Accepts on the runtime that it is called on, and runs `serve` on each thread with the connections that are its. Once one of
    /// them takes no more connections, the listening socket is closed.
    pub fn serve<F>(
        self,
        listener: TcpListener,
        tls: &ServerTls,
        limits: &Limits,
        serve: impl Fn(Incoming<TcpStream>) -> F + Clone + Send + 'static,
    ) -> Serving
    where
        F: Future<Output = Result<(), transport::Error>> + Send,
    {
        let limits = Limits { handshakes: limits.handshakes.div_ceil(self.0.len()), ..*limits };
        let (mut ways, ends) = (Vec::with_capacity(self.0.len()), FuturesUnordered::new());
        for runtime in &self.0 {
            let (way, dealt) = mpsc::channel(WAITING);
            let (tls, serve) = (tls.clone(), serve.clone());
            ends.push(runtime.spawn(async move { serve(incoming(Dealt(dealt), tls, &limits)).await }));
            ways.push(way);
        }
        tokio::spawn(deal(listener, ways));
        Serving { ends, _threads: self }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Runtime::shutdown_background);
    }
}

/// Threads that serve. Dropped, it cuts what they serve.
#[derive(Debug)]
pub struct Serving {
    ends: FuturesUnordered<JoinHandle<Result<(), transport::Error>>>,
    _threads: Threads,
}

impl Serving {
    /// The next end of serving on a thread; `None` after the last one.
    ///
    /// # Errors
    /// How it failed.
    pub async fn next_end(&mut self) -> Option<Result<(), Error>> {
        let end = self.ends.next().await?;
        Some(end.map_err(Error::from).and_then(|served| served.map_err(Error::from)))
    }
}

type Accepted = (std::net::TcpStream, SocketAddr);
type Way = mpsc::Sender<Accepted>;

/// Deals out until somebody takes no more.
async fn deal(listener: TcpListener, ways: Vec<Way>) {
    let mut closed: FuturesUnordered<_> = ways.iter().map(Way::closed).collect();
    let mut door = Door::new(listener);
    for turn in (0..ways.len()).cycle() {
        let (stream, address) = tokio::select! {
            _ = closed.next() => return,
            accepted = door.next() => accepted,
        };
        // It is known to this runtime, and is to wake another one.
        match stream.into_std() {
            Ok(stream) => {
                if hand(&ways, turn, (stream, address)).await.is_err() {
                    return;
                }
            }
            Err(error) => tracing::warn!(%address, %error, "a connection could not be handed to its thread"),
        }
    }
}

/// To the one whose turn it is, or to the next that is not too busy. Where all are, it waits for that one.
async fn hand(ways: &[Way], turn: usize, accepted: Accepted) -> Result<(), SendError<Accepted>> {
    let mut accepted = accepted;
    for way in ways[turn..].iter().chain(&ways[..turn]) {
        match way.try_send(accepted) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Full(back)) => accepted = back,
            Err(TrySendError::Closed(back)) => return Err(SendError(back)),
        }
    }
    ways[turn].send(accepted).await
}

/// The connections of one thread.
struct Dealt(mpsc::Receiver<Accepted>);

impl Listener for Dealt {
    type Stream = TcpStream;

    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        match self.0.recv().await {
            Some((stream, address)) => Ok((TcpStream::from_std(stream)?, address)),
            // There will be none. Who accepts is ended by who serves.
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(listener: &std::net::TcpListener) -> Accepted {
        let address = listener.local_addr().unwrap();
        (std::net::TcpStream::connect(address).unwrap(), address)
    }

    #[tokio::test]
    async fn a_thread_that_is_too_busy_is_passed_over_and_waited_for_where_all_are() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let (ways, mut dealt): (Vec<Way>, Vec<_>) = (0..2).map(|_| mpsc::channel(1)).unzip();
        for _ in 0..2 {
            hand(&ways, 0, connection(&listener)).await.unwrap();
        }
        assert_eq!(dealt.iter().map(mpsc::Receiver::len).collect::<Vec<_>>(), [1, 1]);
        let third = hand(&ways, 1, connection(&listener));
        tokio::pin!(third);
        assert!(futures_util::poll!(&mut third).is_pending(), "both are busy");
        assert!(dealt[1].recv().await.is_some());
        third.await.unwrap();
        assert_eq!(dealt.iter().map(mpsc::Receiver::len).collect::<Vec<_>>(), [1, 1]);
        drop(dealt);
        hand(&ways, 0, connection(&listener)).await.unwrap_err();
    }
}
