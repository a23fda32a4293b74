//! Which headers a target or a step may name for a request to an API.
//!
//! | header | |
//! | --- | --- |
//! | what the request needs for itself, `Host` among it | no: the URL, the credentials and the body say it |
//! | what a server behind takes the method or the place from, or who asks | no: the host's own file was asked about the request as it is sent |
//! | any other | yes |
//!
//! Small and capital letters are the same, and `_` is `-`: a server that hands headers on as variables can't tell them apart.

/// The request needs them for itself.
const OURS: [&str; 16] = [
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "proxy-connection",
    "keep-alive",
    "http2-settings",
    "authorization",
    "proxy-authorization",
    "cookie",
    "accept",
    "expect",
    "te",
    "trailer",
    "upgrade",
];
/// A proxy or a framework puts what they say in the place of what was sent.
const INSTEAD: [&str; 15] = [
    "forwarded",
    "x-forwarded",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-method",
    "x-original-url",
    "x-original-uri",
    "x-original-host",
    "x-rewrite-url",
    "x-rewrite-uri",
    "x-host",
    "x-real-ip",
    "x-envoy-original-path",
    "x-envoy-original-dst-host",
];
/// The same, with any end.
const INSTEAD_WITH: &str = "x-forwarded-";
const LONGEST: usize = 100;

/// Why a header can't be declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undeclarable {
    /// No header has such a name.
    #[error("is no name of a header")]
    NoName,
    /// The request says it anyway.
    #[error("is no header that can be declared here: the request has it for itself")]
    Ours,
    /// The request would be taken for another one.
    #[error(
        "is no header that can be declared here: a server behind could take the request for one with another method, to another place or of somebody else"
    )]
    Instead,
}

/// Whether a target or a step may name that header.
pub fn declarable(name: &str) -> Result<(), Undeclarable> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || name.len() > LONGEST || !name.bytes().all(token) {
        return Err(Undeclarable::NoName);
    }
    let read = name.to_ascii_lowercase().replace('_', "-");
    match read.as_str() {
        name if OURS.contains(&name) => Err(Undeclarable::Ours),
        name if INSTEAD.contains(&name) || name.starts_with(INSTEAD_WITH) => Err(Undeclarable::Instead),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_header_makes_a_request_another_one_however_it_is_written() {
        for (name, why) in [
            ("Host", Undeclarable::Ours),
            ("TRANSFER_ENCODING", Undeclarable::Ours),
            ("X-HTTP-Method-Override", Undeclarable::Instead),
            ("x_http_method_override", Undeclarable::Instead),
            ("X-Method-Override", Undeclarable::Instead),
            ("X-HTTP-Method", Undeclarable::Instead),
            ("X-Original-URL", Undeclarable::Instead),
            ("X-Rewrite-Url", Undeclarable::Instead),
            ("Forwarded", Undeclarable::Instead),
            ("X-Forwarded-Host", Undeclarable::Instead),
            ("X_Forwarded_Whatever", Undeclarable::Instead),
            ("", Undeclarable::NoName),
            ("a b", Undeclarable::NoName),
            ("a:", Undeclarable::NoName),
            ("ä", Undeclarable::NoName),
        ] {
            assert_eq!(declarable(name), Err(why), "{name}");
        }
        for name in ["Idempotency-Key", "If-Match", "X-Fence", "X-Forward", "X-Request-Id", "Hosts"] {
            assert_eq!(declarable(name), Ok(()), "{name}");
        }
    }
}
