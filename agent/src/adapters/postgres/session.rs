//! One connection, used by one thread.
//!
//! Statements go without a name and with typed parameters: nothing is left behind at the server, and one of them is one
//! statement, whatever its text says.

use std::time::Duration;

use holdfast_common::fence::{Epoch, Fence};
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
const PREFIX: &str = "holdfast:";
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
        let runtime = runtime.map_err(|error| Failure::NotBegun(format!("could not start the runtime: {error}")))?;
        let mut config = access.config.clone();
        config.application_name(name).connect_timeout(CONNECT);
        before(Call::Connect);
        let connect = async {
            let (client, connection) = match &access.tls {
                Some(asked) => {
                    let (client, connection) =
                        config.connect(tls::connector(asked)?).await.map_err(|e| refusal::connecting(&e))?;
                    (client, tokio::spawn(async move { drop(connection.await) }))
                }
                None => {
                    let (client, connection) =
                        config.connect(NoTls).await.map_err(|error| refusal::connecting(&error))?;
                    (client, tokio::spawn(async move { drop(connection.await) }))
                }
            };
            client.batch_execute(SETTINGS).await.map_err(|error| refusal::connecting(&error))?;
            Ok::<_, Failure>((client, connection))
        };
        let (client, connection) = runtime.block_on(connect)?;
        Ok(Self { runtime, client: Some(client), connection: Some(connection) })
    }

    /// One statement, to its end: what comes back was committed.
    pub(super) fn query(&self, call: Call, statement: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Error> {
        before(call);
        self.runtime.block_on(self.client().query_typed(statement, parameters))
    }

    /// Has a statement read, and nothing more.
    pub(super) fn parse(&self, statement: &str) -> Result<(), Error> {
        self.runtime.block_on(self.client().prepare(statement)).map(drop)
    }

    fn client(&self) -> &Client {
        self.client.as_ref().expect("there until the session is dropped")
    }
}

/// Says goodbye, so that a look that follows finds no session of a process that has ended.
impl Drop for Session {
    fn drop(&mut self) {
        before(Call::Close);
        drop(self.client.take());
        if let Some(connection) = self.connection.take() {
            let _ = self.runtime.block_on(async { tokio::time::timeout(GOODBYE, connection).await });
        }
    }
}

/// What a session is called that runs an operation under a fence: `holdfast:<fence>:<deployment>/<step>`, with a digest in place of the
/// operation where the server would cut that.
pub(super) fn name(operation: &OperationId, fence: Fence) -> String {
    let whole = format!("{PREFIX}{fence}:{operation}");
    if whole.len() <= MAX_NAME { whole } else { format!("{PREFIX}{fence}:{}", digest(operation)) }
}

/// The fence of a session that runs that operation. `None`: it is another's.
pub(super) fn fence_of(name: &str, operation: &OperationId) -> Option<Fence> {
    let (fence, named) = name.strip_prefix(PREFIX)?.split_once(':')?;
    if named != operation.to_string() && named != digest(operation) {
        return None;
    }
    let (epoch, counter) = fence.split_once('.')?;
    let first = Fence::first(Epoch(epoch.parse().ok()?))?;
    let counter = counter.parse::<u64>().ok()?.checked_sub(1)?;
    Fence::from_u64(first.as_u64().checked_add(counter)?)
}

fn digest(operation: &OperationId) -> String {
    hex(&Sha256::digest(operation.to_string()))[..24].to_owned()
}

#[cfg(test)]
mod tests {
    use holdfast_common::id::{DeploymentId, StepName};
    use uuid::Uuid;

    use super::*;

    fn operation(step: &str) -> OperationId {
        OperationId { deployment: DeploymentId(Uuid::nil()), step: StepName::new(step).unwrap() }
    }

    #[test]
    fn a_sessions_name_fits_and_tells_operation_and_fence() {
        let last = Fence::from_u64((((1 << 24) - 1) << 40) | ((1 << 40) - 1)).unwrap();
        let first = Fence::first(Epoch(1)).unwrap();
        let steps = ["migrate", "migrate-the-database-1", "migrate-the-database-2"];
        for step in steps {
            for fence in [first, last] {
                let named = name(&operation(step), fence);
                assert!(named.len() <= MAX_NAME, "{named}");
                for other in steps {
                    assert_eq!(fence_of(&named, &operation(other)), (step == other).then_some(fence), "{named}");
                }
            }
        }
        assert_eq!(name(&operation("m"), first), "holdfast:1.1:00000000-0000-0000-0000-000000000000/m");
    }
}
