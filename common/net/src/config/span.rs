use holdfast_common::time::{Millis, NotADuration};
use serde::Deserialize;

/// A length of time, written like `30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(pub Millis);

impl TryFrom<String> for Span {
    type Error = NotADuration;

    fn try_from(text: String) -> Result<Self, NotADuration> {
        text.parse().map(Span)
    }
}
