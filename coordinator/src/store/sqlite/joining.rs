//! Join tokens and certificates.

use std::collections::BTreeMap;

use holdfast_common::id::AgentName;
use holdfast_common::time::Wall;
use rusqlite::{Connection, Row, params};

use super::look_up::{all, one};
use super::{convert, failed};
use crate::store::rows::{CertificateRow, JoinTokenRow, Use};
use crate::store::{Digest, Error};

const TOKENS: &str = "SELECT id, hash, agent, labels, expires_at, created_at, created_by, revoked, used_by, used_key
                      FROM join_tokens";

const CERTIFICATES: &str = "SELECT fingerprint, agent, issued_at, expires_at, revoked_at FROM certificates";

pub(super) fn put_token(connection: &Connection, token: &JoinTokenRow) -> Result<(), Error> {
    let JoinTokenRow { id, hash, agent, labels, expires_at, created_at, created_by, revoked, used } = token;
    connection
        .execute(
            "INSERT INTO join_tokens
                 (id, hash, agent, labels, expires_at, created_at, created_by, revoked, used_by, used_key)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (id) DO UPDATE SET revoked = excluded.revoked, used_by = excluded.used_by,
                 used_key = excluded.used_key",
            params![
                id,
                hash.to_string(),
                agent.as_ref().map(AgentName::as_str),
                convert::json(labels),
                expires_at.0,
                created_at.0,
                created_by,
                revoked,
                used.as_ref().map(|used| used.by.as_str()),
                used.as_ref().map(|used| used.key.to_string()),
            ],
        )
        .map(drop)
        .map_err(failed("write a join token"))
}

pub(super) fn token_of_hash(connection: &Connection, hash: Digest) -> Result<Option<JoinTokenRow>, Error> {
    let sql = format!("{TOKENS} WHERE hash = ?1");
    one(connection, "read a join token", &sql, [hash.to_string()], raw_token)?.map(token).transpose()
}

pub(super) fn token_of_id(connection: &Connection, id: &str) -> Result<Option<JoinTokenRow>, Error> {
    one(connection, "read a join token", &format!("{TOKENS} WHERE id = ?1"), [id], raw_token)?.map(token).transpose()
}

pub(super) fn tokens(connection: &Connection) -> Result<Vec<JoinTokenRow>, Error> {
    let sql = format!("{TOKENS} ORDER BY id");
    all(connection, "list join tokens", &sql, [], raw_token)?.into_iter().map(token).collect()
}

pub(super) fn put_certificate(connection: &Connection, certificate: &CertificateRow) -> Result<(), Error> {
    let CertificateRow { fingerprint, agent, issued_at, expires_at, revoked_at } = certificate;
    connection
        .execute(
            "INSERT INTO certificates (fingerprint, agent, issued_at, expires_at, revoked_at) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (fingerprint) DO UPDATE SET revoked_at = excluded.revoked_at",
            params![
                fingerprint,
                agent.as_ref().map(AgentName::as_str),
                issued_at.0,
                expires_at.map(|at| at.0),
                revoked_at.map(|at| at.0)
            ],
        )
        .map(drop)
        .map_err(failed("write a certificate"))
}

pub(super) fn certificate(connection: &Connection, fingerprint: &str) -> Result<Option<CertificateRow>, Error> {
    let sql = format!("{CERTIFICATES} WHERE fingerprint = ?1");
    one(connection, "read a certificate", &sql, [fingerprint], raw_certificate)?.map(read_certificate).transpose()
}

pub(super) fn certificates(connection: &Connection) -> Result<Vec<CertificateRow>, Error> {
    let sql = format!("{CERTIFICATES} ORDER BY fingerprint");
    all(connection, "list certificates", &sql, [], raw_certificate)?.into_iter().map(read_certificate).collect()
}

/// Who showed it last.
pub(super) fn agent_with(connection: &Connection, fingerprint: &str) -> Result<Option<AgentName>, Error> {
    let sql = "SELECT name FROM agents WHERE fingerprint = ?1 ORDER BY name LIMIT 1";
    let name = one(connection, "find a certificate's agent", sql, [fingerprint], |row| row.get::<_, String>(0))?;
    name.map(|name| convert::parse("an agent", &name)).transpose()
}

/// Every one that the agent has and that is not revoked yet is from now on.
pub(super) fn revoke_all_of(connection: &Connection, agent: &AgentName, at: Wall) -> Result<(), Error> {
    connection
        .execute(
            "UPDATE certificates SET revoked_at = ?2 WHERE agent = ?1 AND revoked_at IS NULL",
            params![agent.as_str(), at.0],
        )
        .map(drop)
        .map_err(failed("revoke an agent's certificates"))
}

/// A revocation of a certificate whose end nobody knows stays.
pub(super) fn forget_ended(connection: &Connection, before: Wall) -> Result<(), Error> {
    for table in ["join_tokens", "certificates"] {
        connection
            .execute(&format!("DELETE FROM {table} WHERE expires_at < ?1"), [before.0])
            .map_err(failed("forget what ended long ago"))?;
    }
    Ok(())
}

type RawToken = (String, String, Option<String>, String, i64, i64, String, bool, Option<String>, Option<String>);

fn raw_token(row: &Row<'_>) -> rusqlite::Result<RawToken> {
    Ok((
        row.get(0)?,
        row.get(1)?,
        row.get(2)?,
        row.get(3)?,
        row.get(4)?,
        row.get(5)?,
        row.get(6)?,
        row.get(7)?,
        row.get(8)?,
        row.get(9)?,
    ))
}

fn token(raw: RawToken) -> Result<JoinTokenRow, Error> {
    let (id, hash, agent, labels, expires_at, created_at, created_by, revoked, used_by, used_key) = raw;
    let labels: BTreeMap<String, String> = convert::from_json("a join token's labels", &labels)?;
    let used = match (used_by, used_key) {
        (Some(by), Some(key)) => Some(Use {
            by: convert::parse("who used a join token", &by)?,
            key: Digest::parse(&key).ok_or_else(|| Error::damaged("the key that used a join token", key))?,
        }),
        (None, _) | (Some(_), None) => None,
    };
    Ok(JoinTokenRow {
        id,
        hash: Digest::parse(&hash).ok_or_else(|| Error::damaged("a join token's hash", hash))?,
        agent: agent.map(|agent| convert::parse("a join token's agent", &agent)).transpose()?,
        labels,
        expires_at: Wall(expires_at),
        created_at: Wall(created_at),
        created_by,
        revoked,
        used,
    })
}

type RawCertificate = (String, Option<String>, i64, Option<i64>, Option<i64>);

fn raw_certificate(row: &Row<'_>) -> rusqlite::Result<RawCertificate> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
}

fn read_certificate(raw: RawCertificate) -> Result<CertificateRow, Error> {
    let (fingerprint, agent, issued_at, expires_at, revoked_at) = raw;
    Ok(CertificateRow {
        fingerprint,
        agent: agent.map(|agent| convert::parse("a certificate's agent", &agent)).transpose()?,
        issued_at: Wall(issued_at),
        expires_at: expires_at.map(Wall),
        revoked_at: revoked_at.map(Wall),
    })
}
