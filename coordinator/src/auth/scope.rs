//! On which targets a role counts.
//!
//! A [`Grant`] is a role with a pattern of target names, like `operator:shop@*`; a token holds a few. A permission on a
//! target is there where one grant has both. Grants only add: none takes away what another gives.

use std::fmt;
use std::str::FromStr;

use holdfast_common::id::TargetName;

use super::role::{NotARole, Permission, Role};
use crate::sessions::fits;

/// Longest pattern, in bytes: as long as the longest name of a target.
const MAX_PATTERN: usize = 64;

/// Most grants of one token.
pub const MAX_GRANTS: usize = 32;

/// Fits names of targets: `*` stands for any run of characters, everything else for itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern(String);

impl Pattern {
    /// Fits every target.
    #[must_use]
    pub fn every() -> Self {
        Self("*".to_owned())
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the target's name fits.
    #[must_use]
    pub fn fits(&self, target: &TargetName) -> bool {
        fits(&self.0, target.as_str())
    }

    /// Whether every name that fits `other` fits this too. Never true where that is not so: a star of `other` counts as
    /// a character that no name has, so that only a star of ours can stand for it.
    #[must_use]
    pub fn covers(&self, other: &Pattern) -> bool {
        fits(&self.0, &other.0)
    }
}

/// Why a text is no grant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The role is none.
    #[error(transparent)]
    Role(#[from] NotARole),
    /// The pattern can fit no target.
    #[error("not a pattern of targets: expected 1 to {MAX_PATTERN} letters, digits, @ . _ - and *")]
    Pattern,
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let sound = |byte: u8| byte.is_ascii_alphanumeric() || b"@._-*".contains(&byte);
        let fits = (1..=MAX_PATTERN).contains(&text.len()) && text.bytes().all(sound);
        if fits { Ok(Self(text.to_owned())) } else { Err(Error::Pattern) }
    }
}

/// A role on the targets that fit a pattern.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// What may be done.
    pub role: Role,
    /// On which targets.
    pub targets: Pattern,
}

impl Grant {
    /// On every target.
    #[must_use]
    pub fn everywhere(role: Role) -> Self {
        Self { role, targets: Pattern::every() }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}:{}", self.role, self.targets.0))
    }
}

/// `ROLE`, which counts on every target, or `ROLE:PATTERN`.
impl FromStr for Grant {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.split_once(':') {
            None => Ok(Self::everywhere(text.parse()?)),
            Some((role, targets)) => Ok(Self { role: role.parse()?, targets: targets.parse()? }),
        }
    }
}

/// All that one token allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope(Vec<Grant>);

impl Scope {
    /// Of a token's grants.
    #[must_use]
    pub fn new(grants: Vec<Grant>) -> Self {
        Self(grants)
    }

    /// One by one.
    #[must_use]
    pub fn grants(&self) -> &[Grant] {
        &self.0
    }

    /// Whether it has the permission on that target.
    #[must_use]
    pub fn may(&self, permission: Permission, target: &TargetName) -> bool {
        self.0.iter().any(|grant| grant.role.may(permission) && grant.targets.fits(target))
    }

    /// Whether it has the permission on any target at all.
    #[must_use]
    pub fn may_somewhere(&self, permission: Permission) -> bool {
        self.0.iter().any(|grant| grant.role.may(permission))
    }

    /// Whether it has the permission on every target, also on those that are yet to be declared.
    #[must_use]
    pub fn may_everywhere(&self, permission: Permission) -> bool {
        self.may_all(permission, &Pattern::every())
    }

    /// Whether it has the permission on every target that fits the pattern, by one grant.
    #[must_use]
    pub fn may_all(&self, permission: Permission, targets: &Pattern) -> bool {
        self.0.iter().any(|grant| grant.role.may(permission) && grant.targets.covers(targets))
    }

    /// Whether whoever has this may give and take the grant: tokens are theirs to manage there, and they hold every
    /// permission of it.
    #[must_use]
    pub fn manages(&self, grant: &Grant) -> bool {
        let needed = grant.role.permissions().iter().chain([&Permission::Admin]);
        needed.into_iter().all(|permission| self.may_all(*permission, &grant.targets))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grants: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.pad(&grants.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn grant(text: &str) -> Grant {
        text.parse().expect("a grant")
    }

    fn target(text: &str) -> TargetName {
        TargetName::new(text).expect("a name")
    }

    #[test]
    fn grants_read_back_and_what_is_none_is_refused() {
        for text in ["operator:shop@*", "admin:*", "viewer:*@prod", "deployer:shop@prod"] {
            assert_eq!(grant(text).to_string(), text);
        }
        assert_eq!(grant("admin"), Grant::everywhere(Role::Admin));
        for bad in ["", ":", "admin:", "root:*", "admin:shop prod", "admin:a/b", "admin:[ab]", "admin:ä", "Admin"] {
            assert!(bad.parse::<Grant>().is_err(), "{bad:?}");
        }
        assert!(format!("admin:{}", "x".repeat(65)).parse::<Grant>().is_err());
    }

    #[test]
    fn a_pattern_covers_what_can_fit_nothing_else() {
        let covers =
            |wide: &str, narrow: &str| grant(&format!("viewer:{wide}")).targets.covers(&narrow.parse().unwrap());
        for (wide, narrow) in
            [("*", "shop@*"), ("shop@*", "shop@prod"), ("shop@*", "shop@p*"), ("*", "*"), ("s*", "s*p*")]
        {
            assert!(covers(wide, narrow), "{wide} covers {narrow}");
        }
        for (wide, narrow) in [("shop@*", "*"), ("shop@prod", "shop@*"), ("*@prod", "shop@*"), ("shop@p*", "shop@*")] {
            assert!(!covers(wide, narrow), "{wide} does not cover {narrow}");
        }
    }

    #[test]
    fn an_admin_of_some_targets_manages_grants_on_those_only() {
        let scope = Scope::new(vec![grant("admin:shop@*"), grant("operator:*")]);
        for text in ["deployer:shop@prod", "admin:shop@*", "viewer:shop@p*"] {
            assert!(scope.manages(&grant(text)), "{text}");
        }
        for text in ["viewer:*", "viewer:mail@prod", "admin:*", "deployer:s*"] {
            assert!(!scope.manages(&grant(text)), "{text}: holding a permission is not managing it");
        }
        assert!(!Scope::new(vec![grant("operator:*")]).manages(&grant("viewer:shop@prod")));
    }

    fn role() -> impl Strategy<Value = Role> {
        prop::sample::select(Role::ALL.to_vec())
    }

    /// Few letters, so that patterns and names meet.
    fn some_grant() -> impl Strategy<Value = Grant> {
        (role(), "[ab*@]{1,5}").prop_map(|(role, targets)| Grant { role, targets: targets.parse().expect("sound") })
    }

    fn name() -> impl Strategy<Value = TargetName> {
        "[ab][ab@]{0,5}".prop_map(|text| target(&text))
    }

    /// The plainest matcher there is.
    fn matches(pattern: &[u8], name: &[u8]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some((b'*', rest)) => (0..=name.len()).any(|from| matches(rest, &name[from..])),
            Some((first, rest)) => name.first() == Some(first) && matches(rest, &name[1..]),
        }
    }

    proptest! {
        /// Roles x permissions x patterns: a permission is there exactly where some grant has the role and fits.
        #[test]
        fn a_permission_is_there_exactly_where_one_grant_has_it(
            grants in prop::collection::vec(some_grant(), 0..4),
            permission in prop::sample::select(Permission::ALL.to_vec()),
            name in name(),
        ) {
            let expected = grants.iter().any(|grant| {
                grant.role.permissions().contains(&permission)
                    && matches(grant.targets.as_str().as_bytes(), name.as_str().as_bytes())
            });
            let scope = Scope::new(grants);
            prop_assert_eq!(scope.may(permission, &name), expected);
            prop_assert!(!expected || scope.may_somewhere(permission));
            prop_assert!(!expected || scope.may(Permission::View, &name), "who may anything may look");
            prop_assert!(!scope.may_everywhere(permission) || expected);
        }

        /// Nobody can give more than they hold, on whatever target.
        #[test]
        fn what_is_managed_gives_nothing_that_its_giver_does_not_have(
            own in prop::collection::vec(some_grant(), 0..4),
            given in some_grant(),
            permission in prop::sample::select(Permission::ALL.to_vec()),
            name in name(),
        ) {
            let own = Scope::new(own);
            if own.manages(&given) && Scope::new(vec![given]).may(permission, &name) {
                prop_assert!(own.may(permission, &name) && own.may(Permission::Admin, &name));
            }
        }
    }
}
