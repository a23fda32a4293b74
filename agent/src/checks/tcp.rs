//! A connection that is accepted is healthy.

use tokio::net::{TcpStream, lookup_host};

/// Connects to the first address of the host that accepts, and closes again at once.
pub(super) async fn look(address: &str) -> Result<(), String> {
    let found = lookup_host(address).await.map_err(|error| format!("could not resolve {address}: {error}"))?;
    let mut refused = "the name has no address".to_owned();
    for socket in found {
        match TcpStream::connect(socket).await {
            Ok(_) => return Ok(()),
            Err(error) => refused = format!("could not connect: {error}"),
        }
    }
    Err(refused)
}
