//! The command line of `holdfast-agent`.

mod adapter;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use holdfast_common::code::Code;
use holdfast_common::problem::Problem;
use holdfast_common::text::{one_line, printable};
use holdfast_net::{config, telemetry, tls};
use tokio::sync::watch;

use crate::config::Config;
use crate::enrol::join;
use crate::fault;
use crate::policy::{self, Refusals, Refused};

/// The service on a deploy host: carries work out and reports what it observed.
#[derive(Debug, Parser)]
#[command(name = "holdfast-agent", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Become an agent of a coordinator, by a join token.
    Join(Box<join::Args>),
    /// Run the service. Each key of the file is also a HOLDFAST_ variable.
    Run {
        /// TOML file.
        #[arg(long)]
        config: Option<PathBuf>,
    },
    /// Read the configuration and say what is wrong with it.
    CheckConfig {
        /// TOML file.
        #[arg(long)]
        config: Option<PathBuf>,
    },
    /// Show what this host refused, the newest last.
    Refusals {
        /// TOML file.
        #[arg(long)]
        config: Option<PathBuf>,
    },
    /// Prepare and try the systems that adapters change.
    #[command(subcommand)]
    Adapter(adapter::Command),
    /// Show how the running agent stands, or what the journal of a stopped one holds.
    Status {
        /// TOML file.
        #[arg(long)]
        config: Option<PathBuf>,
    },
}

impl Command {
    fn config(&self) -> Option<&Path> {
        match self {
            Command::Join(args) => Some(&args.config),
            Command::Adapter(_) => None,
            Command::Run { config }
            | Command::CheckConfig { config }
            | Command::Refusals { config }
            | Command::Status { config } => config.as_deref(),
        }
    }
}

/// Runs the command line. The first argument is the program's name.
#[must_use]
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let _written = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let command = match cli.command {
        Command::Join(args) => return enrol(*args),
        other => other,
    };
    let config = command.config().map(Path::to_owned);
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ended_by(&fault::problem(&error, config.as_deref())),
    }
}

fn ended_by(problem: &Problem) -> ExitCode {
    let _nobody_reads = writeln!(std::io::stderr(), "{problem}");
    ExitCode::from(problem.code.exit() as u8)
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Join(_) => Ok(()),
        Command::Run { config: file } => {
            let config = read(file.clone())?;
            guarded(file.as_deref(), &config)?;
            serve(config)
        }
        Command::CheckConfig { config: file } => {
            let config = read(file.clone())?;
            guarded(file.as_deref(), &config)?;
            check(&config)
        }
        Command::Refusals { config } => refusals(&read(config)?),
        Command::Adapter(command) => adapter::run(command),
        Command::Status { config } => status(&read(config)?),
    }
}

fn enrol(args: join::Args) -> ExitCode {
    tls::install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let joined = match runtime {
        Ok(runtime) => runtime.block_on(join::join(args)),
        Err(error) => Err(Box::new(Problem::new(Code::Internal, format!("could not start the runtime: {error}")))),
    };
    let (text, code) = match joined {
        Ok(lines) => (lines.join("\n"), 0),
        Err(problem) => return ended_by(&problem),
    };
    let _written = writeln!(std::io::stdout(), "{}", holdfast_common::text::printable(&text));
    ExitCode::from(code)
}

fn read(file: Option<PathBuf>) -> anyhow::Result<Config> {
    Ok(config::load(file.as_deref(), std::env::vars_os())?)
}

/// Nothing that a file says counts if others can write it.
fn guarded(file: Option<&Path>, config: &Config) -> anyhow::Result<()> {
    let errors = policy::unguarded(file, config);
    if errors.is_empty() { Ok(()) } else { Err(crate::run::Error::Policy(errors).into()) }
}

fn check(config: &Config) -> anyhow::Result<()> {
    let found = policy::check(config, policy::Occasion::ByHand);
    for line in policy::words(config) {
        say(&printable(&line))?;
    }
    for warning in &found.warnings {
        say(&printable(&format!("warning: {warning}")))?;
    }
    if !found.errors.is_empty() {
        return Err(crate::run::Error::Policy(found.errors).into());
    }
    crate::run::tls(config)?.must_be_good_now()?;
    say("the configuration is valid")
}

fn refusals(config: &Config) -> anyhow::Result<()> {
    let all = Refusals::below(&config.state_dir).all().context("could not read the refusals")?;
    if all.is_empty() {
        return say("this host has refused nothing");
    }
    say("at  target  deployment  asked for  rule: why")?;
    for one in all {
        let at =
            jiff::Timestamp::from_microsecond(one.at.0).map_or_else(|_| one.at.0.to_string(), |at| format!("{at:.0}"));
        let Refused { target, deployment, asked, rule, why, .. } = one;
        say(&one_line(&format!("{at}  {target}  {deployment}  {asked}  {rule}: {why}")))?;
    }
    Ok(())
}

fn serve(config: Config) -> anyhow::Result<()> {
    // What this process was started with open is not for the commands of steps. Our own files are closed for them anyway.
    close_fds::set_fds_cloexec(3, &[]);
    crate::bugs::arm();
    telemetry::init(config.log.format, &config.log.filter)?;
    crate::supervisor::shut().context("could not shut this process to others")?;
    tls::install_default();
    // One session; what comes in bulk, and every decision, has a thread of its own.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let (asked, requests) = watch::channel(0);
        tokio::spawn(count_signals(asked));
        crate::run::run(config, requests).await.context("could not run the agent")
    })
}

/// Each SIGTERM and each Ctrl-C is one request to stop. A SIGHUP is none.
async fn count_signals(asked: watch::Sender<u32>) {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut hangup) = match (signal(SignalKind::terminate()), signal(SignalKind::hangup())) {
        (Ok(terminate), Ok(hangup)) => (terminate, hangup),
        (Err(error), _) | (_, Err(error)) => return tracing::error!(%error, "could not listen for signals"),
    };
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
            _ = hangup.recv() => {
                tracing::info!("SIGHUP: nothing to reload, certificates are read by themselves");
                continue;
            }
        }
        tracing::info!("asked to stop");
        asked.send_modify(|count| *count = count.saturating_add(1));
    }
}

fn status(config: &Config) -> anyhow::Result<()> {
    crate::status::lines(config)?.iter().try_for_each(|line| say(&holdfast_common::text::one_line(line)))
}

fn say(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("could not write")
}
