//! Agents, for a list.

use holdfast_proto::convert::wall_to_wire;
use holdfast_proto::v1;

use crate::sessions::AgentStatus;
use crate::store::AgentRow;

/// One agent, what is stored of it, and the labels of the deployments whose current attempt it holds.
#[must_use]
pub fn agent(status: AgentStatus, row: Option<&AgentRow>, holds: Vec<String>) -> v1::Agent {
    let contact = if status.connected { v1::Contact::Connected } else { v1::Contact::Silent };
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
    }
}
