//! What a program of the host reaches, over the contract in `docs/external-adapters.md`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Archive;
use crate::adapter::{Capability, Enforce, Inspect};

/// A resource that a program of the host changes and reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct External {
    /// The program, by the name that each host gives it.
    pub program: String,
    /// What the program can read back.
    pub inspect: Inspect,
    /// What the resource refuses in the same atomic step as the effect.
    pub enforce: Enforce,
    /// Whether an effect can outlive the program.
    pub outlives: bool,
    /// For the program alone.
    pub settings: BTreeMap<String, String>,
}

impl External {
    pub(super) fn capability(&self) -> Capability {
        Capability { inspect: self.inspect, enforce: self.enforce, outlives: self.outlives }
    }
}

/// A change by a program of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalChange {
    /// Files for the program.
    pub archive: Option<Archive>,
    /// For the program alone.
    pub settings: BTreeMap<String, String>,
}
