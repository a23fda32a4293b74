//! The core's tests: exact decisions, random sequences against an oracle, an exhaustive small world, seeded faults.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::print_stdout, clippy::wildcard_enum_match_arm)]

mod agent;
mod coverage;
mod ledger;
mod locked;
mod operator;
mod random;
mod scene;
mod small;
mod specs;
mod told;
mod world;

mod absence;
mod deadlines;
mod decisions;
#[cfg(feature = "bugs")]
mod faults;
mod health;
mod holds;
mod order;
mod plan;
mod recovery;
mod retries;
mod rollback;
