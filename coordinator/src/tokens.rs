//! Operators' tokens in the store.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;

use holdfast_common::id::{OperatorName, StoreId};
use holdfast_common::time::{Millis, Wall};
use uuid::Uuid;

use crate::auth::scope::MAX_GRANTS;
use crate::auth::secret::NoRandomness;
use crate::auth::{Grant, Hash, Scope, Secret, Token, Tokens};
use crate::store::sqlite::SqliteStore;
use crate::store::{self, Act, Digest, Reader, Store, TokenRow, Transaction};

/// The longest life of a token.
pub const LONGEST_LIFE: Millis = Millis::from_secs(366 * 86_400);

/// A token that was taken back ends at this instant.
const REVOKED: Wall = Wall(0);

/// Tokens as the guard looks them up.
#[derive(Clone)]
pub struct StoredTokens {
    reader: Reader,
}

impl StoredTokens {
    /// Over what is committed.
    #[must_use]
    pub fn new(reader: Reader) -> Self {
        Self { reader }
    }
}

impl Tokens for StoredTokens {
    fn find(&self, hash: Hash) -> Pin<Box<dyn Future<Output = Result<Option<Token>, String>> + Send + '_>> {
        Box::pin(async move {
            let found = self.reader.glance(move |reader| reader.token(Digest(hash.0))).await;
            match found.map_err(|error| error.to_string())? {
                // The index found it; this compares it once more, in constant time.
                Some(row) if Hash(row.hash.0) == hash => token(&row).map(Some),
                Some(_) | None => Ok(None),
            }
        })
    }
}

/// A row as a token. A row without an end has ended: every token must have one.
pub fn token(row: &TokenRow) -> Result<Token, String> {
    let grant =
        |text: &String| text.parse::<Grant>().map_err(|error| format!("a grant of token {}: {error}", row.name));
    let grants = row.grants.iter().map(grant).collect::<Result<_, _>>()?;
    let expires_at = row.expires_at.unwrap_or(REVOKED);
    Ok(Token {
        name: row.name.clone(),
        scope: Scope::new(grants),
        expires_at,
        revoked: expires_at == REVOKED,
        created_at: row.created_at,
        created_by: row.created_by.clone(),
    })
}

/// The row of a token that was taken back.
#[must_use]
pub fn revoked(row: TokenRow) -> TokenRow {
    TokenRow { expires_at: Some(REVOKED), ..row }
}

/// A new token: its secret, which is nowhere else and is to be shown once, and what is kept of it.
pub fn draw(
    name: &OperatorName,
    grants: &[Grant],
    life: Millis,
    now: Wall,
    by: Option<&OperatorName>,
) -> Result<(Secret, TokenRow), Error> {
    if life < Millis::from_secs(1) || life > LONGEST_LIFE {
        return Err(Error::Life);
    }
    if grants.is_empty() || grants.len() > MAX_GRANTS {
        return Err(Error::Grants);
    }
    let secret = Secret::generate()?;
    let row = TokenRow {
        hash: Digest(secret.hash().0),
        name: name.clone(),
        grants: grants.iter().map(ToString::to_string).collect(),
        expires_at: Some(Wall(now.0.saturating_add_unsigned(life.0.saturating_mul(1000)))),
        created_at: Some(now),
        created_by: by.cloned(),
    };
    Ok((secret, row))
}

/// Why a token could not be made, listed or taken back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none to work on.
    #[error("there is no store at {path}: start the coordinator once, or check data_dir")]
    NoStore {
        /// Where it should be.
        path: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// No random bytes.
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    /// The name is in use.
    #[error("a valid token of the name {0} exists: revoke it first, or take another name")]
    Exists(OperatorName),
    /// No such token.
    #[error("there is no token of the name {0}")]
    NotFound(OperatorName),
    /// Too short or too long a life.
    #[error("a token lives at least a second and at most {LONGEST_LIFE}")]
    Life,
    /// None, or too many.
    #[error("a token has 1 to {MAX_GRANTS} grants")]
    Grants,
    /// A row that can't be read.
    #[error("{0}")]
    Row(String),
}

/// Makes a token for an operator. The secret is nowhere else: it is to be shown once.
pub fn create(path: &Path, name: &OperatorName, grants: &[Grant], life: Millis, now: Wall) -> Result<Secret, Error> {
    let (secret, row) = draw(name, grants, life, now, None)?;
    let mut store = open(path, now)?;
    let taken = store.reader().tokens()?.iter().any(|row| row.name == *name && row.expires_at > Some(now));
    if taken {
        return Err(Error::Exists(name.clone()));
    }
    put(&mut store, &row, &made(&row, now))?;
    Ok(secret)
}

/// Every token, by name.
pub fn list(path: &Path, now: Wall) -> Result<Vec<Token>, Error> {
    let rows = open(path, now)?.reader().tokens()?;
    rows.iter().map(|row| token(row).map_err(Error::Row)).collect()
}

/// Takes a token back, from the next call on.
pub fn revoke(path: &Path, name: &OperatorName, now: Wall) -> Result<(), Error> {
    let mut store = open(path, now)?;
    let found = store.reader().tokens()?.into_iter().find(|row| row.name == *name);
    let row = found.ok_or_else(|| Error::NotFound(name.clone()))?;
    let act = taken_back(&row, None, now);
    put(&mut store, &revoked(row), &act)
}

/// What is kept of making a token, beside the token itself.
#[must_use]
pub fn made(row: &TokenRow, at: Wall) -> Act {
    let until = row.expires_at.map(crate::grpc::view::instant).unwrap_or_default();
    let detail = format!("{} until {until}", row.grants.join(" "));
    Act { at, by: by_whom(row.created_by.as_ref()), kind: "token_made", about: row.name.to_string(), detail }
}

/// What is kept of taking a token back.
#[must_use]
pub fn taken_back(row: &TokenRow, by: Option<&OperatorName>, at: Wall) -> Act {
    Act { at, by: by_whom(by), kind: "token_revoked", about: row.name.to_string(), detail: row.grants.join(" ") }
}

/// A name of an operator, or what is done beside the coordinator, which knows no names.
fn by_whom(by: Option<&OperatorName>) -> String {
    by.map_or_else(|| "(on the coordinator's host)".to_owned(), ToString::to_string)
}

fn put(store: &mut SqliteStore, row: &TokenRow, act: &Act) -> Result<(), Error> {
    let mut tx = store.begin()?;
    tx.put_token(row)?;
    tx.keep_act(act)?;
    Ok(tx.commit()?)
}

/// Beside a coordinator that may be running, in one short transaction.
fn open(path: &Path, now: Wall) -> Result<SqliteStore, Error> {
    Ok(SqliteStore::open_beside(path, StoreId(Uuid::new_v4()), now)?)
}

/// Refuses to make a store where there should be one.
pub fn must_exist(path: &Path) -> Result<(), Error> {
    if path.exists() { Ok(()) } else { Err(Error::NoStore { path: path.display().to_string() }) }
}
