//! The words of going back: what a step does to data, and what a file says of its own way back.

use serde::{Deserialize, Serialize};

use crate::spec::StepSpec;
use crate::time::Wall;

/// What a mutating step does to data that outlives a release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DataEffect {
    /// Nothing.
    #[default]
    None,
    /// It adds what the release before does not need and can live with.
    Expand,
    /// It takes away what no release within the declared range needs any more.
    Contract,
    /// It changes or removes data, so that what was there before is lost unless it was kept elsewhere.
    Destructive,
}

impl DataEffect {
    /// Whether it leaves data as it is.
    #[must_use]
    pub fn is_none(&self) -> bool {
        matches!(self, DataEffect::None)
    }
}

/// What a file says of the way back from it: recorded before it is deployed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollbackSpec {
    /// What going back does.
    pub way: Way,
    /// Until when it is compatible; `None` for as long as the rest holds.
    pub until: Option<Wall>,
    /// The versions of the data that the release before can live with; `None` where the file names none.
    pub data: Option<DataRange>,
    /// What becomes of the data.
    pub recovery: DataRecovery,
}

/// What going back does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "way")]
pub enum Way {
    /// Each resource takes its revision from before, by its adapter's reverse transition.
    PreviousRevision,
    /// Steps of its own. Never empty.
    Steps {
        /// In order, without health checks.
        steps: Vec<StepSpec>,
    },
}

/// Versions of the data, both ends included.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataRange {
    /// The lowest.
    pub from: String,
    /// The highest.
    pub to: String,
}

/// What becomes of the data when a deployment is rolled back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "recovery")]
pub enum DataRecovery {
    /// No data is changed.
    NoneNeeded,
    /// The release before lives with what was added.
    ExpandContract,
    /// What was lost is restored, in a way that was tried.
    Restore {
        /// What was tested, and when, in its author's words.
        tested: String,
    },
}

impl DataRange {
    /// By `FROM..TO`, neither empty, in order.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once("..")?;
        let range = Self { from: from.trim().to_owned(), to: to.trim().to_owned() };
        let named = !range.from.is_empty() && !range.to.is_empty() && !range.to.contains("..");
        (named && is_at_most(&range.from, &range.to)).then_some(range)
    }

    /// Whether that version lies in it.
    #[must_use]
    pub fn contains(&self, version: &str) -> bool {
        is_at_most(&self.from, version) && is_at_most(version, &self.to)
    }
}

/// Two numbers are compared as such, whatever zeros they begin with; anything else byte by byte.
fn is_at_most(low: &str, high: &str) -> bool {
    match (low.parse::<u64>(), high.parse::<u64>()) {
        (Ok(low), Ok(high)) => low <= high,
        (Ok(_) | Err(_), Ok(_) | Err(_)) => low <= high,
    }
}

impl std::fmt::Display for DataRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}..{}", self.from, self.to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_compares_numbers_as_numbers_and_words_as_words() {
        let range = DataRange::parse("0040..0042").expect("a range");
        for inside in ["0040", "41", "0042"] {
            assert!(range.contains(inside), "{inside}");
        }
        for outside in ["0039", "43", "1000"] {
            assert!(!range.contains(outside), "{outside}");
        }
        let words = DataRange::parse("2026-01..2026-06").expect("a range");
        assert!(words.contains("2026-03") && !words.contains("2026-07"));
        for bad in ["", "..", "1..", "..2", "2..1", "1..2..3", "1"] {
            assert_eq!(DataRange::parse(bad), None, "{bad}");
        }
    }
}
