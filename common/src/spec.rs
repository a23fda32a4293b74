//! What was asked for, resolved: no defaults left to fill, no substitution left to make.
//!
//! These are what is stored, hashed into the plan's digest, and sent to agents. The files that people write are read
//! into them by [`crate::file`].

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::adapter::{Adapter, Capability, Enforce, Inspect, Reverse};
use crate::id::{ResourceName, Revision, StepName, TargetName};
use crate::recovery::Policy;
use crate::rollback::{DataEffect, RollbackSpec, Way};
use crate::system::{Change, System};
use crate::time::Millis;

/// A target as declared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetSpec {
    /// Its name.
    pub name: TargetName,
    /// Labels that an agent must all have. Never empty.
    pub agents: BTreeMap<String, String>,
    /// Who decides when contact was lost.
    pub policy: Policy,
    /// How long the policy waits before it moves. `None`: ten lengths of the deployment's lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<Millis>,
    /// What a newer deployment does to those that wait. A target that was stored before queues had kinds is `fifo`.
    #[serde(default, skip_serializing_if = "QueueKind::is_fifo")]
    pub queue: QueueKind,
    /// Its resources, in file order. Never empty.
    pub resources: Vec<ResourceSpec>,
}

impl TargetSpec {
    /// The resource of that name.
    #[must_use]
    pub fn resource(&self, name: &ResourceName) -> Option<&ResourceSpec> {
        self.resources.iter().find(|resource| &resource.name == name)
    }
}

/// What a newer deployment does to those that wait for the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueKind {
    /// Nothing: each has its turn.
    #[default]
    Fifo,
    /// It takes their place: they end as cancelled, superseded. The one that holds the target is never touched.
    Latest,
}

impl QueueKind {
    /// Whether each has its turn.
    #[must_use]
    pub fn is_fifo(&self) -> bool {
        matches!(self, QueueKind::Fifo)
    }
}

/// Who can reach a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// Only the agent of its own host runs steps on it, inspects it, fences it.
    Host,
    /// Every eligible agent does.
    Shared,
}

/// One thing that steps change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceSpec {
    /// Its name.
    pub name: ResourceName,
    /// Who can reach it.
    pub reach: Reach,
    /// The adapter and its settings.
    pub adapter: ResourceAdapter,
}

/// A resource's adapter and settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "adapter")]
pub enum ResourceAdapter {
    /// Changed by commands.
    Command {
        /// An argv that prints the resource's revision as the first line of its output, or nothing can be read back.
        inspect: Option<Vec<String>>,
        /// Whether an effect can outlive its process. True unless declared otherwise.
        outlives: bool,
    },
    /// A folder of releases with a `current` link.
    Release {
        /// Absolute path of the folder.
        root: String,
        /// How many old releases stay for a rollback.
        retain: u32,
    },
    /// A system that keeps a ledger of its own.
    System(System),
}

impl ResourceAdapter {
    /// How it goes back.
    #[must_use]
    pub fn reverse(&self) -> Reverse {
        match self {
            ResourceAdapter::Command { .. }
            | ResourceAdapter::System(_)
            | ResourceAdapter::Release { retain: 0, .. } => Reverse::None,
            ResourceAdapter::Release { .. } => Reverse::RetainedRevision,
        }
    }

    /// Who changes it.
    #[must_use]
    pub fn adapter(&self) -> Adapter {
        match self {
            ResourceAdapter::Command { .. } => Adapter::Command,
            ResourceAdapter::Release { .. } => Adapter::Release,
            ResourceAdapter::System(system) => system.adapter(),
        }
    }

    /// The system, where it is one.
    #[must_use]
    pub fn system(&self) -> Option<&System> {
        match self {
            ResourceAdapter::System(system) => Some(system),
            ResourceAdapter::Command { .. } | ResourceAdapter::Release { .. } => None,
        }
    }
}

/// A deployment as resolved at submission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeploymentSpec {
    /// The target.
    pub target: TargetName,
    /// The inputs after typing and defaults, as substituted.
    pub inputs: BTreeMap<String, String>,
    /// How long an agent may act without renewing.
    pub lease_ttl: Millis,
    /// The steps, in order, health checks last. Never empty, names unique.
    pub steps: Vec<StepSpec>,
    /// From SIGTERM to SIGKILL.
    pub cancel_grace: Millis,
    /// Limits for attempts that follow by themselves.
    pub retry: RetrySpec,
    /// Who decides when contact was lost, where it is to be stricter than the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Its place in an order that its author knows, like a build's number; `None` claims none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderKey>,
    /// When to ask for a stop of the whole. Claims none.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// The way back from it, where its file declares one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<RollbackSpec>,
}

impl DeploymentSpec {
    /// Its steps, and those of its own way back.
    pub fn steps_both_ways(&self) -> impl Iterator<Item = &StepSpec> {
        let back = self.rollback.iter().flat_map(|rollback| match &rollback.way {
            Way::Steps { steps } => steps.as_slice(),
            Way::PreviousRevision => &[],
        });
        self.steps.iter().chain(back)
    }
}

/// Policy deadlines of a whole deployment. Both ask for a stop, neither claims one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// From submission until an agent first took it.
    pub queue: Option<Millis>,
    /// From when an agent first took it until its observed end.
    pub deployment: Option<Millis>,
}

/// A place in an order that only the author of a deployment knows: of two deployments the one with the higher key is
/// the newer. 0 to 2^63-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OrderKey(u64);

impl OrderKey {
    /// The highest.
    pub const MAX: OrderKey = OrderKey(i64::MAX as u64);

    /// `None` above [`Self::MAX`].
    #[must_use]
    pub fn new(number: u64) -> Option<Self> {
        (number <= Self::MAX.0).then_some(Self(number))
    }

    /// The key as a number.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    /// By decimal digits and nothing else: no sign, no space.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten().and_then(Self::new)
    }
}

impl std::fmt::Display for OrderKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Limits for attempts that follow by themselves: only after attempts that changed nothing, or nothing that may not
/// be repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetrySpec {
    /// Tries in all, the first included.
    pub max_attempts: u32,
    /// Bound of the first delay.
    pub backoff_initial: Millis,
    /// Bound of every delay.
    pub backoff_max: Millis,
    /// Exit statuses of commands that are worth another try. Never zero.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub transient_exit_codes: BTreeSet<u8>,
}

/// A named part of a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSpec {
    /// Its name, unique in the deployment.
    pub name: StepName,
    /// Whether it changes anything outside.
    pub effect: StepEffect,
    /// The resource it changes or belongs to. Always there for a mutating step.
    pub resource: Option<ResourceName>,
    /// Whether it may be repeated.
    pub retry: RetryClass,
    /// What it does.
    pub body: StepBody,
    /// The revision the resource should have afterwards, where the step names one.
    pub revision: Option<Revision>,
    /// The revision the resource must have before, where the step pins one.
    pub expected_revision: Option<Revision>,
    /// When to ask for a stop. Claims none.
    pub timeout: Option<Millis>,
    /// What it does to data.
    #[serde(default, skip_serializing_if = "DataEffect::is_none")]
    pub data: DataEffect,
}

/// Whether a step is visible outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepEffect {
    /// It is. Begins only under a permit.
    Mutates,
    /// It is not. Runs under a live lease alone.
    None,
}

/// Whether a step may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryClass {
    /// It has no external effect.
    Pure,
    /// Safe to repeat under the same operation id.
    Idempotent,
    /// Never repeated without a decision.
    Unsafe,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum StepBody {
    /// Runs an argv, without a shell.
    Command {
        /// Program and arguments. Never empty.
        argv: Vec<String>,
    },
    /// Unpacks an archive and switches `current` to it.
    Release {
        /// Where it comes from: an [`ArchiveSource`](crate::archive::ArchiveSource).
        archive: String,
        /// SHA-256 of the archive, lower-case hex.
        sha256: String,
    },
    /// Puts the retained revision that the step names back in place.
    Restore,
    /// Looks whether what runs is healthy, until that has held for long enough or the time is up.
    Check(CheckSpec),
    /// Asks a change of a system.
    System(Change),
}

/// A health check: a final step without effect. It holds when no look failed within a whole window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckSpec {
    /// What is looked at.
    pub probe: Probe,
    /// How long it must have held without a failure. Zero: one look is enough.
    pub hold: Millis,
    /// From the begin of one look to the begin of the next.
    pub interval: Millis,
    /// The agent gives up after so long, and the check has failed.
    pub give_up: Millis,
}

/// One kind of look.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "probe")]
pub enum Probe {
    /// A GET. Redirects are not followed.
    Http {
        /// `http://` or `https://`, without credentials.
        url: String,
        /// The only status that is healthy.
        expect_status: u16,
        /// What must stand somewhere in the first part of the answer, where anything must.
        expect_body: Option<String>,
    },
    /// A connection that is accepted.
    Tcp {
        /// `host:port`.
        address: String,
    },
    /// An argv that exits with 0.
    Command {
        /// Program and arguments. Never empty.
        argv: Vec<String>,
    },
}

/// How long after a check should have given up by itself a stop is asked for.
const CHECK_SLACK: Millis = Millis::from_secs(5);

impl StepBody {
    /// Who carries it out.
    #[must_use]
    pub fn adapter(&self) -> Adapter {
        match self {
            StepBody::Command { .. } => Adapter::Command,
            StepBody::Release { .. } | StepBody::Restore => Adapter::Release,
            StepBody::Check(CheckSpec { probe: Probe::Command { .. }, .. }) => Adapter::Command,
            StepBody::Check(CheckSpec { probe: Probe::Http { .. } | Probe::Tcp { .. }, .. }) => Adapter::Check,
            StepBody::System(change) => change.adapter(),
        }
    }

    /// The check, where it is one.
    #[must_use]
    pub fn check(&self) -> Option<&CheckSpec> {
        match self {
            StepBody::Check(check) => Some(check),
            StepBody::Command { .. } | StepBody::Release { .. } | StepBody::Restore | StepBody::System(_) => None,
        }
    }

    /// Source and digest of the archive that it needs, where it needs one.
    #[must_use]
    pub fn archive(&self) -> Option<(&str, &str)> {
        match self {
            StepBody::Release { archive, sha256 } => Some((archive, sha256)),
            StepBody::System(change) => change.archive().map(|one| (one.archive.as_str(), one.sha256.as_str())),
            StepBody::Command { .. } | StepBody::Restore | StepBody::Check(_) => None,
        }
    }

    /// Whether it puts something in place that is looked at before its permit.
    #[must_use]
    pub fn is_examined(&self) -> bool {
        match self {
            StepBody::Release { .. } | StepBody::Restore | StepBody::System(_) => true,
            StepBody::Command { .. } | StepBody::Check(_) => false,
        }
    }
}

impl StepSpec {
    /// How long after its begin a stop is asked for, where it has a deadline. A check keeps its own time; this is for one
    /// that does not.
    #[must_use]
    pub fn stop_after(&self) -> Option<Millis> {
        let check = self.body.check().map(|check| Millis(check.give_up.0.saturating_add(CHECK_SLACK.0)));
        self.timeout.or(check)
    }

    /// What can be proven of this step on that resource.
    #[must_use]
    pub fn capability(&self, resource: &ResourceSpec) -> Capability {
        match (&self.body, &resource.adapter) {
            (StepBody::Release { .. } | StepBody::Restore, _) => {
                Capability { inspect: Inspect::Operation, enforce: Enforce::Fence, outlives: false }
            }
            (StepBody::Command { .. }, ResourceAdapter::Command { inspect, outlives }) => Capability {
                inspect: if inspect.is_some() && self.revision.is_some() { Inspect::Revision } else { Inspect::None },
                enforce: Enforce::None,
                outlives: *outlives,
            },
            (StepBody::System(change), ResourceAdapter::System(system)) => {
                system.capability(change).unwrap_or(Capability::NOTHING)
            }
            (StepBody::Command { .. }, ResourceAdapter::Release { .. } | ResourceAdapter::System(_))
            | (StepBody::System(_), ResourceAdapter::Command { .. } | ResourceAdapter::Release { .. }) => {
                Capability::NOTHING
            }
            // Nothing is changed, so nothing can be left.
            (StepBody::Check(_), _) => Capability { inspect: Inspect::None, enforce: Enforce::None, outlives: false },
        }
    }
}

impl std::fmt::Display for Probe {
    /// As people name it: the address, or the program.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Probe::Http { url, .. } => f.write_str(url),
            Probe::Tcp { address } => write!(f, "tcp {address}"),
            Probe::Command { argv } => f.write_str(&argv.join(" ")),
        }
    }
}

impl std::fmt::Display for CheckSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.probe)?;
        match &self.probe {
            Probe::Http { expect_status, expect_body: None, .. } => write!(f, " answers {expect_status}")?,
            Probe::Http { expect_status, expect_body: Some(body), .. } => {
                write!(f, " answers {expect_status} with {body:?}")?;
            }
            Probe::Tcp { .. } => f.write_str(" accepts")?,
            Probe::Command { .. } => f.write_str(" exits with 0")?,
        }
        match self.hold {
            Millis(0) => write!(f, ", once within {}", self.give_up),
            hold => write!(f, " for {hold}, within {}", self.give_up),
        }
    }
}

/// SHA-256 of a resolved deployment and the target it was resolved against, lower-case hex: what a permit is bound to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PlanDigest(pub String);

impl PlanDigest {
    /// Of the canonical JSON of both: field order is declaration order, maps are sorted.
    #[must_use]
    pub fn of(deployment: &DeploymentSpec, target: &TargetSpec) -> Self {
        let text = serde_json::to_vec(&(deployment, target)).expect("plain data serializes");
        Self(hex(&Sha256::digest(text)))
    }
}

/// Lower-case hex.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}
