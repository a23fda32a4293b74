//! What a submission says, read before anything is done.

use hyper::header::HeaderMap;
use serde::Deserialize;

/// The same operation, however often it comes.
pub(crate) const KEY: &str = "idempotency-key";
/// The fence of who asks, in decimal.
pub(crate) const FENCE: &str = "holdfast-fence";
/// The revision that the resource must have.
pub(crate) const EXPECTED: &str = "if-match";

const MAX_KEY: usize = 200;
const MAX_REVISION: usize = 128;

/// A submission. What it must say is never defaulted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Submission {
    pub(crate) key: String,
    pub(crate) fence: u64,
    pub(crate) expected: Option<String>,
    /// As it came: the same key with another text is another request.
    pub(crate) text: String,
    pub(crate) body: Body,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    /// The revision that the resource has afterwards.
    pub(crate) revision: String,
    /// How long the work takes, for demonstrations.
    #[serde(default)]
    pub(crate) duration_ms: u64,
    /// Whether the work fails at its end, for demonstrations.
    #[serde(default)]
    pub(crate) fail: bool,
}

/// `POST /fence`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raise {
    pub(crate) fence: u64,
}

impl Submission {
    /// Why it is none.
    pub(crate) fn read(headers: &HeaderMap, text: &[u8]) -> Result<Self, String> {
        let key = header(headers, KEY)?.ok_or(format!("the header {KEY} is needed"))?;
        let fence = header(headers, FENCE)?.ok_or(format!("the header {FENCE} is needed"))?;
        let fence = storable(fence.parse().map_err(|_| format!("{FENCE} is a decimal number"))?)?;
        let text = str::from_utf8(text).map_err(|_| "the body is not UTF-8".to_owned())?;
        let body = Body::read(text)?;
        if key.len() > MAX_KEY {
            return Err(format!("{KEY} has at most {MAX_KEY} bytes"));
        }
        let expected = header(headers, EXPECTED)?.map(|quoted| quoted.trim_matches('"').to_owned());
        Ok(Self { key: key.to_owned(), fence, expected, text: text.to_owned(), body })
    }
}

impl Body {
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let body: Body = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if body.revision.is_empty() || body.revision.len() > MAX_REVISION {
            return Err(format!("a revision has 1 to {MAX_REVISION} bytes"));
        }
        Ok(body)
    }
}

impl Raise {
    pub(crate) fn read(text: &[u8]) -> Result<Self, String> {
        let raise: Raise = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        storable(raise.fence).map(|fence| Self { fence })
    }
}

/// A fence begins with 1, and SQLite's integers have a sign.
fn storable(fence: u64) -> Result<u64, String> {
    let fits = fence > 0 && i64::try_from(fence).is_ok();
    fits.then_some(fence).ok_or(format!("a fence is 1 to {}", i64::MAX))
}

/// A header that comes twice could be read in two ways.
fn header<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, String> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(format!("the header {name} stands there twice"));
    }
    first.map(|value| value.to_str().map_err(|_| format!("the header {name} is not ASCII"))).transpose()
}
