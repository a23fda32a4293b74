//! An answer with the wanted status, and the wanted text where one is wanted, is healthy.

use crate::http::{Trust, get};
use crate::internal::with_causes;

/// How much of an answer is searched for the wanted text.
const SEARCHED_BYTES: usize = 64 * 1024;

/// What an answer must be.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) status: u16,
    pub(super) body: Option<&'a str>,
}

/// Asks once. A redirect is an answer like any other.
pub(super) async fn look(url: &str, wanted: Wanted<'_>, trust: &Trust) -> Result<(), String> {
    let answer = get(url, trust).await.map_err(|error| with_causes(&error))?;
    if answer.status != wanted.status {
        return Err(format!("status {}", answer.status));
    }
    let Some(text) = wanted.body else { return Ok(()) };
    let body = answer.beginning(SEARCHED_BYTES).await.map_err(|error| with_causes(&error))?;
    let found = body.windows(text.len()).any(|window| window == text.as_bytes());
    if found {
        Ok(())
    } else {
        Err(format!("status {}, and {text:?} is not in its first {} bytes", wanted.status, body.len()))
    }
}
