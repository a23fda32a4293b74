//! One suite for every adapter: what it declares against what it does, on a real resource, with real processes.

mod git;
mod http;
mod postgres;
mod subject;

pub(crate) use subject::{Named, Subject};
