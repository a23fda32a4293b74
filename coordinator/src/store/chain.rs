//! The hash that chains each event to the one before it on its target.
//!
//! The hash is the SHA-256, in lower-case hexadecimal, of one line without a line end:
//! `<hash before>|<target>|<sequence>|<at>|<deployment or ->|<body>`, with every part as it stands in the table. So
//! anybody can check it with `sha256sum`. The hash before the first event is 64 zeros.

use super::Digest;

/// Before the first event of a target.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What is hashed of an event, as it stands in the table.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// The hash of the event before, or [`GENESIS`].
    pub before: &'a str,
    /// The target.
    pub target: &'a str,
    /// The event's place on it.
    pub sequence: u64,
    /// Microseconds since 1970.
    pub at: i64,
    /// The deployment, where there is one.
    pub deployment: Option<&'a str>,
    /// The event's JSON.
    pub body: &'a str,
}

impl Link<'_> {
    /// The event's hash.
    #[must_use]
    pub fn hash(&self) -> String {
        let Link { before, target, sequence, at, deployment, body } = self;
        let line = format!("{before}|{target}|{sequence}|{at}|{}|{body}", deployment.unwrap_or("-"));
        Digest::of_bytes(line.as_bytes()).to_string()
    }
}

/// What is hashed of an act, which is about no target. The line is `<hash before>|<sequence>|<at>|<json>`, where the JSON is the
/// list of who, what, about what, and how: `["anna","token_made","bot","viewer:*"]`.
#[derive(Clone, Copy, Debug)]
pub struct ActLink<'a> {
    /// The hash of the act before, or [`GENESIS`].
    pub before: &'a str,
    /// Its place.
    pub sequence: u64,
    /// Microseconds since 1970.
    pub at: i64,
    /// Who did it.
    pub by: &'a str,
    /// What.
    pub kind: &'a str,
    /// To what.
    pub about: &'a str,
    /// How.
    pub detail: &'a str,
}

impl ActLink<'_> {
    /// The act's hash.
    #[must_use]
    pub fn hash(&self) -> String {
        let ActLink { before, sequence, at, by, kind, about, detail } = self;
        let said = serde_json::to_string(&[by, kind, about, detail]).expect("texts serialize");
        Digest::of_bytes(format!("{before}|{sequence}|{at}|{said}").as_bytes()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_what_sha256sum_prints_for_the_documented_line() {
        let link = Link { before: GENESIS, target: "shop@prod", sequence: 1, at: 7, deployment: None, body: "{}" };
        let line = format!("{GENESIS}|shop@prod|1|7|-|{{}}");
        assert_eq!(link.hash(), Digest::of_bytes(line.as_bytes()).to_string());
        assert_ne!(link.hash(), Link { at: 8, ..link }.hash());
    }
}
