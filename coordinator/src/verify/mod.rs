//! The look that trusts nothing: every hash again, every state again from the first event, every rule, every row.
//!
//! ```text
//!   events ─▶ hashes, places, order ─▶ core: apply, invariants ─▶ History ─▶ rows as they should be
//!                                                                                │ compared
//!   tables ──────────────────────────────────────────────────────▶ rows as they are
//! ```
//!
//! Nothing of what writes the rows is used to say how they should be. A [`Finding`] names one difference. The same walk
//! is behind `holdfast-coordinator verify` and behind the [`auditor`] of a running coordinator. It changes nothing.

mod acts;
pub mod auditor;
mod finding;
mod rows;
#[cfg(test)]
pub(crate) mod tests;
mod verdict;
mod walk;

pub use finding::{Finding, Kind, Report};
pub use verdict::Verdict;

pub(crate) use acts::check_act;
pub(crate) use rows::{Cell, Row, Rows, TABLES, Table, as_text, normal};
pub(crate) use walk::Walk;
