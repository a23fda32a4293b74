//! The operator's token in a request's metadata: `authorization: Bearer TOKEN`.

use std::fmt;

use tonic::metadata::{Ascii, MetadataMap, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};

const KEY: &str = "authorization";
const SCHEME: &str = "Bearer";
const MAX_TOKEN_BYTES: usize = 512;

/// Why a token could not be sent or read. Never holds the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The header is there twice.
    #[error("more than one authorization header")]
    Repeated,
    /// The header is not `Bearer TOKEN`.
    #[error("the authorization header is not \"Bearer TOKEN\"")]
    Malformed,
    /// Empty, too long, or with spaces or characters that a header can't hold.
    #[error("the token is empty, longer than {MAX_TOKEN_BYTES} bytes, or has characters that no token has")]
    Token,
}

/// Adds a token to every request of a client: `Client::with_interceptor(channel, Bearer::new(token)?)`.
#[derive(Clone)]
pub struct Bearer {
    value: MetadataValue<Ascii>,
}

impl Bearer {
    /// Checks that the token can stand in a header.
    pub fn new(token: &str) -> Result<Self, Error> {
        check(token)?;
        let mut value: MetadataValue<Ascii> = format!("{SCHEME} {token}").parse().map_err(|_| Error::Token)?;
        value.set_sensitive(true);
        Ok(Self { value })
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert(KEY, self.value.clone());
        Ok(request)
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer([hidden])")
    }
}

/// The token of a request, or `None` if it has none. Says nothing about whether it is valid.
pub fn token(metadata: &MetadataMap) -> Result<Option<&str>, Error> {
    let mut values = metadata.get_all(KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Error::Repeated);
    }
    let text = value.to_str().map_err(|_| Error::Malformed)?;
    let (scheme, token) = text.split_once(' ').ok_or(Error::Malformed)?;
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return Err(Error::Malformed);
    }
    check(token)?;
    Ok(Some(token))
}

fn check(token: &str) -> Result<(), Error> {
    let sound = !token.is_empty() && token.len() <= MAX_TOKEN_BYTES && token.bytes().all(|b| b.is_ascii_graphic());
    if sound { Ok(()) } else { Err(Error::Token) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(values: &[&str]) -> MetadataMap {
        let mut map = MetadataMap::new();
        for value in values {
            map.append(KEY, value.parse().expect("ascii"));
        }
        map
    }

    #[test]
    fn what_is_sent_is_read() {
        let request = Bearer::new("hf_abc").expect("sound").call(Request::new(())).expect("adds a header");
        assert_eq!(token(request.metadata()), Ok(Some("hf_abc")));
        assert!(!format!("{:?}", request.metadata()).contains("hf_abc"), "a token must not be printed");
        assert!(!format!("{:?}", Bearer::new("hf_abc")).contains("hf_abc"));
    }

    #[test]
    fn anything_but_one_bearer_token_is_refused() {
        assert_eq!(token(&metadata(&[])), Ok(None));
        assert_eq!(token(&metadata(&["bearer x"])), Ok(Some("x")));
        assert_eq!(token(&metadata(&["Bearer a", "Bearer b"])), Err(Error::Repeated));
        for (text, error) in [
            ("", Error::Malformed),
            ("Bearer", Error::Malformed),
            ("Basic eDp5", Error::Malformed),
            ("Bearer ", Error::Token),
            ("Bearer a b", Error::Token),
            ("Bearer  a", Error::Token),
        ] {
            assert_eq!(token(&metadata(&[text])), Err(error), "{text:?}");
        }
        assert!(matches!(Bearer::new("a\nb"), Err(Error::Token)));
        assert!(matches!(Bearer::new(&"x".repeat(513)), Err(Error::Token)));
    }
}
