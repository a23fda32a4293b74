//! How answers are written.
//!
//! Data goes to stdout, talk to stderr. What is drawn for people never changes what programs read: `json`, `jsonl` and
//! `name` have no colours, no symbols and no cut text, on a terminal or off it.
//!
//! | type | is |
//! | --- | --- |
//! | [`Options`], [`Format`] | `-o`, `--json`, `--ascii` |
//! | [`Terminal`] | what the other end of a stream can show |
//! | [`Printer`] | stdout and stderr in the chosen format |
//! | [`Table`], [`Listing`], [`Record`] | what is printed |
//! | [`Tone`], [`Mark`] | colours and symbols, each with its plain form |
//! | [`time`], [`size`] | instants, ages, silences; sizes |
//! | [`exit`] | exit codes |

pub mod exit;
mod mark;
mod options;
mod printer;
pub mod size;
mod table;
mod terminal;
pub mod time;
mod tone;

pub use mark::Mark;
pub use options::{Format, Options};
pub use printer::{BoxedPrinter, Listing, Printer, Record, json_line};
pub use table::Table;
pub use terminal::Terminal;
pub use tone::Tone;
