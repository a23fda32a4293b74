//! Exact decisions.
