//! Certificates that open nothing any more: looked at before each call, and while a stream lives.
//!
//! What is here follows from what is stored; it is changed after the commit and before anybody is answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_common::id::AgentName;
use holdfast_common::time::Wall;
use holdfast_coordinator_core::identity::Identity;
use tokio::sync::watch;

use crate::store::CertificateRow;

/// The certificate of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownCertificate {
    /// SHA-256, lower-case hex.
    pub fingerprint: String,
    /// Its first instant.
    pub valid_from: Wall,
    /// Its last one.
    pub valid_until: Wall,
}

/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Revocations(Arc<watch::Sender<Bars>>);

#[derive(Debug, Default)]
struct Bars {
    certificates: BTreeSet<String>,
    agents: BTreeMap<AgentName, Bar>,
}

/// An agent that was removed once.
#[derive(Debug)]
struct Bar {
    /// It has not joined anew.
    removed: bool,
    /// Certificates from before this instant are those of the removed one, but for `good`.
    since: Wall,
    good: BTreeSet<String>,
}

impl Revocations {
    /// Of what is stored.
    #[must_use]
    pub fn of(identities: &[(AgentName, Identity)], certificates: &[CertificateRow]) -> Self {
        let mut bars = Bars::default();
        for (agent, identity) in identities {
            if let Some(since) = identity.valid_since {
                let removed = identity.removed.is_some();
                bars.agents.insert(agent.clone(), Bar { removed, since, good: BTreeSet::new() });
            }
        }
        for row in certificates {
            let bar = row.agent.as_ref().and_then(|agent| bars.agents.get_mut(agent));
            let among = match (row.revoked_at, bar) {
                (Some(_), _) => &mut bars.certificates,
                (None, Some(bar)) => &mut bar.good,
                (None, None) => continue,
            };
            among.insert(row.fingerprint.clone());
        }
        Self(Arc::new(watch::Sender::new(bars)))
    }

    /// Whether the certificate opens nothing for the agent.
    #[must_use]
    pub fn bar(&self, agent: &AgentName, shown: &ShownCertificate) -> bool {
        self.0.borrow().bar(agent, shown)
    }

    /// Returns once it opens nothing.
    pub async fn barred(&self, agent: &AgentName, shown: &ShownCertificate) {
        let mut bars = self.0.subscribe();
        let _ends_with_the_process = bars.wait_for(|bars| bars.bar(agent, shown)).await;
    }

    /// The agent was removed.
    pub fn removed(&self, agent: &AgentName, since: Wall) {
        let bar = Bar { removed: true, since, good: BTreeSet::new() };
        self.0.send_modify(|bars| drop(bars.agents.insert(agent.clone(), bar)));
    }

    /// The certificate was revoked.
    pub fn revoked(&self, fingerprint: &str) {
        self.0.send_modify(|bars| {
            bars.certificates.insert(fingerprint.to_owned());
            for bar in bars.agents.values_mut() {
                bar.good.remove(fingerprint);
            }
        });
    }

    /// The agent joined, or its certificate was renewed.
    pub fn signed(&self, agent: &AgentName, fingerprint: &str) {
        self.0.send_if_modified(|bars| {
            let Some(bar) = bars.agents.get_mut(agent) else { return false };
            bar.removed = false;
            bar.good.insert(fingerprint.to_owned());
            true
        });
    }
}

impl Bars {
    fn bar(&self, agent: &AgentName, shown: &ShownCertificate) -> bool {
        if self.certificates.contains(&shown.fingerprint) {
            return true;
        }
        let older = |bar: &Bar| shown.valid_from < bar.since && !bar.good.contains(&shown.fingerprint);
        self.agents.get(agent).is_some_and(|bar| bar.removed || older(bar))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> AgentName {
        AgentName::new(text).expect("a name")
    }

    fn shown(fingerprint: &str, from: i64) -> ShownCertificate {
        let fingerprint = fingerprint.to_owned();
        ShownCertificate { fingerprint, valid_from: Wall(from), valid_until: Wall(i64::MAX) }
    }

    fn row(fingerprint: &str, agent: &str, revoked: bool) -> CertificateRow {
        CertificateRow {
            fingerprint: fingerprint.to_owned(),
            agent: Some(name(agent)),
            issued_at: Wall(1),
            expires_at: None,
            revoked_at: revoked.then_some(Wall(2)),
        }
    }

    #[test]
    fn a_removed_agent_is_barred_until_it_joins_and_its_older_certificates_for_ever() {
        let bars = Revocations::default();
        let agent = name("web-01");
        assert!(!bars.bar(&agent, &shown("old", 5)));
        bars.removed(&agent, Wall(10));
        assert!(bars.bar(&agent, &shown("old", 5)) && bars.bar(&agent, &shown("later", 20)));
        assert!(!bars.bar(&name("web-02"), &shown("old", 5)));
        // Backdated a little, like all that are signed here.
        bars.signed(&agent, "new");
        assert!(!bars.bar(&agent, &shown("new", 9)));
        assert!(bars.bar(&agent, &shown("old", 5)));
        bars.revoked("new");
        assert!(bars.bar(&agent, &shown("new", 9)));
    }

    #[test]
    fn what_is_stored_bars_the_same() {
        let mut gone = Identity { valid_since: Some(Wall(10)), ..Identity::default() };
        let back = gone.clone();
        gone.remove("anna".parse().expect("a name"), "lost".to_owned(), Wall(10));
        let identities = [(name("gone"), gone), (name("back"), back)];
        let rows = [row("a", "back", false), row("b", "back", true), row("c", "other", true)];
        let bars = Revocations::of(&identities, &rows);
        for (agent, fingerprint, from, barred) in [
            ("gone", "x", 20, true),
            ("back", "a", 5, false),
            ("back", "b", 20, true),
            ("back", "unknown", 5, true),
            ("back", "unknown", 20, false),
            ("other", "c", 5, true),
            ("other", "d", 5, false),
        ] {
            assert_eq!(bars.bar(&name(agent), &shown(fingerprint, from)), barred, "{agent} {fingerprint} {from}");
        }
    }

    #[tokio::test]
    async fn whoever_waits_hears_of_it() {
        let bars = Revocations::default();
        let (agent, certificate) = (name("web-01"), shown("a", 5));
        let waiting = bars.clone();
        let heard = tokio::spawn(async move { waiting.barred(&agent, &certificate).await });
        bars.revoked("b");
        bars.revoked("a");
        tokio::time::timeout(std::time::Duration::from_secs(5), heard).await.expect("heard").expect("no panic");
    }
}
