//! What a command gets to know.

use std::collections::BTreeMap;

use holdfast_common::claim::Claim;
use holdfast_common::id::{OperationId, Revision, StepName, TargetName};

/// What is taken over from the agent's own environment. Everything else stays behind: it may hold the agent's secrets.
const BASE: &[&str] = &["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR"];
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// For whom a command runs.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    /// Deployment, attempt, fence.
    pub claim: Claim,
    /// The target.
    pub target: &'a TargetName,
    /// The step.
    pub step: &'a StepName,
    /// The revision that the resource must have before, where one is recorded.
    pub expected_revision: Option<&'a Revision>,
}

/// The whole environment of a command. `inherited` reads one variable of the agent's own environment.
#[must_use]
pub fn environment(context: &Context<'_>, inherited: impl Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
    let mut variables: BTreeMap<String, String> = BASE
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), inherited(name)?)))
        .filter(|(_, value)| !value.contains('\0'))
        .collect();
    variables.insert("PATH".to_owned(), search_path(&inherited));
    let claim = context.claim;
    let operation = OperationId { deployment: claim.deployment, step: context.step.clone() };
    let ours = [
        ("HOLDFAST_OPERATION_ID", operation.to_string()),
        ("HOLDFAST_FENCE", claim.fence.as_u64().to_string()),
        ("HOLDFAST_DEPLOYMENT", claim.deployment.to_string()),
        ("HOLDFAST_ATTEMPT", claim.attempt.to_string()),
        ("HOLDFAST_TARGET", context.target.to_string()),
    ];
    variables.extend(ours.map(|(name, value)| (name.to_owned(), value)));
    if let Some(revision) = context.expected_revision {
        variables.insert("HOLDFAST_EXPECTED_REVISION".to_owned(), revision.to_string());
    }
    variables
}

/// Where a command's program is looked for.
pub(crate) fn search_path(inherited: impl Fn(&str) -> Option<String>) -> String {
    inherited("PATH").filter(|path| !path.contains('\0')).unwrap_or_else(|| PATH.to_owned())
}

#[cfg(test)]
mod tests {
    use holdfast_common::fence::Fence;
    use holdfast_common::id::{AttemptId, DeploymentId};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn only_the_base_and_our_own_variables_get_through() {
        let claim = Claim {
            deployment: DeploymentId(Uuid::from_u128(1)),
            attempt: AttemptId(Uuid::from_u128(2)),
            fence: Fence::from_u64(1_099_511_627_778).unwrap(),
        };
        let (target, step) = (TargetName::new("shop@prod").unwrap(), StepName::new("migrate").unwrap());
        let revision = Revision::new("v1").unwrap();
        let context = Context { claim, target: &target, step: &step, expected_revision: Some(&revision) };
        let agents = |name: &str| match name {
            "LANG" => Some("C.UTF-8".to_owned()),
            "HOLDFAST_TOKEN" | "LD_PRELOAD" | "AWS_SECRET_ACCESS_KEY" => Some("secret".to_owned()),
            _ => None,
        };
        let found = environment(&context, agents);
        let expected = [
            ("HOLDFAST_ATTEMPT", "00000000-0000-0000-0000-000000000002"),
            ("HOLDFAST_DEPLOYMENT", "00000000-0000-0000-0000-000000000001"),
            ("HOLDFAST_EXPECTED_REVISION", "v1"),
            ("HOLDFAST_FENCE", "1099511627778"),
            ("HOLDFAST_OPERATION_ID", "00000000-0000-0000-0000-000000000001/migrate"),
            ("HOLDFAST_TARGET", "shop@prod"),
            ("LANG", "C.UTF-8"),
            ("PATH", PATH),
        ];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }
}
