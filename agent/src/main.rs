//! `holdfast-agent`: the service on a deploy host.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = holdfast_agent::internal::dispatch(std::env::args_os()) {
        return code;
    }
    let _ = writeln!(std::io::stderr(), "usage: holdfast-agent run --config FILE");
    ExitCode::from(2)
}
