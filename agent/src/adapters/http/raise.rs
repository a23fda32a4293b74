//! Raising the fence. A raise never goes down and may be repeated; what counts is what is read back.

use holdfast_common::fence::Fence;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use super::Api;
use super::calls::{Call, before};
use super::headers::{header, number};
use crate::adapters::system::Failure;

impl Api {
    pub(super) fn raise_fence(&self, fence: Fence) -> Result<(), Failure> {
        let (Some(path), Some(_)) = (&self.http.fence, &self.http.resource) else {
            return Err(Failure::Resource("the target declares no way to raise a fence at this API".to_owned()));
        };
        // Another owner's fence is none of ours.
        before(Call::Read);
        self.resource()?;
        before(Call::Raise);
        let said = self.post_fence(path, fence)?;
        before(Call::Read);
        let highest = self.resource()?.and_then(|resource| resource.highest_fence);
        match highest {
            Some(highest) if highest >= fence => Ok(()),
            Some(highest) => {
                Err(Failure::Machinery(format!("the highest fence is {highest} after all, not {fence}: {said}")))
            }
            None => Err(Failure::Machinery(format!("the resource tells no fence after all, not {fence}: {said}"))),
        }
    }

    /// What was said to it. No answer is no failure yet.
    fn post_fence(&self, path: &str, fence: Fence) -> Result<String, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(name) = &self.http.headers.fence {
            let (name, value) = header(name, &number(fence))?;
            headers.insert(name, value);
        }
        let body = serde_json::json!({ "fence": fence.as_u64() }).to_string();
        Ok(match self.ask.send(Method::POST, &self.url(path), headers, body) {
            Ok(answer) => answer.said,
            Err(lost) => lost.why,
        })
    }
}
