//! The SQL that a database administrator installs, once for each schema.

use holdfast_common::id::{ResourceName, TargetName};

const SETUP: &str = include_str!("setup.sql");

/// A schema, whose it is, and who may do what.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The schema.
    pub schema: String,
    /// Whose.
    pub target: TargetName,
    /// Its name there.
    pub resource: ResourceName,
    /// Who may change it.
    pub deploy: String,
    /// Who may read it.
    pub inspect: String,
    /// Who may raise its fence.
    pub fence: String,
}

impl Claim {
    /// As SQL, whole: installs what is missing, and may run again.
    #[must_use]
    pub fn sql(&self) -> String {
        let owner = format!("{}/{}", self.target, self.resource);
        let texts = [&self.schema, &owner, &self.deploy, &self.inspect, &self.fence].map(|text| literal(text));
        format!("{SETUP}SELECT holdfast.claim({});\nCOMMIT;\n", texts.join(", "))
    }
}

/// Safe whatever the session's `standard_conforming_strings`.
fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        assert_eq!(literal("o'brien"), "'o''brien'");
        assert_eq!(literal("a\\'b"), "E'a\\\\''b'");
    }
}
