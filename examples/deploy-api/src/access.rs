//! Who may do what.
//!
//! | token | submit | read | raise the fence |
//! | --- | --- | --- | --- |
//! | deploy | yes | yes | no |
//! | inspect | no | yes | no |
//! | fence | no | yes | yes |

use hyper::header::{AUTHORIZATION, HeaderMap};
use subtle::ConstantTimeEq;

/// The three tokens.
pub(crate) struct Tokens {
    pub(crate) deploy: String,
    pub(crate) inspect: String,
    pub(crate) fence: String,
}

/// What a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Submit,
    Read,
    RaiseFence,
}

/// What its token is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allowed,
    /// A token, for something else.
    NotWithThis,
    NoToken,
}

impl Tokens {
    pub(crate) fn judge(&self, headers: &HeaderMap, wish: Wish) -> Verdict {
        let text = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some(token) = text.and_then(|text| text.strip_prefix("Bearer ")) else { return Verdict::NoToken };
        let is = |known: &str| bool::from(known.as_bytes().ct_eq(token.as_bytes()));
        let (deploy, inspect, fence) = (is(&self.deploy), is(&self.inspect), is(&self.fence));
        let allowed = match wish {
            Wish::Submit => deploy,
            Wish::Read => deploy || inspect || fence,
            Wish::RaiseFence => fence,
        };
        match (allowed, deploy || inspect || fence) {
            (true, _) => Verdict::Allowed,
            (false, true) => Verdict::NotWithThis,
            (false, false) => Verdict::NoToken,
        }
    }
}
