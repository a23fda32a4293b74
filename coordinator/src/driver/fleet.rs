//! Hosts that join and agents that go: each in one transaction, with what is kept of it.

use std::collections::BTreeMap;

use holdfast_common::id::{AgentName, OperatorName};
use holdfast_common::time::{Millis, Wall};
use holdfast_coordinator_core::identity::Enrolled;

use crate::joining::{self, Asked, Refusal, Verdict};
use crate::store::{CertificateRow, Error, JoinTokenRow, Transaction};

/// One change.
pub(super) enum Change {
    MakeToken(JoinTokenRow),
    RevokeToken { id: String, by: OperatorName },
    Join { asked: Asked, certificate: CertificateRow },
    Renew { agent: AgentName, shown: String, certificate: CertificateRow },
    Remove { agent: AgentName, by: OperatorName, reason: String },
    Revoke { fingerprint: String, by: OperatorName, reason: String },
}

/// What a change came to.
pub(super) enum Settled {
    /// It is written.
    Done,
    /// There was nothing to change.
    Nothing,
    /// The token was taken back.
    Token(JoinTokenRow),
    /// A host was taken in, or not.
    Joined(Result<Enrolment, Refusal>),
    /// The certificate was revoked.
    Revoked(Option<AgentName>),
}

/// A host that was taken in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrolment {
    /// What targets select it by.
    pub labels: BTreeMap<String, String>,
    /// Whether it was taken in before, by the same token and key.
    pub again: bool,
}

impl Settled {
    pub(super) fn wrote(&self) -> bool {
        match self {
            Settled::Done | Settled::Token(_) | Settled::Joined(Ok(_)) | Settled::Revoked(_) => true,
            Settled::Nothing | Settled::Joined(Err(_)) => false,
        }
    }
}

/// So long after its end a join token or a certificate is known one by one. Nothing opens with it then, however late a host's
/// clock is; that it was there, acts tell.
const KNOWN_AFTER_ITS_END: Millis = Millis::from_secs(90 * 86_400);

pub(super) fn settle(tx: &mut impl Transaction, change: &Change, now: Wall) -> Result<Settled, Error> {
    match change {
        Change::MakeToken(row) => {
            forget(tx, now)?;
            tx.put_join_token(row)?;
            tx.keep_act(&joining::made(row))?;
            Ok(Settled::Done)
        }
        Change::RevokeToken { id, by } => revoke_token(tx, id, by, now),
        Change::Join { asked, certificate } => join(tx, asked, certificate, now),
        Change::Renew { agent, shown, certificate } => renew(tx, agent, shown, certificate, now),
        Change::Remove { agent, by, reason } => remove(tx, agent, by, reason, now),
        Change::Revoke { fingerprint, by, reason } => revoke(tx, fingerprint, by, reason, now),
    }
}

fn forget(tx: &mut impl Transaction, now: Wall) -> Result<(), Error> {
    tx.forget_ended(Wall(now.0.saturating_sub_unsigned(KNOWN_AFTER_ITS_END.0.saturating_mul(1000))))
}

fn revoke_token(tx: &mut impl Transaction, id: &str, by: &OperatorName, now: Wall) -> Result<Settled, Error> {
    let Some(row) = tx.join_token_of(id)?.filter(|row| !row.revoked) else { return Ok(Settled::Nothing) };
    let row = JoinTokenRow { revoked: true, ..row };
    tx.put_join_token(&row)?;
    tx.keep_act(&joining::taken_back(&row, by, now))?;
    Ok(Settled::Token(row))
}

fn join(tx: &mut impl Transaction, asked: &Asked, certificate: &CertificateRow, now: Wall) -> Result<Settled, Error> {
    let mut identity = tx.agent_identity(&asked.name)?;
    let (row, again) = match joining::judge(tx.join_token(asked.token)?, &identity, asked, now) {
        Ok(Verdict::New(row)) => (row, false),
        Ok(Verdict::Again(row)) => (row, true),
        Err(refusal) => return Ok(Settled::Joined(Err(refusal))),
    };
    if !again {
        let enrolled = Enrolled { labels: row.labels.clone(), at: now, token: row.id.clone() };
        identity.enrol(enrolled, asked.machine.clone());
        tx.put_agent_identity(&asked.name, &identity)?;
        tx.put_join_token(&row)?;
    }
    tx.put_certificate(certificate)?;
    tx.keep_act(&joining::joined(&row, &asked.name, &certificate.fingerprint, now))?;
    Ok(Settled::Joined(Ok(Enrolment { labels: row.labels, again })))
}

/// Only for whoever still may: it may have been revoked since it was let in.
fn renew(
    tx: &mut impl Transaction,
    agent: &AgentName,
    shown: &str,
    new: &CertificateRow,
    now: Wall,
) -> Result<Settled, Error> {
    let removed = tx.agent_identity(agent)?.removed.is_some();
    let revoked = tx.certificate(shown)?.is_some_and(|row| row.revoked_at.is_some());
    if removed || revoked {
        return Ok(Settled::Nothing);
    }
    forget(tx, now)?;
    tx.put_certificate(new)?;
    Ok(Settled::Done)
}

fn remove(
    tx: &mut impl Transaction,
    agent: &AgentName,
    by: &OperatorName,
    reason: &str,
    now: Wall,
) -> Result<Settled, Error> {
    let mut identity = tx.agent_identity(agent)?;
    if identity.removed.is_some() {
        return Ok(Settled::Nothing);
    }
    identity.remove(by.clone(), reason.to_owned(), now);
    tx.put_agent_identity(agent, &identity)?;
    tx.revoke_certificates(agent, now)?;
    tx.keep_act(&joining::removed(agent, by, reason, now))?;
    Ok(Settled::Done)
}

fn revoke(
    tx: &mut impl Transaction,
    fingerprint: &str,
    by: &OperatorName,
    reason: &str,
    now: Wall,
) -> Result<Settled, Error> {
    let known = tx.certificate(fingerprint)?;
    if known.as_ref().is_some_and(|row| row.revoked_at.is_some()) {
        return Ok(Settled::Revoked(known.and_then(|row| row.agent)));
    }
    let agent = match &known {
        Some(row) => row.agent.clone(),
        None => tx.agent_with(fingerprint)?,
    };
    let fresh = || CertificateRow {
        fingerprint: fingerprint.to_owned(),
        agent: agent.clone(),
        issued_at: now,
        expires_at: None,
        revoked_at: None,
    };
    let row = CertificateRow { revoked_at: Some(now), ..known.unwrap_or_else(fresh) };
    tx.put_certificate(&row)?;
    tx.keep_act(&joining::revoked(fingerprint, agent.as_ref(), by, reason, now))?;
    Ok(Settled::Revoked(agent))
}
