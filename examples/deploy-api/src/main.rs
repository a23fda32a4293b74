//! The program. All of it is in the library, so that tests can run it as a process of their own.

use std::process::ExitCode;

fn main() -> ExitCode {
    holdfast_example_deploy_api::main(std::env::args_os())
}
