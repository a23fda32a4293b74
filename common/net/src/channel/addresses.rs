use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};

use super::Error;

/// Where a coordinator may be: one address or several, tried in this order.
///
/// Written as text like `https://a.example:7443`, or `a:7443, b:7443`, or as a list of such texts. A host may be a name. A name is
/// looked up at every dial, and all that it stands for then is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses(Vec<Address>);

impl Addresses {
    /// More than these can't each have a fair share of the time to connect.
    pub const MOST: usize = 8;

    fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let all: Vec<_> = texts.into_iter().map(Address::parse).collect::<Result<_, _>>()?;
        match all.len() {
            1..=Self::MOST => Ok(Self(all)),
            0 => Err(Error::Count { found: 0 }),
            found => Err(Error::Count { found }),
        }
    }

    pub(super) fn first(&self) -> &Address {
        self.0.first().expect("there is at least one")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Address> {
        self.0.iter()
    }
}

impl FromStr for Addresses {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::of(text.split(',').map(str::trim))
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.iter().map(Address::text).collect();
        f.write_str(&texts.join(", "))
    }
}

impl<'de> Deserialize<'de> for Addresses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrList)
    }
}

struct TextOrList;

impl<'de> Visitor<'de> for TextOrList {
    type Value = Addresses;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address like \"https://host:port\", or a list of such")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Addresses, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Addresses, A::Error> {
        let mut texts = Vec::<String>::new();
        while let Some(text) = list.next_element()? {
            texts.push(text);
        }
        Addresses::of(texts.iter().map(String::as_str)).map_err(de::Error::custom)
    }
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Address {
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let bad = |reason| Error::Address { text: text.to_owned(), reason };
        let rest = match text.split_once("://") {
            Some(("https", rest)) => rest.strip_suffix('/').unwrap_or(rest),
            Some(("http", _)) => return Err(bad("Holdfast speaks TLS only")),
            Some(_) => return Err(bad("the scheme is not https")),
            None => text,
        };
        let authority: http::uri::Authority = rest.parse().map_err(|_| bad("it is not a host and a port"))?;
        if authority.as_str().contains('@') {
            return Err(bad("it has a user name"));
        }
        let port = authority.port_u16().filter(|port| *port != 0).ok_or_else(|| bad("it has no valid port"))?;
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(bad("it has no host"));
        }
        Ok(Self { host: host.to_owned(), port })
    }

    pub(super) fn text(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_the_scheme() {
        for (text, host, port) in [
            ("https://deploy.example:7443", "deploy.example", 7443),
            ("https://deploy.example:7443/", "deploy.example", 7443),
            ("127.0.0.1:1", "127.0.0.1", 1),
            ("[::1]:7443", "::1", 7443),
        ] {
            assert_eq!(Address::parse(text).expect(text), Address { host: host.to_owned(), port });
        }
    }

    #[test]
    fn addresses_that_can_not_be_dialled_say_why() {
        for (text, reason) in [
            ("http://host:1", "TLS only"),
            ("ftp://host:1", "scheme"),
            ("host", "port"),
            ("host:0", "port"),
            ("host:70000", "port"),
            ("https://host:1/path", "host and a port"),
            ("https://user@host:1", "user name"),
            (":1", "host"),
            ("", "host and a port"),
        ] {
            let error = Address::parse(text).expect_err(text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn several_addresses_are_a_list_or_a_text_with_commas() {
        #[derive(serde::Deserialize)]
        struct File {
            address: Addresses,
        }
        let read = |text: &str| toml::from_str::<File>(text).map(|file| file.address);
        let two: Addresses = "https://a:1, b:2".parse().expect("two addresses");
        assert_eq!(two.to_string(), "a:1, b:2");
        assert_eq!(read("address = [\"a:1\", \"https://b:2/\"]").expect("a list"), two);
        assert_eq!(read("address = \"a:1,b:2\"").expect("a text"), two);
        for (text, reason) in [
            ("address = []", "between 1 and 8"),
            ("address = [\"a:1\", \"b\"]", "\"b\" is not a coordinator's address: it has no valid port"),
            ("address = \"a:1,\"", "host and a port"),
            ("address = 7", "an address like"),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
        let many = ["a:1"; Addresses::MOST + 1].join(",");
        assert!(many.parse::<Addresses>().expect_err("too many").to_string().contains("9 were given"));
    }
}
