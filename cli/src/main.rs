//! The `holdfast` binary.

use std::process::ExitCode;

use clap::Parser;
use holdfast::dev;
use holdfast::output::{Options, exit};

/// Runs deployments on hosts it may lose contact with.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version)]
struct Cli {
    #[command(flatten)]
    output: Options,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Dev(dev::Args),
}

fn main() -> ExitCode {
    if let Some(code) = dev::dispatch(std::env::args_os()) {
        return code;
    }
    let cli = Cli::parse();
    holdfast_net::tls::install_default();
    let Command::Dev(args) = &cli.command;
    let outcome = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(dev::run(args, &cli.output)));
    match outcome {
        Ok(code) => exit::process(code),
        Err(error) => {
            anstream::eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
