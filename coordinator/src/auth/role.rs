//! Who may do what: one table.
//!
//! A token names roles, and each for the targets that fit a pattern: see [`super::scope`].

use std::fmt;
use std::str::FromStr;

/// What a method of `OperatorService` demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    /// Read a target, its deployments, events, outputs and evidence. What one may not view does not exist for one.
    View,
    /// Ask for deployments.
    Deploy,
    /// Ask for stops.
    Cancel,
    /// Let a deployment begin that waits for approval.
    Approve,
    /// Ask for rollbacks.
    Rollback,
    /// Have a resource read.
    Inspect,
    /// Raise fences, and decide on evidence.
    Decide,
    /// Put a person's word on record.
    Attest,
    /// Say what a target takes: declare it, put it on hold, take the hold off.
    Hold,
    /// Manage agents. Agents serve many targets, so it counts on every target or not at all.
    Agents,
    /// Read the audit log.
    Audit,
    /// Manage tokens.
    Admin,
}

impl Permission {
    /// Every permission.
    pub const ALL: [Permission; 12] = [
        Permission::View,
        Permission::Deploy,
        Permission::Cancel,
        Permission::Approve,
        Permission::Rollback,
        Permission::Inspect,
        Permission::Decide,
        Permission::Attest,
        Permission::Hold,
        Permission::Agents,
        Permission::Audit,
        Permission::Admin,
    ];

    /// What it lets one do, for "ANNA may not ...".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Permission::View => "read",
            Permission::Deploy => "submit deployments",
            Permission::Cancel => "cancel deployments",
            Permission::Approve => "approve deployments",
            Permission::Rollback => "roll back",
            Permission::Inspect => "have resources inspected",
            Permission::Decide => "fence off or decide",
            Permission::Attest => "attest",
            Permission::Hold => "declare or hold targets",
            Permission::Agents => "manage agents",
            Permission::Audit => "read the audit log",
            Permission::Admin => "manage tokens",
        }
    }
}

/// What a person or a program is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reads.
    Viewer,
    /// Deploys, and stops what it deployed. Knows nothing of what happened that the record does not: can't attest.
    Deployer,
    /// Approves what others ask for.
    Approver,
    /// Finds out what happened, and decides.
    Reconciler,
    /// Runs targets from their declaration to their reconciliation.
    Operator,
    /// Reads, the audit log too.
    Auditor,
    /// Does everything.
    Admin,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 7] =
        [Role::Viewer, Role::Deployer, Role::Approver, Role::Reconciler, Role::Operator, Role::Auditor, Role::Admin];

    /// The table.
    #[must_use]
    pub fn permissions(self) -> &'static [Permission] {
        use Permission::{Agents, Approve, Attest, Audit, Cancel, Decide, Deploy, Hold, Inspect, Rollback, View};
        match self {
            Role::Viewer => &[View],
            Role::Deployer => &[View, Deploy, Cancel, Inspect],
            Role::Approver => &[View, Approve],
            Role::Reconciler => &[View, Cancel, Inspect, Decide, Attest],
            Role::Operator => &[View, Deploy, Cancel, Rollback, Inspect, Decide, Attest, Hold, Agents],
            Role::Auditor => &[View, Audit],
            Role::Admin => &Permission::ALL,
        }
    }

    /// Whether it includes the permission.
    #[must_use]
    pub fn may(self, permission: Permission) -> bool {
        self.permissions().contains(&permission)
    }

    /// Its name, as on the command line and in the store.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Deployer => "deployer",
            Role::Approver => "approver",
            Role::Reconciler => "reconciler",
            Role::Operator => "operator",
            Role::Auditor => "auditor",
            Role::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Not a role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a role: expected viewer, deployer, approver, reconciler, operator, auditor or admin")]
pub struct NotARole;

impl FromStr for Role {
    type Err = NotARole;

    fn from_str(text: &str) -> Result<Self, NotARole> {
        Role::ALL.into_iter().find(|role| role.name() == text).ok_or(NotARole)
    }
}

#[cfg(test)]
mod tests {
    use holdfast_common::explain::explain_state;

    use super::*;

    /// A row for each role, a column for each permission of [`Permission::ALL`], in their order.
    const TABLE: [(Role, &str); 7] = [
        (Role::Viewer, "x..........."),
        (Role::Deployer, "xxx..x......"),
        (Role::Approver, "x..x........"),
        (Role::Reconciler, "x.x..xxx...."),
        (Role::Operator, "xxx.xxxxxx.."),
        (Role::Auditor, "x.........x."),
        (Role::Admin, "xxxxxxxxxxxx"),
    ];

    #[test]
    fn each_role_may_what_its_row_says_and_nothing_else() {
        assert_eq!(TABLE.map(|(role, _)| role), Role::ALL);
        for (role, row) in TABLE {
            for (permission, mark) in Permission::ALL.into_iter().zip(row.chars()) {
                assert_eq!(role.may(permission), mark == 'x', "{role} {permission:?}");
            }
        }
    }

    #[test]
    fn every_role_reads_and_a_deployer_cannot_attest() {
        assert!(Role::ALL.into_iter().all(|role| role.may(Permission::View)), "what may be changed may be seen");
        assert!(!Role::Deployer.may(Permission::Attest) && !Role::Deployer.may(Permission::Decide));
        let managers: Vec<Role> = Role::ALL.into_iter().filter(|role| role.may(Permission::Admin)).collect();
        assert_eq!(managers, [Role::Admin]);
    }

    #[test]
    fn roles_read_back_by_name_and_nothing_else_is_one() {
        for role in Role::ALL {
            assert_eq!(role.to_string().parse(), Ok(role));
            assert!(explain_state(role.name()).is_some(), "{role} is not explained");
        }
        for bad in ["", "Admin", "root", "admin ", "viewer\n"] {
            assert_eq!(bad.parse::<Role>(), Err(NotARole), "{bad:?}");
        }
    }
}
