//! The deployment API of the examples.

use std::process::ExitCode;

fn main() -> ExitCode {
    holdfast_example_deploy_api::main(std::env::args_os())
}
