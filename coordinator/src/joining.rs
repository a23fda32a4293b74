//! Join tokens: drawn, judged, told.
//!
//! ```text
//!   pending ──a host joins──▶ used        by one name and one key; the same again is the same enrolment
//!      ├──its time is over──▶ expired
//!      └──an operator───────▶ revoked     told like one that never was
//! ```

use std::collections::BTreeMap;

use holdfast_common::id::{AgentName, OperatorName};
use holdfast_common::time::{Millis, Wall};
use holdfast_coordinator_core::identity::Identity;
use uuid::Uuid;

use crate::auth::Secret;
use crate::auth::secret::NoRandomness;
use crate::grpc::view::instant;
use crate::store::{Act, Digest, JoinTokenRow, Use};

/// The longest life of a join token.
pub const LONGEST_LIFE: Millis = Millis::from_secs(7 * 86_400);

/// Labels of one token.
const MOST_LABELS: usize = 32;
/// Bytes of a label's key, and of its value.
const LONGEST_LABEL: usize = 128;

/// Why no token was drawn.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Too short or too long.
    #[error("a join token lives at least a second and at most {LONGEST_LIFE}")]
    Life,
    /// Labels that can't be matched.
    #[error(
        "labels are at most {MOST_LABELS}, each key and value at most {LONGEST_LABEL} plain characters, and no key is empty"
    )]
    Labels,
    /// The system gave none.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
}

/// A new token: its secret, which is nowhere else and is to be shown once, and what is kept of it.
pub fn draw(
    agent: Option<AgentName>,
    labels: BTreeMap<String, String>,
    life: Millis,
    now: Wall,
    by: &OperatorName,
) -> Result<(Secret, JoinTokenRow), Error> {
    if life < Millis::from_secs(1) || life > LONGEST_LIFE {
        return Err(Error::Life);
    }
    let plain = |text: &String| text.len() <= LONGEST_LABEL && text.chars().all(|c| !c.is_control());
    let sound = |(key, value): (&String, &String)| !key.is_empty() && plain(key) && plain(value);
    if labels.len() > MOST_LABELS || !labels.iter().all(sound) {
        return Err(Error::Labels);
    }
    let secret = Secret::for_joining()?;
    let row = JoinTokenRow {
        id: id(),
        hash: Digest(secret.hash().0),
        agent,
        labels,
        expires_at: Wall(now.0.saturating_add_unsigned(life.0.saturating_mul(1000))),
        created_at: now,
        created_by: by.to_string(),
        revoked: false,
        used: None,
    };
    Ok((secret, row))
}

/// Short, and says nothing of the token.
fn id() -> String {
    Uuid::new_v4().simple().to_string().chars().take(12).collect()
}

/// A host that asks to be taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Of the token that it presents.
    pub token: Digest,
    /// As what.
    pub name: AgentName,
    /// Of its public key.
    pub key: Digest,
    /// By which its machine is known again; empty where it can't tell.
    pub machine: String,
}

/// Why a host is not taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No such token, or one that was taken back.
    Unknown,
    /// Its time was over at this instant.
    Expired {
        /// Its end.
        at: Wall,
    },
    /// Another host has joined with it.
    Used {
        /// As it is listed.
        id: String,
        /// Who joined with it.
        by: AgentName,
    },
    /// It is for another name.
    OtherName {
        /// The only one.
        only: AgentName,
    },
    /// An agent of the name is enrolled, or has spoken.
    NameTaken {
        /// Whether the token is for that name alone.
        only: bool,
    },
}

/// How a host is taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// For the first time with this token, which is used up by it.
    New(JoinTokenRow),
    /// It is the same enrolment once more.
    Again(JoinTokenRow),
}

/// Whether a host may join.
pub fn judge(token: Option<JoinTokenRow>, identity: &Identity, asked: &Asked, now: Wall) -> Result<Verdict, Refusal> {
    let token = token.filter(|token| !token.revoked).ok_or(Refusal::Unknown)?;
    if let Some(used) = &token.used {
        let enrolled = identity.enrolled.as_ref().filter(|_| identity.removed.is_none());
        let same = used.by == asked.name && used.key == asked.key;
        let stands = enrolled.is_some_and(|enrolled| enrolled.token == token.id);
        if !(same && stands) {
            return Err(Refusal::Used { id: token.id, by: used.by.clone() });
        }
    }
    if token.expires_at <= now {
        return Err(Refusal::Expired { at: token.expires_at });
    }
    if token.used.is_some() {
        return Ok(Verdict::Again(token));
    }
    if let Some(only) = token.agent.clone().filter(|only| *only != asked.name) {
        return Err(Refusal::OtherName { only });
    }
    if !identity.is_free() {
        return Err(Refusal::NameTaken { only: token.agent.is_some() });
    }
    let used = Some(Use { by: asked.name.clone(), key: asked.key });
    Ok(Verdict::New(JoinTokenRow { used, ..token }))
}

/// What is kept of making a token.
#[must_use]
pub fn made(row: &JoinTokenRow) -> Act {
    let detail = format!("{}until {}", what(row), instant(row.expires_at));
    act(row.created_at, row.created_by.clone(), "join_token_made", row.id.clone(), detail)
}

/// What is kept of taking a token back.
#[must_use]
pub fn taken_back(row: &JoinTokenRow, by: &OperatorName, at: Wall) -> Act {
    act(at, by.to_string(), "join_token_revoked", row.id.clone(), what(row).trim_end().to_owned())
}

/// What is kept of a host that joined.
#[must_use]
pub fn joined(row: &JoinTokenRow, name: &AgentName, fingerprint: &str, at: Wall) -> Act {
    let detail = format!("with join token {} of {}, certificate {fingerprint}", row.id, row.created_by);
    act(at, format!("agent {name}"), "agent_joined", name.to_string(), detail)
}

/// What is kept of an agent that was removed.
#[must_use]
pub fn removed(name: &AgentName, by: &OperatorName, reason: &str, at: Wall) -> Act {
    act(at, by.to_string(), "agent_removed", name.to_string(), reason.to_owned())
}

/// What is kept of a certificate that was revoked.
#[must_use]
pub fn revoked(fingerprint: &str, of: Option<&AgentName>, by: &OperatorName, reason: &str, at: Wall) -> Act {
    let of = of.map_or_else(|| "an agent that was never seen with it".to_owned(), ToString::to_string);
    act(at, by.to_string(), "certificate_revoked", fingerprint.to_owned(), format!("of {of}: {reason}"))
}

fn act(at: Wall, by: String, kind: &'static str, about: String, detail: String) -> Act {
    Act { at, by, kind, about, detail }
}

fn what(row: &JoinTokenRow) -> String {
    let name = row.agent.as_ref().map(|name| format!("for {name} "));
    let labels = row.labels.iter().map(|(key, value)| format!("{key}={value} "));
    name.into_iter().chain(labels).collect()
}

#[cfg(test)]
mod tests {
    use holdfast_coordinator_core::identity::Enrolled;

    use super::*;

    const NOW: Wall = Wall(1_000_000_000);

    fn name(text: &str) -> AgentName {
        AgentName::new(text).expect("a name")
    }

    fn token(agent: Option<&str>) -> JoinTokenRow {
        let by = OperatorName::new("anna").expect("a name");
        draw(agent.map(name), BTreeMap::new(), Millis::from_secs(60), NOW, &by).expect("drawn").1
    }

    fn asked(agent: &str, key: &[u8]) -> Asked {
        let token = Digest::of_bytes(b"any");
        Asked { token, name: name(agent), key: Digest::of_bytes(key), machine: String::new() }
    }

    fn enrolled(token: &JoinTokenRow) -> Identity {
        let enrolled = Enrolled { labels: BTreeMap::new(), at: NOW, token: token.id.clone() };
        Identity { enrolled: Some(enrolled), ..Identity::default() }
    }

    #[test]
    fn a_token_is_good_once_and_the_same_key_again_is_the_same_enrolment() {
        let nobody = Identity::default();
        let Ok(Verdict::New(used)) = judge(Some(token(None)), &nobody, &asked("web-01", b"k"), NOW) else {
            panic!("a new one is good");
        };
        let identity = enrolled(&used);
        let again = judge(Some(used.clone()), &identity, &asked("web-01", b"k"), NOW);
        assert_eq!(again, Ok(Verdict::Again(used.clone())));
        let taken = Err(Refusal::Used { id: used.id.clone(), by: name("web-01") });
        assert_eq!(judge(Some(used.clone()), &identity, &asked("web-01", b"other"), NOW), taken);
        assert_eq!(judge(Some(used.clone()), &nobody, &asked("web-02", b"k"), NOW), taken);
        let mut removed = identity;
        removed.remove("anna".parse().expect("a name"), "lost".to_owned(), NOW);
        assert_eq!(judge(Some(used), &removed, &asked("web-01", b"k"), NOW), taken, "removed: it joins with a new one");
    }

    #[test]
    fn whatever_is_wrong_with_a_token_is_told_apart_but_not_whether_it_was_taken_back() {
        let (nobody, host) = (Identity::default(), asked("web-01", b"k"));
        assert_eq!(judge(None, &nobody, &host, NOW), Err(Refusal::Unknown));
        let revoked = JoinTokenRow { revoked: true, ..token(None) };
        assert_eq!(judge(Some(revoked), &nobody, &host, NOW), Err(Refusal::Unknown));
        let old = token(None);
        let at = old.expires_at;
        assert_eq!(judge(Some(old), &nobody, &host, at), Err(Refusal::Expired { at }));
        let only = name("web-02");
        assert_eq!(judge(Some(token(Some("web-02"))), &nobody, &host, NOW), Err(Refusal::OtherName { only }));
        assert!(judge(Some(token(Some("web-01"))), &nobody, &host, NOW).is_ok());
        let there = enrolled(&token(None));
        for (agent, only) in [(None, false), (Some("web-01"), true)] {
            assert_eq!(judge(Some(token(agent)), &there, &host, NOW), Err(Refusal::NameTaken { only }));
        }
    }

    #[test]
    fn a_token_has_its_bounds() {
        let by = OperatorName::new("anna").expect("a name");
        for life in [Millis(0), Millis(LONGEST_LIFE.0 + 1)] {
            assert!(matches!(draw(None, BTreeMap::new(), life, NOW, &by), Err(Error::Life)));
        }
        for (key, value) in [("", "x"), ("a\n", "x"), ("a", "\u{1b}"), ("a", &"x".repeat(129))] {
            let labels = BTreeMap::from([(key.to_owned(), value.to_owned())]);
            assert!(matches!(draw(None, labels, Millis::from_secs(60), NOW, &by), Err(Error::Labels)), "{key:?}");
        }
    }
}
