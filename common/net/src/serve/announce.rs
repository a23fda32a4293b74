use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

/// Writes an address that was taken to a file, so that a reader finds all of it or nothing.
pub fn announce(file: &Path, address: SocketAddr) -> io::Result<()> {
    let mut fresh = file.as_os_str().to_owned();
    fresh.push(".new");
    fs::write(&fresh, address.to_string())?;
    fs::rename(&fresh, file)
}
