//! The operator's command line, and a whole Holdfast on one machine.
//!
//! ```text
//! main ── grammar ── command::* ──┬── settings ─ client ═══ coordinator
//!                                 ├── follow: events over lost connections
//!                                 └── view ─ output: text for people, JSON for programs
//! ```
//!
//! | module | holds |
//! | --- | --- |
//! | [`grammar`] | what can be typed |
//! | [`command`] | what each command does |
//! | [`settings`] | which coordinator, and as whom |
//! | [`client`] | the API's calls, each with a deadline |
//! | [`follow`] | events without loss or repetition |
//! | [`outcome`] | where a deployment comes to rest, and the exit code of that |
//! | [`refusal`], [`failure`] | what went wrong, in the one shape of errors |
//! | [`view`] | answers drawn for people |
//! | [`output`] | how answers are written: tables, JSON, times, exit codes |
//! | [`dev`] | a coordinator and two agents on this machine, and the tour |
//! | [`ca`] | a throw-away certificate authority for `dev` and tests |
//! | [`proxy`] | a TCP proxy that breaks connections on purpose |
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod ca;
pub mod client;
pub mod command;
pub mod dev;
pub mod failure;
pub mod follow;
pub mod grammar;
pub mod outcome;
pub mod output;
pub mod proxy;
pub mod refusal;
pub mod settings;
pub mod upload;
pub mod view;

use std::ffi::OsString;
use std::io::{self, BufReader, IsTerminal};
use std::process::ExitCode;

use clap::Parser;

use crate::command::Surroundings;
use crate::grammar::Cli;
use crate::output::Printer;
use crate::settings::Environment;

/// The whole program. The arguments begin with the program's name.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.collect();
    // A service or a helper of one, where an agent or `dev` started this. Before any runtime or thread.
    if let Some(code) = dev::dispatch(arguments.clone()) {
        return code;
    }
    match Cli::try_parse_from(arguments) {
        Ok(cli) => operate(cli),
        Err(error) => usage(&error),
    }
}

fn operate(cli: Cli) -> ExitCode {
    holdfast_net::tls::install_default();
    let printer = Printer::new(&cli.output).boxed();
    let surroundings = Surroundings {
        environment: Environment::of_process(),
        input: Box::new(BufReader::new(io::stdin())),
        interactive: io::stdin().is_terminal() && printer.talk_terminal().interactive,
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            anstream::eprintln!("error: could not start: {error}");
            return ExitCode::FAILURE;
        }
    };
    // On this thread: the lives of dev's children hang on the thread that started them.
    let code = runtime.block_on(command::run(cli, surroundings, printer));
    // A name that is still being looked up must not hold up the end.
    runtime.shutdown_background();
    output::exit::process(code)
}

/// Help and version are answers; everything else is a wrong line.
fn usage(error: &clap::Error) -> ExitCode {
    // Where neither stream can be written there is nobody to tell.
    let _ = error.print();
    if error.use_stderr() { output::exit::process(holdfast_common::code::ExitCode::Usage) } else { ExitCode::SUCCESS }
}
