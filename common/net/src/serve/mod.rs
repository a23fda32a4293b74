//! Accepting connections, and the preset gRPC server.
//!
//! One task accepts; each handshake is a task of its own, so a peer that stalls in the middle of one delays nobody.
//! When [`Limits::handshakes`] are under way, the oldest is dropped for the newest: a real client is done within
//! milliseconds, a half-open socket is not. The accept loop ends only when its [`Incoming`] is dropped, which closes
//! the listening socket.
//!
//! ```text
//! let services = Routes::new().with(HealthServer::new(..)).with(AgentServiceServer::new(..));
//! serve::builder(&limits).serve_with_incoming_shutdown(services, serve::incoming(listener, tls, &limits), stop).await
//! ```

mod announce;
mod newest;
mod routes;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::transport::Server;

use crate::peer::PeerStream;
use crate::room::Spare;
use crate::tls::ServerTls;

pub use announce::announce;
pub(crate) use newest::Newest;
pub use routes::Routes;

/// What bounds a server's connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// An HTTP/2 ping goes out after this long without a frame from the peer.
    pub keepalive_interval: Duration,
    /// The connection is given up when a ping is not answered for this long.
    pub keepalive_timeout: Duration,
    /// Handshakes under way at the same time. As many as can wait to be accepted: agents that come back together drop none of
    /// each other.
    pub handshakes: usize,
    /// Requests and streams open at the same time on one connection.
    pub streams_per_connection: u32,
    /// Largest request headers, in bytes.
    pub header_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            keepalive_interval: Duration::from_secs(5),
            keepalive_timeout: Duration::from_secs(5),
            handshakes: BACKLOG as usize,
            streams_per_connection: 256,
            header_bytes: 16 * 1024,
        }
    }
}

/// A gRPC server with every HTTP/2 bound set. Deadlines are the services' own: a stream may live for days. Several
/// services on it are [`Routes`].
#[must_use]
pub fn builder(limits: &Limits) -> Server {
    Server::builder()
        .accept_http1(false)
        .http2_keepalive_interval(Some(limits.keepalive_interval))
        .http2_keepalive_timeout(Some(limits.keepalive_timeout))
        .max_concurrent_streams(limits.streams_per_connection)
        .concurrency_limit_per_connection(limits.streams_per_connection as usize)
        .http2_max_header_list_size(limits.header_bytes)
        .http2_max_pending_accept_reset_streams(Some(20))
        .http2_max_local_error_reset_streams(Some(1024))
        .initial_stream_window_size(256 * 1024)
        .initial_connection_window_size(1024 * 1024)
}

/// Listens there with room for [`BACKLOG`] connections that wait to be accepted: when every agent of a coordinator that was
/// away connects within a second, none of them is turned away. Port 0 takes a free one.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The system may allow fewer: `net.core.somaxconn`.
pub const BACKLOG: u32 = 4096;

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

async fn accept<L: Listener>(
    mut listener: L,
    tls: ServerTls,
    limit: usize,
    ready: mpsc::Sender<PeerStream<L::Stream>>,
) {
    let mut handshakes = Newest::new(limit);
    let mut spare = Spare::take();
    loop {
        let accepted = tokio::select! {
            () = ready.closed() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => handshakes.start(shake(tls.clone(), stream, address, ready.clone())),
            Err(error) if is_out_of_descriptors(&error) => {
                // Whoever waits hears at once that nobody will answer, and the sessions that are there go on.
                match spare.lend(tokio::time::timeout(PAUSE, listener.accept())).await {
                    // There was room for the spare again: the lack is over.
                    Some(Ok(Ok((stream, address)))) if spare.is_held() => {
                        handshakes.start(shake(tls.clone(), stream, address, ready.clone()));
                    }
                    Some(Ok(Ok((stream, address)))) => {
                        drop(stream);
                        tracing::debug!(%address, %error, "a connection was turned away");
                        tokio::time::sleep(PAUSE).await;
                    }
                    Some(Ok(Err(_)) | Err(_)) | None => tokio::time::sleep(PAUSE).await,
                }
                spare.renew();
            }
            Err(error) => survive(&error).await,
        }
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
