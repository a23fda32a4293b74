//! An operator's token as the store keeps it.

use holdfast_common::id::OperatorName;
use holdfast_common::time::Wall;

use super::scope::Scope;

/// Everything about a token but its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The operator it stands for. Unique.
    pub name: OperatorName,
    /// What it allows, and on which targets.
    pub scope: Scope,
    /// When it ends. Every token does.
    pub expires_at: Wall,
    /// It was taken back.
    pub revoked: bool,
    /// When it was made; `None` for one from before that was kept.
    pub created_at: Option<Wall>,
    /// By whom; `None` for one that was made on the coordinator's host.
    pub created_by: Option<OperatorName>,
}

/// How a token stands at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It opens what its grants allow.
    Valid,
    /// Its time is over.
    Expired,
    /// It was taken back.
    Revoked,
}

impl Token {
    /// How it stands at `now`.
    #[must_use]
    pub fn standing(&self, now: Wall) -> Standing {
        match self.revoked {
            true => Standing::Revoked,
            false if now >= self.expires_at => Standing::Expired,
            false => Standing::Valid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_ends_at_its_instant_and_a_revoked_one_is_never_valid() {
        let token = Token {
            name: OperatorName::new("anna").expect("a name"),
            scope: Scope::default(),
            expires_at: Wall(100),
            revoked: false,
            created_at: None,
            created_by: None,
        };
        assert_eq!(token.standing(Wall(99)), Standing::Valid);
        assert_eq!(token.standing(Wall(100)), Standing::Expired);
        let revoked = Token { revoked: true, ..token };
        assert_eq!(revoked.standing(Wall(10)), Standing::Revoked);
    }
}
