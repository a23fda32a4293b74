//! Agents, for a list.

use holdfast_common::id::AgentName;
use holdfast_common::time::Wall;
use holdfast_coordinator_core::identity::{Enrolled, Identity};
use holdfast_proto::convert::wall_to_wire;
use holdfast_proto::v1;

use crate::sessions::AgentStatus;
use crate::store::{AgentRow, CertificateRow};

/// What is stored of one agent.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    /// What it showed last.
    pub row: Option<AgentRow>,
    /// Who it is.
    pub identity: Option<Identity>,
    /// The certificate that was signed for it last and is not revoked.
    pub newest: Option<CertificateRow>,
    /// A revoked one: that which it showed last, else that which was signed last.
    pub revoked: Option<CertificateRow>,
}

/// Whether a certificate tells more of its agent than another one: what it showed last does, then what ends last.
#[must_use]
pub fn tells_more(than: Option<&CertificateRow>, certificate: &CertificateRow, shown: Option<&str>) -> bool {
    let rank =
        |row: &CertificateRow| (shown == Some(row.fingerprint.as_str()) && row.revoked_at.is_some(), row.expires_at);
    than.is_none_or(|than| rank(than) < rank(certificate))
}

impl Stored {
    fn enrolled(&self) -> Option<&Enrolled> {
        self.identity.as_ref()?.enrolled.as_ref()
    }

    /// When that certificate was revoked.
    fn revoked_at(&self, fingerprint: &str) -> Option<Wall> {
        self.revoked.as_ref().filter(|row| row.fingerprint == fingerprint)?.revoked_at
    }

    fn renewed_until(&self) -> Option<Wall> {
        self.newest.as_ref()?.expires_at
    }
}

/// One agent, what is stored of it, and the labels of the deployments whose current attempt it holds.
#[must_use]
pub fn agent(status: AgentStatus, stored: &Stored, holds: Vec<String>) -> v1::Agent {
    let contact = if status.connected { v1::Contact::Connected } else { v1::Contact::Silent };
    let row = stored.row.as_ref();
    v1::Agent {
        name: status.name.to_string(),
        contact: contact as i32,
        last_heard_at: Some(wall_to_wire(status.last_heard)),
        labels: status.profile.labels.into_iter().collect(),
        adapters: status.profile.adapters.into_iter().collect(),
        incarnation: status.profile.incarnation.to_string(),
        version: status.profile.version,
        holds,
        certificate_expires_at: row.and_then(|row| row.certificate_until).map(wall_to_wire),
        fingerprint: row.map(|row| row.fingerprint.clone()).unwrap_or_default(),
        certificate_revoked_at: row.and_then(|row| stored.revoked_at(&row.fingerprint)).map(wall_to_wire),
        lock: status.standing.lock.map(|lock| v1::IdentityLock {
            since: Some(wall_to_wire(lock.since)),
            why: lock.copied.words().to_owned(),
        }),
        removed: status.standing.removed,
        moved_at: status.standing.moved_at.map(wall_to_wire),
        drained: status.drained.map(|drained| v1::Drained {
            since: Some(wall_to_wire(drained.since)),
            by: drained.by.to_string(),
            reason: drained.reason,
        }),
        away: status.absence.map(|absence| v1::Away {
            since: Some(wall_to_wire(absence.since)),
            back_by: Some(wall_to_wire(absence.back_by)),
            is_back: false,
        }),
        certificate_since: row.and_then(|row| row.certificate_since).map(wall_to_wire),
        renewed_until: stored.renewed_until().map(wall_to_wire),
        enrolment: stored.enrolled().map(enrolment),
        no_room: status.no_room,
    }
}

/// A host that joined, or was removed before it ever spoke.
#[must_use]
pub fn never_heard(name: &AgentName, stored: &Stored) -> v1::Agent {
    let newest = stored.newest.as_ref().or(stored.revoked.as_ref());
    v1::Agent {
        name: name.to_string(),
        contact: v1::Contact::Silent as i32,
        labels: stored.enrolled().map(|enrolled| enrolled.labels.clone().into_iter().collect()).unwrap_or_default(),
        certificate_expires_at: newest.and_then(|row| row.expires_at).map(wall_to_wire),
        certificate_revoked_at: newest.and_then(|row| row.revoked_at).map(wall_to_wire),
        fingerprint: newest.map(|row| row.fingerprint.clone()).unwrap_or_default(),
        certificate_since: newest.map(|row| wall_to_wire(row.issued_at)),
        renewed_until: stored.renewed_until().map(wall_to_wire),
        removed: stored.identity.as_ref().is_some_and(|identity| identity.removed.is_some()),
        enrolment: stored.enrolled().map(enrolment),
        ..v1::Agent::default()
    }
}

fn enrolment(enrolled: &Enrolled) -> v1::Enrolment {
    v1::Enrolment { at: Some(wall_to_wire(enrolled.at)), token: enrolled.token.clone() }
}
