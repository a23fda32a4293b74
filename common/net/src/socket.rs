//! What every TCP connection of ours is told, at both of its ends.

use std::io;
use std::time::Duration;

use rustix::net::sockopt::set_tcp_user_timeout;
use tokio::net::TcpStream;

/// How long sent bytes may wait for the peer's system to acknowledge them, before the connection is given up. The same as a
/// keepalive's interval and the wait for its answer: it holds also where nobody asks, as while a connection is being ended.
pub(crate) const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

/// Small messages go at once, and what can't be delivered is known.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let milliseconds = u32::try_from(UNACKNOWLEDGED.as_millis()).unwrap_or(u32::MAX);
    Ok(set_tcp_user_timeout(stream, milliseconds)?)
}
