//! How answers are written.
//!
//! Data goes to stdout, talk to stderr. What is drawn for people never changes what programs read: `json`, `jsonl` and
//! `name` have no colours, no symbols and no cut text, on a terminal or off it.
