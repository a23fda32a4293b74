//! The service on a deploy host.

use std::process::ExitCode;

fn main() -> ExitCode {
    match holdfast_agent::internal::dispatch(std::env::args_os()) {
        Some(code) => code,
        None => holdfast_agent::cli::main(std::env::args_os()),
    }
}
