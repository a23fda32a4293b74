//! The name of a release folder and of its record: which operation, under which fence.

use std::fmt;

use holdfast_common::fence::Fence;
use holdfast_common::id::{DeploymentId, OperationId, StepName};

/// `<deployment>@<step>.<fence>`. Neither a UUID nor a step name has an `@`, and the fence is what follows the last dot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReleaseName {
    pub(super) operation: OperationId,
    pub(super) fence: Fence,
}

impl fmt::Display for ReleaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}.{}", self.operation.deployment, self.operation.step, self.fence.as_u64())
    }
}

impl ReleaseName {
    /// `None` for a name that is not one of ours.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (deployment, rest) = text.split_once('@')?;
        let (step, fence) = rest.rsplit_once('.')?;
        let name = Self {
            operation: OperationId {
                deployment: deployment.parse::<DeploymentId>().ok()?,
                step: StepName::new(step).ok()?,
            },
            fence: Fence::from_u64(fence.parse().ok()?)?,
        };
        // Only the one spelling: two names of one release would be two releases.
        (name.to_string() == text).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_have_one_spelling() {
        let deployment = "0190d3a8-0000-7000-8000-000000000001";
        for step in ["switch", "switch.2", "a-b_c"] {
            let text = format!("{deployment}@{step}.1099511627777");
            let name = ReleaseName::parse(&text).expect("a name");
            assert_eq!((name.to_string(), name.operation.step.as_str()), (text, step));
        }
        for bad in ["", "x", "current", "@a.1", &format!("{deployment}@a.0"), &format!("{deployment}@a.01")] {
            assert_eq!(ReleaseName::parse(bad), None, "{bad}");
        }
        let loud = deployment.to_uppercase();
        assert_eq!(ReleaseName::parse(&format!("{loud}@a.1")), None);
    }
}
