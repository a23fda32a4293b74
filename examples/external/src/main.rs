//! Feature flags as a resource: an adapter to copy.
//!
//! ```text
//!   request (JSON, standard input) ──▶ main ──▶ flags ──▶ log ──▶ FOLDER/log/000000000042
//!   answer (JSON, standard output) ◀──
//! ```
//!
//! The one thing that matters is in [`log`]: a change is a file with the next number, and the file system gives a number once. So
//! whoever looked before somebody else changed anything, or raised the fence, can't change anything any more, however long
//! it stood still in between.

mod contract;
mod flags;
mod halt;
mod log;

use std::io::{Read, Write};
use std::process::ExitCode;

use contract::{Answer, Request};

fn main() -> ExitCode {
    let mut text = String::new();
    let answer = match std::io::stdin().read_to_string(&mut text) {
        Ok(_) => match serde_json::from_str::<Request>(&text) {
            Ok(request) => flags::answer(&request),
            Err(error) => Answer::failed(format!("the request can't be read: {error}")),
        },
        Err(error) => Answer::failed(format!("the request can't be read: {error}")),
    };
    halt::before("answer");
    let text = serde_json::to_string(&answer).expect("plain data serializes");
    // An answer that does not arrive is taken for none: then the resource is read.
    match writeln!(std::io::stdout(), "{text}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
