//! Who may do what: one table.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a method of `OperatorService` demands of its caller's role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    /// Read anything.
    View,
    /// Ask for deployments.
    Deploy,
    /// Ask for stops.
    Cancel,
    /// Have a resource read.
    Inspect,
    /// Raise fences, and decide on evidence.
    Decide,
    /// Put a person's word on record.
    Attest,
    /// Declare targets.
    Declare,
    /// Put targets on hold, and take holds away.
    Hold,
}

impl Permission {
    /// Every permission.
    pub const ALL: [Permission; 8] = [
        Permission::View,
        Permission::Deploy,
        Permission::Cancel,
        Permission::Inspect,
        Permission::Decide,
        Permission::Attest,
        Permission::Declare,
        Permission::Hold,
    ];

    /// What it lets one do, for "TOKEN may not ...".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Permission::View => "read",
            Permission::Deploy => "submit deployments",
            Permission::Cancel => "cancel deployments",
            Permission::Inspect => "have resources inspected",
            Permission::Decide => "fence off or decide",
            Permission::Attest => "attest",
            Permission::Declare => "declare targets",
            Permission::Hold => "put targets on hold",
        }
    }
}

/// What a token was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Does everything.
    Admin,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 2] = [Role::Viewer, Role::Admin];

    /// The table.
    #[must_use]
    pub fn may(self, permission: Permission) -> bool {
        match self {
            Role::Admin => true,
            Role::Viewer => match permission {
                Permission::View => true,
                Permission::Deploy
                | Permission::Cancel
                | Permission::Inspect
                | Permission::Decide
                | Permission::Attest
                | Permission::Declare
                | Permission::Hold => false,
            },
        }
    }

    /// Its name, as on the command line and in the store.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
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
#[error("not a role: expected \"viewer\" or \"admin\"")]
pub struct NotARole;

impl FromStr for Role {
    type Err = NotARole;

    fn from_str(text: &str) -> Result<Self, NotARole> {
        Role::ALL.into_iter().find(|role| role.name() == text).ok_or(NotARole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admin_may_everything_and_a_viewer_only_reads() {
        for permission in Permission::ALL {
            assert!(Role::Admin.may(permission));
            assert_eq!(Role::Viewer.may(permission), permission == Permission::View, "{permission:?}");
        }
    }

    #[test]
    fn roles_read_back_by_name_and_nothing_else_is_one() {
        for role in Role::ALL {
            assert_eq!(role.to_string().parse(), Ok(role));
        }
        for bad in ["", "Admin", "root", "admin ", "viewer\n"] {
            assert_eq!(bad.parse::<Role>(), Err(NotARole), "{bad:?}");
        }
    }
}
