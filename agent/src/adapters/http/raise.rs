//! Raising the fence. A raise never goes down and may be repeated; what counts is what is read back.
//!
//! | the answer | is told as |
//! | --- | --- |
//! | 2xx | raised |
//! | 401, 403, 404, 405, 410 | not let in |
//! | any other, or none | nothing |

use holdfast_common::fence::Fence;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use super::Api;
use super::ask::{Answer, Lost};
use super::calls::{Call, before};
use super::headers::{header, number};
use crate::adapters::system::{Failure, Raised};

impl Api {
    pub(super) fn raise_fence(&self, fence: Fence) -> Result<Raised, Failure> {
        let (Some(path), Some(_)) = (&self.http.fence, &self.http.resource) else {
            return Err(Failure::Resource("the target declares no way to raise a fence at this API".to_owned()));
        };
        // Another owner's fence is none of ours.
        before(Call::Read);
        self.resource()?;
        before(Call::Raise);
        let answer = self.post_fence(path, fence)?;
        before(Call::Read);
        let highest = self.resource()?.and_then(|resource| resource.highest_fence);
        match highest {
            Some(highest) if highest >= fence => Ok(raised(answer)),
            Some(highest) => Err(Failure::Machinery(format!(
                "the highest fence is {highest} after all, not {fence}: {}",
                said(&answer)
            ))),
            None => Err(Failure::Machinery(format!(
                "the resource tells no fence after all, not {fence}: {}",
                said(&answer)
            ))),
        }
    }

    /// No answer is no failure yet.
    fn post_fence(&self, path: &str, fence: Fence) -> Result<Result<Answer, Lost>, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(name) = &self.http.headers.fence {
            let (name, value) = header(name, &number(fence))?;
            headers.insert(name, value);
        }
        let body = serde_json::json!({ "fence": fence.as_u64() }).to_string();
        Ok(self.ask.send(Method::POST, &self.url(path), headers, body))
    }
}

/// Of a fence that stands.
fn raised(answer: Result<Answer, Lost>) -> Raised {
    match answer {
        Ok(answer) if answer.is_success() => Raised::Now,
        Ok(answer) if matches!(answer.status, 401 | 403 | 404 | 405 | 410) => Raised::NotLetIn(answer.said),
        Ok(answer) => Raised::Unsaid(answer.said),
        Err(lost) => Raised::Unsaid(lost.why),
    }
}

fn said(answer: &Result<Answer, Lost>) -> &str {
    match answer {
        Ok(answer) => &answer.said,
        Err(lost) => &lost.why,
    }
}
