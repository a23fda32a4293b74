//! What a call is told.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::PathBuf;
use std::process::Stdio;

use holdfast_common::fence::Fence;
use holdfast_common::id::{OperationId, ResourceName, Revision, TargetName};
use holdfast_common::system::{Change, System};
use serde::{Deserialize, Serialize};

use crate::secrets::VARIABLE;

/// One call. Holds no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// Whose resource.
    pub target: TargetName,
    /// Its name there.
    pub resource: ResourceName,
    /// As its target declares it.
    pub system: System,
    /// The operation in question.
    pub operation: Operation,
    /// What to do.
    pub call: Call,
    /// The program of an external adapter, as this host names it.
    pub program: Option<PathBuf>,
    /// Whether this host's own file says where the resource may be, and it is there: then a secret of the set may be told there.
    #[serde(default)]
    pub is_placed: bool,
    /// A folder for files that may go at any time, kept between calls on the same resource.
    pub cache: PathBuf,
}

impl Order {
    /// As the standard input of a call: a file without a name, since an argument has its bounds and a pipe blocks.
    pub(crate) fn stdin(&self) -> io::Result<Stdio> {
        let text = serde_json::to_vec(self).expect("plain data serializes");
        let mut file = File::from(rustix::fs::memfd_create("holdfast-order", rustix::fs::MemfdFlags::CLOEXEC)?);
        file.write_all(&text)?;
        file.rewind()?;
        Ok(file.into())
    }
}

/// A step on its resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// The idempotency key.
    pub id: OperationId,
    /// The revision that the resource has afterwards.
    pub revision: Option<Revision>,
    /// The revision that it must have before.
    pub expected_revision: Option<Revision>,
    /// What is asked; `None`: the step asks nothing of the system, it runs a command.
    pub change: Option<Change>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "call")]
pub enum Call {
    /// Says what would be refused. Changes nothing.
    Examine {
        /// The change's archive, brought and checked.
        archive: Option<PathBuf>,
        /// The attempt's folder.
        work: PathBuf,
    },
    /// Makes the change, once.
    Apply {
        /// The attempt's fence.
        fence: Fence,
        /// The change's archive, brought and checked.
        archive: Option<PathBuf>,
        /// The attempt's folder.
        work: PathBuf,
    },
    /// Reads the resource, and what became of the operation.
    Inspect,
    /// Refuses everything below that fence from now on, then reads.
    Raise {
        /// The fence.
        fence: Fence,
    },
}

/// What proves at the system who asks: the variables and the folder of one credential set.
#[derive(Clone, Default)]
pub struct Credentials {
    variables: BTreeMap<String, String>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.variables.keys()).finish()
    }
}

impl Credentials {
    /// As this process was given them.
    #[must_use]
    pub fn of_process() -> Self {
        Self {
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        }
    }

    /// For a call within this process.
    #[must_use]
    pub fn of(variables: BTreeMap<String, String>) -> Self {
        Self { variables }
    }

    /// A variable.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Every variable, the base that each process has included.
    #[must_use]
    pub fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// Where a file of the set is, where there is one of that name.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        let path = PathBuf::from(self.variables.get(VARIABLE)?).join(name);
        path.is_file().then_some(path)
    }
}
