//! The command line of `holdfast-coordinator`.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use holdfast_common::code::{Code, ExitCode as Exit};
use holdfast_common::id::OperatorName;
use holdfast_common::problem::Problem;
use holdfast_common::text::chain;
use holdfast_common::time::Millis;
use holdfast_net::{ops, telemetry, tls};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::auth::{Grant, Scope, Standing};
use crate::ca;
use crate::config::{self, Config};
use crate::grpc::view::instant;
use crate::owner;
use crate::serve::{self, wall};
use crate::store::{self, Reader};
use crate::tokens;

/// The central service of Holdfast: fenced leases, permits, decisions, and what is known.
#[derive(Debug, Parser)]
#[command(name = "holdfast-coordinator", version)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve until SIGTERM or Ctrl-C.
    Serve(Configured),
    /// Read the configuration and the certificates, and say what is wrong with them.
    CheckConfig(Configured),
    /// Operators' tokens. Works beside a running coordinator.
    #[command(subcommand)]
    Token(TokenCommand),
    /// The coordinator's own authority: signs the certificates of hosts that join. Works beside a running coordinator.
    #[command(subcommand)]
    Ca(CaCommand),
    /// Compute every hash, state and row of the store again, from the first event, and name each difference. Changes nothing;
    /// works beside a running coordinator. Exits with 0 if there is none, else with 1.
    Verify(Verify),
    /// Say the version.
    Version,
}

#[derive(Debug, Args)]
struct Configured {
    /// The configuration, TOML. Each key can also be given as HOLDFAST_*.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Configured {
    /// A command line to go on with, for the same coordinator.
    fn line(&self, words: &str) -> String {
        let config = self.config.as_ref().map(|file| format!(" --config {}", file.display())).unwrap_or_default();
        format!("holdfast-coordinator {words}{config}")
    }
}

#[derive(Debug, Args)]
struct Verify {
    #[command(flatten)]
    configured: Configured,
    /// The folder with the data, instead of a configuration: `data_dir` of the coordinator, or a copy of it.
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    data: Option<PathBuf>,
    /// Answer in JSON, with every difference.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token, and show it once.
    Create {
        #[command(flatten)]
        configured: Configured,
        /// The operator it stands for.
        #[arg(long)]
        name: OperatorName,
        /// A role, and the targets on which it counts: `admin`, `operator:shop@*`. May be repeated.
        #[arg(long = "role", value_name = "ROLE[:PATTERN]", required = true)]
        roles: Vec<Grant>,
        /// How long it lives, like `30d`.
        #[arg(long, default_value = "30d")]
        ttl: Millis,
    },
    /// List the tokens, without their secrets.
    List(Configured),
    /// Take a token back: it opens nothing from the next call on, and its live streams end.
    Revoke {
        #[command(flatten)]
        configured: Configured,
        /// The operator it stands for.
        #[arg(value_name = "NAME", required_unless_present = "by_option")]
        name: Option<OperatorName>,
        /// The same, as an option.
        #[arg(long = "name", value_name = "NAME", id = "by_option", conflicts_with = "name")]
        by_option: Option<OperatorName>,
    },
}

#[derive(Debug, Subcommand)]
enum CaCommand {
    /// Make the authority: `ca.cert` and `ca.key` of the configuration, else in `ca/` of `data_dir`. Nothing is replaced.
    Create(Configured),
    /// Show which authorities are trusted, with the pins that hosts join by.
    Show(Configured),
    /// Make a new authority, which signs from now on. The old ones stay trusted until they end.
    Rotate(Configured),
    /// Sign a certificate for the coordinator itself, in `tls.cert` and `tls.key`. A running coordinator takes it up.
    Server {
        #[command(flatten)]
        configured: Configured,
        /// A name or address that agents and operators dial; may be repeated.
        #[arg(long = "host", value_name = "NAME", required = true)]
        hosts: Vec<String>,
        /// How long it is good.
        #[arg(long, value_name = "DURATION", default_value = "365d")]
        ttl: Millis,
    },
}

/// Runs a whole command line, the program's name first. Answers on stdout, speaks on stderr.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let line = match Line::try_parse_from(args) {
        Ok(line) => line,
        Err(error) => {
            // Help and version are no errors and go to stdout.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            let _nobody_reads = error.print();
            return exit_code(exit);
        }
    };
    match run(line.command) {
        Ok(()) => exit_code(Exit::Done),
        Err(problem) => {
            let _nobody_reads = writeln!(io::stderr(), "{problem}");
            exit_code(problem.code.exit())
        }
    }
}

fn exit_code(exit: Exit) -> ExitCode {
    ExitCode::from(exit as u8)
}

fn run(command: Command) -> Result<(), Box<Problem>> {
    match command {
        Command::Serve(configured) => {
            serve_until_signal(load_to_write(&configured)?).map_err(|error| unserved(&error, &configured))
        }
        Command::CheckConfig(configured) => check(&load(&configured)?).map_err(|error| unserved(&error, &configured)),
        Command::Token(command) => token(command),
        Command::Ca(command) => authority(command),
        Command::Verify(asked) => verify(&asked),
        Command::Version => say(&format!("holdfast-coordinator {}", env!("CARGO_PKG_VERSION"))),
    }
}

fn load(configured: &Configured) -> Result<Config, Box<Problem>> {
    Config::load(configured.config.as_deref()).map_err(|error: config::Error| fault(Code::Config, error.to_string()))
}

/// The same, to write into its folder.
fn load_to_write(configured: &Configured) -> Result<Config, Box<Problem>> {
    let config = load(configured)?;
    let Some(owner) = owner::of_somebody_else(&config.data_dir) else { return Ok(config) };
    let folder = config.data_dir.display();
    let problem = Problem::new(Code::Config, format!("{folder} belongs to {owner}, and this is root"));
    let problem = problem.known(format!("what root writes there, a coordinator that runs as {owner} can't read"));
    Err(Box::new(problem.so("nothing was changed").next(format!("runuser -u {owner} -- {}", configured.line("...")))))
}

fn serve_until_signal(config: Config) -> anyhow::Result<()> {
    telemetry::init(config.log.format, &config.log.filter)?;
    tls::install_default();
    // What is served has threads of its own.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.context("could not start the runtime")?;
    let served = runtime.block_on(async {
        let shutdown = CancellationToken::new();
        stop_on_signal(shutdown.clone())?;
        serve::serve(config, shutdown).await
    });
    // What still runs was told to stop and had its time.
    runtime.shutdown_background();
    served
}

/// What keeps it from serving: what `check-config` refuses is told as there.
fn unserved(error: &anyhow::Error, configured: &Configured) -> Box<Problem> {
    let any = |is: fn(&(dyn std::error::Error + 'static)) -> bool| error.chain().any(is);
    let configuration = any(|cause| cause.is::<config::Error>() || cause.is::<tls::Error>())
        || any(|cause| cause.is::<telemetry::Error>() || cause.is::<ops::Error>() || cause.is::<serve::Unusable>());
    let code = match (configuration, any(|cause| cause.is::<store::Error>())) {
        (true, _) => Code::Config,
        (false, true) => Code::StoreFailed,
        (false, false) => Code::Internal,
    };
    let problem = Problem::new(code, chain(error.as_ref()));
    let no_authority = any(|cause| matches!(cause.downcast_ref(), Some(config::Error::NoAuthority)));
    Box::new(if no_authority { problem.next(configured.line("ca create")) } else { problem })
}

fn stop_on_signal(shutdown: CancellationToken) -> io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _signal = terminate.recv() => break tracing::info!("SIGTERM"),
                _signal = interrupt.recv() => break tracing::info!("SIGINT"),
                _signal = hangup.recv() => {
                    tracing::info!("SIGHUP: nothing to reload, certificates are read by themselves");
                }
            }
        }
        shutdown.cancel();
    });
    Ok(())
}

fn check(config: &Config) -> anyhow::Result<()> {
    let authorities = config.client_authorities()?;
    tls::ServerTls::trusting(&config.tls.cert, &config.tls.key, &authorities)?.must_be_good_now()?;
    let line = format!("the configuration can be used: it would listen on {}", config.listen.address);
    writeln!(io::stdout(), "{line}").context("could not write")
}

fn token(command: TokenCommand) -> Result<(), Box<Problem>> {
    let now = wall();
    match command {
        TokenCommand::Create { configured, name, roles, ttl } => {
            let config = load_to_write(&configured)?;
            serve::make_folder(&config.data_dir).map_err(|error| fault(Code::Config, error.to_string()))?;
            let secret = tokens::create(&config.store(), &name, &roles, ttl, now).map_err(|error| told(&error))?;
            let scope = Scope::new(roles);
            let _nobody_reads =
                writeln!(io::stderr(), "token of {name} ({scope}) for {ttl}; it is shown only this once:");
            say(secret.reveal())
        }
        TokenCommand::List(configured) => {
            let store = load(&configured)?.store();
            tokens::must_exist(&store).map_err(|error| told(&error))?;
            for token in tokens::list(&store, now).map_err(|error| told(&error))? {
                let standing = match token.standing(now) {
                    Standing::Valid => format!("valid until {}", instant(token.expires_at)),
                    Standing::Expired => format!("expired {}", instant(token.expires_at)),
                    Standing::Revoked => "revoked".to_owned(),
                };
                say(&format!("{}\t{}\t{standing}", token.name, token.scope))?;
            }
            Ok(())
        }
        TokenCommand::Revoke { configured, name, by_option } => {
            let name = name.or(by_option).expect("one of the two is required");
            let store = load_to_write(&configured)?.store();
            tokens::must_exist(&store).map_err(|error| told(&error))?;
            tokens::revoke(&store, &name, now).map_err(|error| told(&error))?;
            say(&format!("the token of {name} is revoked"))
        }
    }
}

fn authority(command: CaCommand) -> Result<(), Box<Problem>> {
    let now = wall();
    let failed = |error: ca::Error| fault(Code::Config, chain(&error));
    match command {
        CaCommand::Create(configured) => {
            let config = load_to_write(&configured)?;
            let files = config.authority();
            let made = files.create(now).map_err(|error| match error {
                ca::Error::Exists { .. } => {
                    let problem = Problem::new(Code::Config, error.to_string()).so("nothing was changed");
                    Box::new(problem.next(configured.line("ca show")).next(configured.line("ca rotate")))
                }
                other => failed(other),
            })?;
            say(&format!("made {} and {}", files.certificates.display(), files.key.display()))?;
            say(&format!("pin   {}", pin(made.certificate())))?;
            let server = configured.line("ca server --host NAME");
            say(&format!("next: {server} signs {}", config.tls.cert.display()))
        }
        CaCommand::Show(configured) => show_authority(&load(&configured)?.authority(), &configured),
        CaCommand::Rotate(configured) => {
            let files = load_to_write(&configured)?.authority();
            let made = files.rotate(now).map_err(failed)?;
            say(&format!("the new authority signs from now on: {}", pin(made.certificate())))?;
            say(&format!("{} are trusted; agents learn of it when they renew", counted(made.trusted().len())))?;
            let server = configured.line("ca server --host NAME");
            say(&format!("leave the coordinator's own certificate as it is until they have; then: {server}"))
        }
        CaCommand::Server { configured, hosts, ttl } => {
            let config = load_to_write(&configured)?;
            let authority = read_authority(&config.authority(), &configured)?;
            let (signed, key) = authority.server(&hosts, ttl, now).map_err(failed)?;
            let older = authority.trusted().iter().map(ca::pem_of);
            let chain: String = std::iter::once(ca::pem_of(&signed.certificate)).chain(older).collect();
            ca::write_private(&config.tls.key, &key.serialize_pem()).map_err(failed)?;
            ca::write_private(&config.tls.cert, &chain).map_err(failed)?;
            let (files, until) = (config.tls.cert.display(), instant(signed.expires_at));
            say(&format!("wrote {files} and its key, for {}, until {until}", hosts.join(", ")))
        }
    }
}

fn show_authority(files: &ca::Files, configured: &Configured) -> Result<(), Box<Problem>> {
    let authority = read_authority(files, configured)?;
    say(&format!("key   {}", files.key.display()))?;
    for certificate in authority.trusted() {
        let signs = if certificate == authority.certificate() { "signs" } else { "is trusted" };
        let until = ca::end(certificate).map(instant).unwrap_or_default();
        say(&format!("pin   {}   {signs}, until {until}", pin(certificate)))?;
    }
    Ok(())
}

fn read_authority(files: &ca::Files, configured: &Configured) -> Result<ca::Authority, Box<Problem>> {
    let read = files.read().map_err(|error| fault(Code::Config, chain(&error)))?;
    read.ok_or_else(|| {
        let title = format!("this coordinator has no authority of its own: {} is missing", files.key.display());
        Box::new(Problem::new(Code::EnrolmentClosed, title).next(configured.line("ca create")))
    })
}

/// As hosts take it.
fn pin(certificate: &rustls_pki_types::CertificateDer<'_>) -> String {
    format!("sha256:{}", ca::fingerprint(certificate))
}

fn counted(authorities: usize) -> String {
    if authorities == 1 { "one authority".to_owned() } else { format!("{authorities} authorities") }
}

fn told(error: &tokens::Error) -> Box<Problem> {
    let code = match error {
        tokens::Error::Exists(_) => Code::TokenExists,
        tokens::Error::NotFound(_) => Code::TokenNotFound,
        tokens::Error::NoStore { .. } | tokens::Error::Life | tokens::Error::Grants => Code::Config,
        tokens::Error::Store(_) | tokens::Error::Row(_) => Code::StoreFailed,
        tokens::Error::NoRandomness(_) => Code::Internal,
    };
    fault(code, chain(error))
}

/// What no event leads to.
const NOT_COMPARED: &str = "not compared, since no event leads to them: tokens, agents, their identities and certificates, join tokens, \
                            drains, refusals; of what was done with them the acts tell, whose chain is whole";

fn verify(asked: &Verify) -> Result<(), Box<Problem>> {
    /// Differences that are told on a terminal. JSON has all of them.
    const TOLD: usize = 50;
    let path = match &asked.data {
        Some(folder) => config::store_in(folder),
        None => load(&asked.configured)?.store(),
    };
    tokens::must_exist(&path).map_err(|error| told(&error))?;
    let failed = |error: store::Error| fault(Code::StoreFailed, chain(&error));
    let report = Reader::over(&path).map_err(failed)?.verified().map_err(failed)?;
    let of = format!("{} events of {} targets, {} acts", report.events, report.targets, report.acts);
    if asked.json {
        say(&serde_json::to_string(&report).expect("plain data serializes"))?;
    } else if report.sound {
        say(&format!("every hash, every state and every row that events lead to is as it should be: {of}"))?;
        say(NOT_COMPARED)?;
    }
    let count = match report.findings.len() {
        0 => return Ok(()),
        1 => "one difference".to_owned(),
        count => format!("{count} differences"),
    };
    let title = format!("the store differs from its events: {count} in {of}");
    let problem = Problem::new(Code::StoreUnsound, title);
    let problem = report.findings.iter().take(TOLD).fold(problem, |problem, found| problem.known(found.to_string()));
    let rest = report.findings.len().saturating_sub(TOLD);
    let problem = if rest > 0 { problem.known(format!("and {rest} more: --json has all")) } else { problem };
    Err(Box::new(problem.so("nothing was changed; a running coordinator grants nothing once its auditor has seen it")))
}

fn fault(code: Code, title: String) -> Box<Problem> {
    Box::new(Problem::new(code, title))
}

fn say(line: &str) -> Result<(), Box<Problem>> {
    writeln!(io::stdout(), "{line}").map_err(|error| fault(Code::Internal, format!("could not write: {error}")))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Line::command().debug_assert();
    }

    #[tokio::test]
    async fn what_can_not_be_served_is_told_as_check_config_tells_it() {
        let folder = std::env::temp_dir().join(format!("holdfast-cli-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&folder).expect("made");
        let (file, data) = (folder.join("coordinator.toml"), folder.join("data"));
        let configured = Configured { config: Some(file.clone()) };
        let without_ca = format!("data_dir = {data:?}\n[tls]\ncert = \"none.pem\"\nkey = \"none.key\"\n");
        let without_certificate = format!("{without_ca}client_ca = \"none-ca.pem\"\n");
        let create = format!("holdfast-coordinator ca create --config {}", file.display());
        for (text, named, next) in
            [(without_ca, "tls.client_ca", vec![create]), (without_certificate, "none", Vec::new())]
        {
            std::fs::write(&file, text).expect("written");
            let config = load(&configured).expect("it can be read");
            let checked = unserved(&check(&config).expect_err("refused"), &configured);
            let served = serve::serve(config, CancellationToken::new()).await.expect_err("refused");
            assert_eq!(checked, unserved(&served, &configured));
            assert!(checked.code.exit() == Exit::Usage && checked.title.contains(named), "{checked}");
            assert_eq!(checked.next, next);
        }
        assert!(!data.exists(), "nothing was made");
        std::fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn an_address_that_is_taken_is_no_fault_of_the_program() {
        let told = |error: &anyhow::Error| unserved(error, &Configured { config: None }).code;
        let source = io::Error::from(io::ErrorKind::AddrInUse);
        let taken = serve::Unusable::Listen { address: ([127, 0, 0, 1], 1).into(), source };
        assert_eq!(told(&anyhow::Error::from(taken)), Code::Config);
        assert_eq!(told(&anyhow::anyhow!("the driver panicked")), Code::Internal);
    }

    #[test]
    fn a_token_needs_a_role_that_exists_and_a_name_that_is_one() {
        let parse = |words: &[&str]| Line::try_parse_from(words).is_ok();
        assert!(parse(&["x", "token", "create", "--name", "anna", "--role", "admin", "--ttl", "30d"]));
        assert!(parse(&["x", "token", "create", "--name", "a", "--role", "viewer", "--role", "operator:shop@*"]));
        assert!(!parse(&["x", "token", "create", "--name", "anna"]));
        assert!(!parse(&["x", "token", "create", "--name", "anna", "--role", "admin:"]));
        assert!(parse(&["x", "token", "revoke", "anna"]) && parse(&["x", "token", "revoke", "--name", "anna"]));
        assert!(!parse(&["x", "token", "revoke"]) && !parse(&["x", "token", "revoke", "a", "--name", "b"]));
        assert!(!parse(&["x", "token", "create", "--name", "anna", "--role", "root"]));
        assert!(!parse(&["x", "token", "create", "--name", "a b", "--role", "admin"]));
        assert!(!parse(&["x", "token", "create", "--name", "anna", "--role", "admin", "--ttl", "never"]));
    }
}
