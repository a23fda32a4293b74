//! Accepting connections.
//!
//! One task accepts; each handshake is a task of its own, so a peer that stalls in the middle of one delays nobody.
//! When [`Limits::handshakes`] are under way, the oldest is dropped for the newest: a real client is done within
//! milliseconds, a half-open socket is not. The accept loop ends only when its [`Incoming`] is dropped, which closes
//! the listening socket.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_stream::Stream;

use super::{Limits, Newest};
use crate::peer::PeerStream;
use crate::room::Spare;
use crate::tls::ServerTls;

/// Where connections come from: a TCP listener, or a simulated one.
pub trait Listener: Send + 'static {
    /// One connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next connection and where it comes from.
    fn accept(&mut self) -> impl Future<Output = io::Result<(Self::Stream, SocketAddr)>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&mut self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, address) = TcpListener::accept(self).await?;
        // Fails only on a socket that is already gone; the handshake will say so.
        let _ = crate::socket::prepare(&stream);
        Ok((stream, address))
    }
}

/// Connections that are through their handshake, for `serve_with_incoming_shutdown`.
#[derive(Debug)]
pub struct Incoming<S> {
    ready: mpsc::Receiver<PeerStream<S>>,
}

/// Starts to accept. Needs a tokio runtime.
#[must_use]
pub fn incoming<L: Listener>(listener: L, tls: ServerTls, limits: &Limits) -> Incoming<L::Stream> {
    let (sender, ready) = mpsc::channel(64);
    tokio::spawn(accept(listener, tls, limits.handshakes, sender));
    Incoming { ready }
}

impl<S> Stream for Incoming<S> {
    type Item = Result<PeerStream<S>, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.ready.poll_recv(cx).map(|next| next.map(Ok))
    }
}

async fn accept<L: Listener>(listener: L, tls: ServerTls, limit: usize, ready: mpsc::Sender<PeerStream<L::Stream>>) {
    let mut handshakes = Newest::new(limit);
    let mut door = Door::new(listener);
    loop {
        let (stream, address) = tokio::select! {
            () = ready.closed() => return,
            next = door.next() => next,
        };
        handshakes.start(shake(tls.clone(), stream, address, ready.clone()));
    }
}

/// A listener of which no error is the end.
pub(super) struct Door<L> {
    listener: L,
    spare: Spare,
}

impl<L: Listener> Door<L> {
    pub(super) fn new(listener: L) -> Self {
        Self { listener, spare: Spare::take() }
    }

    /// The next connection that can be had.
    pub(super) async fn next(&mut self) -> (L::Stream, SocketAddr) {
        loop {
            match self.listener.accept().await {
                Ok(next) => return next,
                Err(error) if is_out_of_descriptors(&error) => {
                    if let Some(next) = self.turn_away(&error).await {
                        return next;
                    }
                }
                Err(error) => survive(&error).await,
            }
        }
    }

    /// Whoever waits hears at once that nobody will answer, and the sessions that are there go on.
    async fn turn_away(&mut self, error: &io::Error) -> Option<(L::Stream, SocketAddr)> {
        let accepted = self.spare.lend(tokio::time::timeout(PAUSE, self.listener.accept())).await;
        let next = match accepted {
            // There was room for the spare again: the lack is over.
            Some(Ok(Ok(next))) if self.spare.is_held() => Some(next),
            Some(Ok(Ok((stream, address)))) => {
                drop(stream);
                tracing::debug!(%address, %error, "a connection was turned away");
                tokio::time::sleep(PAUSE).await;
                None
            }
            Some(Ok(Err(_)) | Err(_)) | None => {
                tokio::time::sleep(PAUSE).await;
                None
            }
        };
        self.spare.renew();
        next
    }
}

async fn shake<S>(tls: ServerTls, stream: S, address: SocketAddr, ready: mpsc::Sender<PeerStream<S>>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match tls.accept(stream, address).await {
        Ok(stream) => {
            tracing::debug!(%address, agent = ?stream.peer().agent, "connection accepted");
            // Closed means that the server is shutting down.
            let _ = ready.send(stream).await;
        }
        Err(error) => tracing::debug!(%address, %error, "connection refused in its TLS handshake"),
    }
}

/// After an error that is not over with its connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Errors of one connection are over with it. All others (no descriptors, no memory) need a pause, not an end.
pub(crate) async fn survive(error: &io::Error) {
    if !of_one_connection(error.kind()) {
        tracing::warn!(%error, "could not accept a connection, trying again");
        tokio::time::sleep(PAUSE).await;
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

fn of_one_connection(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(kind, ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}
