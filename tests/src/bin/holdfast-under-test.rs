//! Everything that is under test in one program, with the feature `bugs`: the command line, the services and shims that it
//! carries, and the command that steps run.

use std::process::ExitCode;

use holdfast_tests::ledger;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    if arguments.nth(1).is_some_and(|word| word == ledger::COMMAND) {
        return ledger::run(arguments);
    }
    holdfast::main(std::env::args_os())
}
