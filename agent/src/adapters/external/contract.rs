//! The contract with a program: one request on its standard input, one answer on its standard output.
//!
//! | call | good | or |
//! | --- | --- | --- |
//! | `describe` | `described` | `transient`, `failed` |
//! | `examine` | `fit` | `refused`, `transient`, `failed` |
//! | `apply` | `applied`, `applied_before` | `refused`, `transient`, `failed` |
//! | `inspect` | `read` | `transient`, `failed` |
//! | `raise` | `raised` | `refused`, `transient`, `failed` |

use std::collections::BTreeMap;
use std::path::Path;

use holdfast_common::adapter::{Capability, Enforce, Inspect};
use holdfast_common::fence::Fence;
use holdfast_common::id::{DeploymentId, OperationId, ResourceName, Revision, StepName, TargetName};
use holdfast_common::outcome::OperationState;
use serde::{Deserialize, Serialize};

/// Its name and version. A change that a program could misread is another version.
pub(super) const PROTOCOL: &str = "holdfast.adapter/1";

/// What a program is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Asked {
    Describe,
    Examine,
    Apply,
    Inspect,
    Raise,
}

impl Asked {
    pub(super) fn word(self) -> &'static str {
        match self {
            Asked::Describe => "describe",
            Asked::Examine => "examine",
            Asked::Apply => "apply",
            Asked::Inspect => "inspect",
            Asked::Raise => "raise",
        }
    }

    /// A refusal says that nothing was changed. What changes nothing anyway has none.
    pub(super) fn may_be_refused(self) -> bool {
        match self {
            Asked::Examine | Asked::Apply | Asked::Raise => true,
            Asked::Describe | Asked::Inspect => false,
        }
    }
}

/// The request. What there is none of is `null`: every key is always there.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Request<'a> {
    pub(super) protocol: &'static str,
    pub(super) call: Asked,
    pub(super) target: &'a TargetName,
    pub(super) resource: &'a ResourceName,
    pub(super) settings: &'a BTreeMap<String, String>,
    pub(super) operation: Operation<'a>,
    /// Decimal: a number of JSON is not exact beyond 2^53.
    pub(super) fence: Option<String>,
    pub(super) archive: Option<&'a Path>,
    pub(super) work: Option<&'a Path>,
}

/// The step in question.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Operation<'a> {
    pub(super) id: String,
    pub(super) deployment: DeploymentId,
    pub(super) step: &'a StepName,
    pub(super) revision: Option<&'a Revision>,
    pub(super) expected_revision: Option<&'a Revision>,
    pub(super) settings: Option<&'a BTreeMap<String, String>>,
}

/// The answer, as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    protocol: String,
    outcome: Word,
    #[serde(default)]
    reason: Option<Reason>,
    #[serde(default)]
    detail: Option<String>,
    #[serde(default)]
    capability: Option<Claimed>,
    #[serde(default)]
    reading: Option<SaidReading>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Described,
    Fit,
    Applied,
    AppliedBefore,
    Read,
    Raised,
    Refused,
    Transient,
    Failed,
}

/// Why a program refused. It says that nothing was changed by this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reason {
    Fence,
    Revision,
    Content,
    Resource,
}

/// What a program says that it can prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claimed {
    inspect: Inspect,
    enforce: Enforce,
    outlives: bool,
}

impl From<Claimed> for Capability {
    fn from(claimed: Claimed) -> Self {
        Self { inspect: claimed.inspect, enforce: claimed.enforce, outlives: claimed.outlives }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SaidReading {
    resource_identity: String,
    state: OperationState,
    #[serde(default)]
    revision: Option<Revision>,
    #[serde(default)]
    active: Option<String>,
    #[serde(default)]
    highest_fence: Option<String>,
    #[serde(default)]
    detail: Option<String>,
}

/// The answer, as it is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Described { capability: Claimed },
    Fit,
    Applied,
    AppliedBefore,
    Read { reading: Read },
    Raised,
    Refused { reason: Reason, detail: String },
    Transient { detail: String },
    Failed { detail: String },
}

/// A reading, before it is held against what the target declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) resource_identity: String,
    pub(super) state: OperationState,
    pub(super) revision: Option<Revision>,
    pub(super) active: Option<OperationId>,
    pub(super) highest_fence: Option<Fence>,
    pub(super) detail: String,
}

/// Why an answer is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("it is no answer of this contract: {0}")]
    Form(String),
    #[error("it is of {0:?}, not of {PROTOCOL}")]
    Protocol(String),
    #[error("{outcome} needs {key}")]
    Lacks { outcome: &'static str, key: &'static str },
    #[error("{outcome} has no {key}")]
    TooMuch { outcome: &'static str, key: &'static str },
    #[error("{0:?} is no fence in decimal")]
    Fence(String),
    #[error("{0:?} is no operation's id")]
    Operation(String),
}

impl Answer {
    /// As it is written.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Answer::Described { .. } => "described",
            Answer::Fit => "fit",
            Answer::Applied => "applied",
            Answer::AppliedBefore => "applied_before",
            Answer::Read { .. } => "read",
            Answer::Raised => "raised",
            Answer::Refused { .. } => "refused",
            Answer::Transient { .. } => "transient",
            Answer::Failed { .. } => "failed",
        }
    }
}

/// Reads an answer. Whatever is not wholly understood is none.
pub(super) fn answer(text: &[u8]) -> Result<Answer, NoAnswer> {
    let said: Said = serde_json::from_slice(text).map_err(|error| NoAnswer::Form(error.to_string()))?;
    if said.protocol != PROTOCOL {
        return Err(NoAnswer::Protocol(said.protocol));
    }
    let keys =
        Keys { reason: said.reason.is_some(), capability: said.capability.is_some(), reading: said.reading.is_some() };
    let detail = said.detail.unwrap_or_default();
    let answer = match said.outcome {
        Word::Described => Answer::Described { capability: needed("described", "capability", said.capability)? },
        Word::Fit => Answer::Fit,
        Word::Applied => Answer::Applied,
        Word::AppliedBefore => Answer::AppliedBefore,
        Word::Read => Answer::Read { reading: needed("read", "reading", said.reading)?.try_into()? },
        Word::Raised => Answer::Raised,
        Word::Refused => Answer::Refused { reason: needed("refused", "reason", said.reason)?, detail },
        Word::Transient => Answer::Transient { detail },
        Word::Failed => Answer::Failed { detail },
    };
    keys.fit(&answer)?;
    Ok(answer)
}

/// Which keys an answer came with.
struct Keys {
    reason: bool,
    capability: bool,
    reading: bool,
}

impl Keys {
    /// A key that its outcome does not have says that something else was meant.
    fn fit(&self, answer: &Answer) -> Result<(), NoAnswer> {
        let too_much = [
            (self.reason && !matches!(answer, Answer::Refused { .. }), "reason"),
            (self.capability && !matches!(answer, Answer::Described { .. }), "capability"),
            (self.reading && !matches!(answer, Answer::Read { .. }), "reading"),
        ];
        match too_much.into_iter().find(|(is, _)| *is) {
            Some((_, key)) => Err(NoAnswer::TooMuch { outcome: answer.word(), key }),
            None => Ok(()),
        }
    }
}

fn needed<T>(outcome: &'static str, key: &'static str, value: Option<T>) -> Result<T, NoAnswer> {
    value.ok_or(NoAnswer::Lacks { outcome, key })
}

impl TryFrom<SaidReading> for Read {
    type Error = NoAnswer;

    fn try_from(said: SaidReading) -> Result<Self, NoAnswer> {
        let highest_fence = said.highest_fence.map(|text| fence(&text).ok_or(NoAnswer::Fence(text))).transpose()?;
        let active = said.active.map(|text| operation(&text).ok_or(NoAnswer::Operation(text))).transpose()?;
        Ok(Self {
            resource_identity: said.resource_identity,
            state: said.state,
            revision: said.revision,
            active,
            highest_fence,
            detail: said.detail.unwrap_or_default(),
        })
    }
}

fn fence(text: &str) -> Option<Fence> {
    let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_decimal.then(|| text.parse().ok()).flatten().and_then(Fence::from_u64)
}

fn operation(text: &str) -> Option<OperationId> {
    let (deployment, step) = text.split_once('/')?;
    Some(OperationId { deployment: deployment.parse().ok()?, step: StepName::new(step).ok()? })
}

#[cfg(test)]
mod tests;
