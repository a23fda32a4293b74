//! One connection, used by one thread.
//!
//! Statements go without a name and with typed parameters: nothing is left behind at the server, and one of them is one
//! statement, whatever its text says.

use std::time::Duration;

use holdfast_common::id::OperationId;
use holdfast_common::spec::hex;
use sha2::{Digest, Sha256};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, NoTls, Row};

use super::access::Access;
use super::calls::{Call, before};
use super::{refusal, tls};
use crate::adapters::system::Failure;

const CONNECT: Duration = Duration::from_secs(15);
/// How long the goodbye may take. The server notices without it too, a moment later.
const GOODBYE: Duration = Duration::from_secs(2);
/// So that no role's own setting changes what a statement means.
const SETTINGS: &str = "SET search_path = pg_catalog, pg_temp; SET default_transaction_isolation = 'read committed'; SET standard_conforming_strings = on";
/// Longest name of a session that the server keeps whole, in bytes.
const MAX_NAME: usize = 63;

/// A parameter, with its type.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// An open session.
pub(super) struct Session {
    runtime: Runtime,
    client: Option<Client>,
    connection: Option<JoinHandle<()>>,
}

impl Session {
    /// Connects. The name is what others see of it.
    pub(super) fn open(access: &Access, name: &str) -> Result<Self, Failure> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| Failure::Machinery(format!("could not start the runtime: {error}")))?;
        let mut config = access.config.clone();
        config.application_name(name).connect_timeout(CONNECT);
        before(Call::Connect);
        let connect = async {
            let (client, connection) = match &access.roots {
                Some(roots) => {
                    let (client, connection) =
                        config.connect(tls::connector(roots)?).await.map_err(|e| refusal::connecting(&e))?;
                    (client, tokio::spawn(async move { drop(connection.await) }))
                }
                None => {
                    let (client, connection) =
                        config.connect(NoTls).await.map_err(|error| refusal::connecting(&error))?;
                    (client, tokio::spawn(async move { drop(connection.await) }))
                }
            };
            client.batch_execute(SETTINGS).await.map_err(|error| refusal::connecting(&error))?;
            Ok((client, connection))
        };
        let (client, connection) = runtime.block_on(connect)?;
        Ok(Self { runtime, client: Some(client), connection: Some(connection) })
    }

    /// One statement, to its end: what comes back was committed.
    pub(super) fn query(&self, call: Call, statement: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Error> {
        let client = self.client.as_ref().expect("there until the session is dropped");
        before(call);
        self.runtime.block_on(client.query_typed(statement, parameters))
    }
}

/// Says goodbye, so that a look that follows finds no session of a process that has ended.
impl Drop for Session {
    fn drop(&mut self) {
        drop(self.client.take());
        if let Some(connection) = self.connection.take() {
            let _ = self.runtime.block_on(async { tokio::time::timeout(GOODBYE, connection).await });
        }
    }
}

/// What a session that runs an operation is called: `holdfast:<deployment>/<step>`, where the server keeps that whole.
pub(super) fn name(operation: &OperationId) -> String {
    let whole = format!("holdfast:{operation}");
    if whole.len() <= MAX_NAME {
        return whole;
    }
    let digest = hex(&Sha256::digest(operation.step.as_str()));
    format!("holdfast:{}/{}~{}", operation.deployment, &operation.step.as_str()[..4], &digest[..12])
}

#[cfg(test)]
mod tests {
    use holdfast_common::id::{DeploymentId, StepName};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn names_of_sessions_fit_and_tell_operations_apart() {
        let named = |step: &str| {
            name(&OperationId { deployment: DeploymentId(Uuid::nil()), step: StepName::new(step).unwrap() })
        };
        assert_eq!(named("migrate"), "holdfast:00000000-0000-0000-0000-000000000000/migrate");
        let (one, other) = (named("migrate-the-database-1"), named("migrate-the-database-2"));
        assert!(one.len() <= MAX_NAME && other.len() <= MAX_NAME && one != other, "{one} {other}");
    }
}
