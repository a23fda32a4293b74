//! A connection that is accepted is healthy.

use crate::http::dial;
use crate::internal::with_causes;

/// Connects, and closes again at once.
pub(super) async fn look(address: &str) -> Result<(), String> {
    let (host, port) = split(address).ok_or_else(|| format!("{address:?} is no address"))?;
    dial(host, port).await.map(drop).map_err(|error| with_causes(&error))
}

/// `host:port`, an IPv6 address in brackets.
fn split(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    Some((host.trim_start_matches('[').trim_end_matches(']'), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_split_at_their_last_colon() {
        assert_eq!(split("127.0.0.1:80"), Some(("127.0.0.1", 80)));
        assert_eq!(split("[::1]:8080"), Some(("::1", 8080)));
        assert_eq!(split("host"), None);
        assert_eq!(split("host:x"), None);
    }
}
