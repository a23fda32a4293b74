//! What a submission says in its headers.

use holdfast_common::fence::Fence;
use holdfast_common::system::{Submit, declarable};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, IF_MATCH};

use super::Api;
use crate::adapters::system::Failure;

impl Api {
    /// The step's own headers, then those that the API was declared to read. None of the first may be one of the others.
    pub(super) fn headers(&self, change: &Submit, fence: Option<Fence>) -> Result<HeaderMap, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, value("content_type", &change.content_type)?);
        let declared = &self.http.headers;
        let ours = [&declared.idempotency, &declared.fence, &declared.expected];
        for (name, text) in &change.headers {
            let taken = ours.into_iter().flatten().any(|ours| ours.eq_ignore_ascii_case(name));
            let (name, text) = header(name, text)?;
            if taken || self.ask.shows(&name) {
                return Err(Failure::Content(format!(
                    "the step may not say the header {name}: it is Holdfast's own here"
                )));
            }
            headers.insert(name, text);
        }
        let expected = self.operation.expected_revision.as_ref();
        let said = [
            (&declared.idempotency, Some(self.operation.id.to_string())),
            (&declared.fence, fence.map(number)),
            (&declared.expected, expected.map(|revision| revision.to_string())),
        ];
        for (name, text) in said {
            if let (Some(name), Some(text)) = (name, text) {
                let (name, text) = header(name, &text)?;
                headers.insert(name, text);
            }
        }
        Ok(headers)
    }
}

/// As machines see it.
pub(super) fn number(fence: Fence) -> String {
    fence.as_u64().to_string()
}

/// The target's file had the same rule; what reaches the API is looked at once more. A revision in `If-Match` is quoted, as the
/// standard has it.
pub(super) fn header(name: &str, text: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    declarable(name).map_err(|why| Failure::Content(format!("{name:?} {why}")))?;
    let found = HeaderName::from_bytes(name.as_bytes());
    let found = found.map_err(|_| Failure::Content(format!("{name:?} is no name of a header")))?;
    let text = if found == IF_MATCH { format!("\"{text}\"") } else { text.to_owned() };
    let value = value(name, &text)?;
    Ok((found, value))
}

fn value(name: &str, text: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(text).map_err(|_| Failure::Content(format!("the value of {name} can't stand in a header")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_header_makes_the_request_another_one_than_the_host_was_asked_about() {
        for name in
            ["host", "Host", "Transfer-Encoding", "X-HTTP-Method-Override", "X_Original_URL", "X-Forwarded-Host"]
        {
            assert!(matches!(header(name, "evil.example"), Err(Failure::Content(_))), "{name}");
        }
        assert_eq!(header("If-Match", "v1").unwrap().1, "\"v1\"");
    }
}
