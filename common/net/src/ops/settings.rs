use std::net::SocketAddr;
use std::path::PathBuf;

use holdfast_common::time::Millis;
use serde::Deserialize;

use crate::config::Span;

/// The `[ops]` section of both services.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Where to listen, or `off`. Without it, loopback and the service's own port.
    pub address: Option<Address>,
    /// A file that gets the address that was taken.
    pub address_file: Option<PathBuf>,
    /// A work loop that takes longer for one turn is dead: `/livez` says so.
    pub live_within: Span,
    /// A work loop that takes longer for one turn is not ready.
    pub ready_within: Span,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            address: None,
            address_file: None,
            live_within: Span(Millis::from_secs(30)),
            ready_within: Span(Millis::from_secs(5)),
        }
    }
}

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Address {
    /// Nowhere.
    Off,
    /// There. Port 0 takes a free one.
    At(SocketAddr),
}

/// Neither `off` nor an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address: write it like \"127.0.0.1:7444\", or \"off\"")]
pub struct NotAnAddress;

impl TryFrom<String> for Address {
    type Error = NotAnAddress;

    fn try_from(text: String) -> Result<Self, NotAnAddress> {
        match text.as_str() {
            "off" => Ok(Address::Off),
            text => text.parse().map(Address::At).map_err(|_| NotAnAddress),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_off_or_has_a_port() {
        let read = |text: &str| Address::try_from(text.to_owned());
        assert_eq!(read("off"), Ok(Address::Off));
        assert_eq!(read("[::1]:9"), Ok(Address::At("[::1]:9".parse().unwrap())));
        for text in ["", "on", "127.0.0.1", ":7444", "localhost:7444"] {
            assert_eq!(read(text), Err(NotAnAddress), "{text}");
        }
    }
}
