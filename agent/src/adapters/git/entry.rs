//! One entry of the ledger: a commit without files, whose last paragraph says everything.
//!
//! ```text
//! Holdfast-Entry: 3                       counts from 1, so that a chain that was cut off is known
//! Holdfast-Owner: shop@prod/site
//! Holdfast-Identity: 0f0e...
//! Holdfast-Fence: 1099511627778           the highest fence from here on
//! Holdfast-Path: apps/shop
//! Holdfast-Branch: main                   for each branch
//! Holdfast-Operation: 0190.../switch      these three only where it is an operation and no raise
//! Holdfast-Revision: v3
//! Holdfast-Left: main 4b82... 9daa...     for each branch its commit, and the folder's tree in that
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;

use holdfast_common::fence::Fence;
use holdfast_common::id::{OperationId, Revision, StepName};

use super::names::Oid;

/// What one entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) number: u64,
    pub(super) owner: String,
    pub(super) identity: String,
    pub(super) fence: Fence,
    pub(super) path: String,
    pub(super) branches: Vec<String>,
    pub(super) done: Option<Done>,
}

/// An operation that took effect with the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) operation: OperationId,
    pub(super) revision: Revision,
    /// By branch.
    pub(super) left: BTreeMap<String, Left>,
}

/// What it left on a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) commit: Oid,
    pub(super) tree: Oid,
}

impl Entry {
    /// As a commit's message.
    pub(super) fn message(&self) -> String {
        let mut text = match &self.done {
            Some(done) => format!("{} applied under fence {}\n\n", done.operation, self.fence),
            None => format!("Fence {} raised\n\n", self.fence),
        };
        let mut say = |key: &str, value: &str| {
            writeln!(text, "Holdfast-{key}: {value}").expect("a string takes everything");
        };
        say("Entry", &self.number.to_string());
        say("Owner", &self.owner);
        say("Identity", &self.identity);
        say("Fence", &self.fence.as_u64().to_string());
        say("Path", &self.path);
        for branch in &self.branches {
            say("Branch", branch);
        }
        if let Some(done) = &self.done {
            say("Operation", &done.operation.to_string());
            say("Revision", done.revision.as_str());
            for (branch, left) in &done.left {
                say("Left", &format!("{branch} {} {}", left.commit, left.tree));
            }
        }
        text
    }

    /// `None` where it is not one that [`message`](Self::message) wrote.
    pub(super) fn parse(message: &str) -> Option<Self> {
        let said = trailers(message);
        let all = |key: &'static str| said.iter().filter(move |(name, _)| *name == key).map(|(_, value)| *value);
        let one = |key| all(key).next();
        let done = match one("Holdfast-Operation") {
            None => None,
            Some(operation) => Some(Done {
                operation: operation_of(operation)?,
                revision: Revision::new(one("Holdfast-Revision")?).ok()?,
                left: all("Holdfast-Left").map(left_of).collect::<Option<_>>()?,
            }),
        };
        Some(Self {
            number: one("Holdfast-Entry")?.parse().ok()?,
            owner: one("Holdfast-Owner")?.to_owned(),
            identity: one("Holdfast-Identity")?.to_owned(),
            fence: Fence::from_u64(one("Holdfast-Fence")?.parse().ok()?)?,
            path: one("Holdfast-Path")?.to_owned(),
            branches: all("Holdfast-Branch").map(str::to_owned).collect(),
            done,
        })
    }
}

/// The last paragraph's `Key: value` lines.
pub(super) fn trailers(message: &str) -> Vec<(&str, &str)> {
    let text = message.trim_end_matches('\n');
    let last = text.rsplit("\n\n").next().unwrap_or_default();
    last.lines().filter_map(|line| line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, "")))).collect()
}

fn operation_of(text: &str) -> Option<OperationId> {
    let (deployment, step) = text.split_once('/')?;
    Some(OperationId { deployment: deployment.parse().ok()?, step: StepName::new(step).ok()? })
}

fn left_of(text: &str) -> Option<(String, Left)> {
    let (rest, tree) = text.rsplit_once(' ')?;
    let (branch, commit) = rest.rsplit_once(' ')?;
    Some((branch.to_owned(), Left { commit: Oid::parse(commit)?, tree: Oid::parse(tree)? }))
}

#[cfg(test)]
mod tests {
    use holdfast_common::id::DeploymentId;
    use uuid::Uuid;

    use super::*;

    fn entry(path: &str, done: bool) -> Entry {
        let oid = |digit: &str| Oid::parse(&digit.repeat(40)).unwrap();
        Entry {
            number: 3,
            owner: "shop@prod/site".to_owned(),
            identity: Uuid::from_u128(7).to_string(),
            fence: Fence::from_u64(1_099_511_627_778).unwrap(),
            path: path.to_owned(),
            branches: vec!["main".to_owned(), "site/+live".to_owned()],
            done: done.then(|| Done {
                operation: OperationId {
                    deployment: DeploymentId(Uuid::from_u128(1)),
                    step: StepName::new("switch").unwrap(),
                },
                revision: Revision::new("v3").unwrap(),
                left: ["main", "site/+live"]
                    .map(|branch| (branch.to_owned(), Left { commit: oid("a"), tree: oid("b") }))
                    .into(),
            }),
        }
    }

    #[test]
    fn what_is_written_is_what_is_read() {
        for entry in [entry("apps/shop", true), entry("", true), entry("with space: and colon", false)] {
            assert_eq!(Entry::parse(&entry.message()), Some(entry.clone()), "{}", entry.message());
            assert_eq!(Entry::parse(&format!("{}\n", entry.message())), Some(entry));
        }
    }

    #[test]
    fn what_lacks_a_line_or_has_another_in_its_place_is_no_entry() {
        let text = entry("apps/shop", true).message();
        let is_list = |line: &str| line.starts_with("Holdfast-Branch") || line.starts_with("Holdfast-Left");
        for line in text.lines().filter(|line| line.starts_with("Holdfast-") && !is_list(line)) {
            let without = text.replace(line, "Else: 1");
            let found = Entry::parse(&without);
            let only_a_raise = line.starts_with("Holdfast-Operation");
            assert_eq!(found.is_none(), !only_a_raise, "{line}");
        }
        assert_eq!(Entry::parse(&text.replace("Holdfast-Fence: 1099511627778", "Holdfast-Fence: 0")), None);
        assert_eq!(Entry::parse(&format!("{text}\nanother last paragraph\n")), None);
        assert_eq!(Entry::parse(""), None);
    }
}
