//! An operator's token as the store keeps it.

use holdfast_common::id::OperatorName;
use holdfast_common::time::Wall;

use super::role::Role;

/// Everything about a token but its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The operator it stands for. Unique among tokens that are not revoked.
    pub name: OperatorName,
    /// What it was made for.
    pub role: Role,
    /// When it was made.
    pub created_at: Wall,
    /// When it ends. Every token does.
    pub expires_at: Wall,
    /// When it was revoked.
    pub revoked_at: Option<Wall>,
}

/// How a token stands at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It opens what its role may.
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
        match self.revoked_at {
            Some(_) => Standing::Revoked,
            None if now >= self.expires_at => Standing::Expired,
            None => Standing::Valid,
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
            role: Role::Admin,
            created_at: Wall(0),
            expires_at: Wall(100),
            revoked_at: None,
        };
        assert_eq!(token.standing(Wall(99)), Standing::Valid);
        assert_eq!(token.standing(Wall(100)), Standing::Expired);
        let revoked = Token { revoked_at: Some(Wall(50)), ..token };
        assert_eq!(revoked.standing(Wall(10)), Standing::Revoked);
    }
}
