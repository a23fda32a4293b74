//! `[reconcile]`: who decides when contact was lost in the middle of a change.

use crate::code::Code;
use crate::file::reader::{Item, Reader};
use crate::recovery::Policy;
use crate::time::Millis;

const MONTH: Millis = Millis::from_secs(30 * 86_400);

const POLICIES: [(&str, Policy); 3] =
    [("manual", Policy::Manual), ("when-proven", Policy::WhenProven), ("trust-report", Policy::TrustReport)];

/// What a target says. Without it the policy is `when-proven`, after ten lengths of the deployment's lease.
pub(super) fn of_target(reader: &mut Reader, item: Option<Item<'_>>) -> (Policy, Option<Millis>) {
    let Some(fields) = item.and_then(|item| reader.table(&item, &["policy", "patience"])) else {
        return (Policy::default(), None);
    };
    let policy = fields.get("policy").and_then(|item| reader.choice(&item, &POLICIES)).unwrap_or_default();
    let patience = fields.get("patience").and_then(|item| {
        let span = reader.duration(&item, Millis(0)..=MONTH);
        if policy == Policy::Manual {
            let message = "the policy \"manual\" has no patience: it never decides";
            reader.fault(Code::InvalidValue, item.key.clone(), message);
        }
        span
    });
    (policy, patience)
}

/// What a deployment says. It can only be stricter than its target: the stricter of the two holds.
pub(super) fn of_deployment(reader: &mut Reader, item: Option<Item<'_>>) -> Option<Policy> {
    let fields = item.and_then(|item| reader.table(&item, &["policy"]))?;
    fields.get("policy").and_then(|item| reader.choice(&item, &POLICIES))
}
