//! The `holdfast` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    holdfast::main(std::env::args_os())
}
