//! What every message about work carries.

use serde::{Deserialize, Serialize};

use crate::fence::Fence;
use crate::id::{AttemptId, DeploymentId};

/// "I speak of this attempt at this deployment, under this fence." The agent is known from its certificate and is
/// no part of the claim. A message without a whole claim is refused, never given the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// The deployment.
    pub deployment: DeploymentId,
    /// The attempt at it.
    pub attempt: AttemptId,
    /// The fence of the attempt's lease.
    pub fence: Fence,
}
