//! A hold: an operator's word that nothing new may begin on the target. Not to be taken for the state `held` of a
//! deployment, which nobody asked for.

use holdfast_common::id::{DeploymentLabel, OperatorName, TargetName};
use holdfast_common::spec::OrderKey;
use holdfast_common::time::{Serving, Wall};
use serde::{Deserialize, Serialize};

use super::Waiting;

/// A hold as it was placed last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatorHold {
    /// Who placed it.
    pub by: OperatorName,
    /// Why.
    pub reason: String,
    /// When it was placed, or replaced.
    pub since: Wall,
    /// When it ends by itself; `None` never does.
    pub until: Option<HoldUntil>,
}

/// When a hold ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoldUntil {
    /// For people: when that is, should the coordinator serve all the time until then.
    pub shown: Wall,
    /// When it ends. Serving time stands still while no coordinator runs, so a hold ends late after an outage, never
    /// early.
    pub at: Serving,
}

/// How a hold ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum HoldEnd {
    /// A person took it away.
    Operator {
        /// Who.
        name: OperatorName,
    },
    /// Its time had passed.
    Time,
}

/// The highest order key that ever held the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HighestOrder {
    /// The key.
    pub key: OrderKey,
    /// The number of the last deployment that had it.
    pub number: u64,
}

impl OperatorHold {
    /// Why a deployment waits that could begin otherwise.
    #[must_use]
    pub fn waiting(&self) -> Waiting {
        let until = self.until.map(|until| until.shown);
        Waiting::Hold { by: self.by.clone(), why: self.reason.clone(), until }
    }
}

impl HighestOrder {
    /// The deployment that had it.
    #[must_use]
    pub fn label(&self, target: &TargetName) -> DeploymentLabel {
        DeploymentLabel { target: target.clone(), number: self.number }
    }
}
