//! Accepting connections, and the preset gRPC server.
//!
//! [`incoming`] accepts and shakes hands where it is called; [`Threads`] do so in turn, one connection each.
//!
//! ```text
//! let services = Routes::new().with(HealthServer::new(..)).with(AgentServiceServer::new(..));
//! serve::builder(&limits).serve_with_incoming_shutdown(services, serve::incoming(listener, tls, &limits), stop).await
//! ```

mod accept;
mod announce;
mod newest;
mod routes;
mod threads;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tonic::transport::Server;

pub(crate) use accept::survive;
pub use accept::{Incoming, Listener, incoming};
pub use announce::announce;
pub(crate) use newest::Newest;
pub use routes::Routes;
pub use threads::{Error, Serving, Threads};

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
