//! `holdfast-agent join`: a host with a join token becomes an agent.
//!
//! ```text
//! who answers is looked at, nothing is sent ─▶ the pinned authority is among what is presented ─▶ connected again,
//! verified by that authority alone ─▶ token and request sent ─▶ identity written
//! ```

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use holdfast_common::code::Code;
use holdfast_common::id::AgentName;
use holdfast_common::problem::Problem;
use holdfast_common::spec::hex;
use holdfast_net::channel::{self, Limits};
use holdfast_net::tls::ClientTls;
use holdfast_proto::problem::from_status;
use holdfast_proto::v1::{EnrollRequest, EnrollResponse};
use sha2::{Digest as _, Sha256};

use super::ask;
use super::folder::{Error as FolderError, Folder};
use crate::config::Machine;
use crate::machine;

/// A clock that is off by more than this is told, in seconds.
const SKEW_TOLD: i64 = 30;

/// What every join token begins with.
const TOKEN_PREFIX: &str = "hfj_";

/// The variable that a token can be given by.
pub const TOKEN_VARIABLE: &str = "HOLDFAST_JOIN_TOKEN";

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The coordinator, like `deploy.example:7443`.
    #[arg(long, value_name = "ADDRESS")]
    pub coordinator: String,
    /// The authority that the coordinator must present, as `holdfast agent token create` shows it.
    #[arg(long, value_name = "sha256:HEX", value_parser = pin, required_unless_present = "ca")]
    pub ca_pin: Option<[u8; 32]>,
    /// PEM file of that authority, instead of its pin.
    #[arg(long, value_name = "FILE", conflicts_with = "ca_pin")]
    pub ca: Option<PathBuf>,
    /// The name in the coordinator's certificate, where it is not the address's host.
    #[arg(long, value_name = "NAME")]
    pub server_name: Option<String>,
    /// File of the join token; `-` reads it from the input. Without it the variable HOLDFAST_JOIN_TOKEN is read.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// The agent's name; the host's own if nothing else is said.
    #[arg(long)]
    pub name: Option<AgentName>,
    /// The agent's configuration. If the file is not there it is written.
    #[arg(long, value_name = "FILE", default_value = "/etc/holdfast/agent.toml")]
    pub config: PathBuf,
    /// The folder for the identity, where a configuration is written; beside the file if nothing else is said.
    #[arg(long, value_name = "DIR")]
    pub identity: Option<PathBuf>,
    /// The folder for the agent's state, where a configuration is written.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/holdfast-agent")]
    pub state: PathBuf,
}

fn pin(text: &str) -> Result<[u8; 32], String> {
    let digits: String = text.strip_prefix("sha256:").unwrap_or(text).chars().filter(|c| *c != ':').collect();
    let bad = || "a pin is sha256: and 64 hexadecimal digits".to_owned();
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(bad());
    }
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| bad());
    let bytes: Vec<u8> = (0..64).step_by(2).map(byte).collect::<Result<_, _>>()?;
    bytes.try_into().map_err(|_| bad())
}

/// What was done, line by line.
pub async fn join(args: Args) -> Result<Vec<String>, Box<Problem>> {
    let place = Place::of(&args)?;
    let name = name(&args)?;
    let folder = Folder::at(&place.identity);
    let kept = folder.read().map_err(|error| unusable(&error))?;
    if let Some(kept) = kept.as_ref().filter(|kept| kept.agent != name.as_str()) {
        let title = format!("this host is enrolled as {}, not as {name}", kept.agent);
        let problem =
            Problem::new(Code::Config, title).known(format!("its identity is in {}", place.identity.display()));
        let problem = problem.so("nothing was sent").next(format!("join with --name {}", kept.agent));
        return Err(Box::new(problem.next("or name another configuration, with folders of its own: --config FILE")));
    }
    place.may_write(&args)?;
    let token = token(&args)?;
    let tls = trusted(&args).await?;
    let key = folder.asking_key().map_err(|error| unusable(&error))?;
    let asked = EnrollRequest {
        name: name.to_string(),
        request: ask::request(&key).map_err(|error| plain(Code::Internal, &error))?,
        machine: machine::fingerprint(&place.machine),
        clock: Some(SystemTime::now().into()),
    };
    let answer = ask::enroll(&args.coordinator, &tls, &token, asked).await;
    let answer = answer.map_err(|error| {
        let problem = refused(error, &args.coordinator);
        if kept.is_some() { is_already(problem, &name, folder.since(), &args) } else { problem }
    })?;
    let certificate =
        answer.certificate.clone().ok_or_else(|| plain(Code::InvalidMessage, &"the answer has no certificate"))?;
    let labels: BTreeMap<String, String> = answer.labels.clone().into_iter().collect();
    folder.put(&certificate, labels.clone()).map_err(|error| unusable(&error))?;
    let written = place.write(&args)?;
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let mut lines = vec![
        format!("{name} is enrolled at {}", args.coordinator),
        format!("  labels       {}", if labels.is_empty() { "none".to_owned() } else { labels.join(" ") }),
        format!("  certificate  sha256:{}", certificate.fingerprint),
        format!("  identity     {} (its key was made here and never left this host)", place.identity.display()),
    ];
    lines.extend(written.then(|| format!("  written      {}", args.config.display())));
    lines.extend(place.elsewhere(&args));
    lines.extend(skew(&answer));
    lines.push(format!("next: holdfast-agent run --config {}", args.config.display()));
    Ok(lines)
}

/// Where things are, by the configuration that is there or is to be.
struct Place {
    identity: PathBuf,
    machine: Machine,
    /// Where the configuration that is there says that the coordinator is: one address, or several after commas.
    address: Option<String>,
}

impl Place {
    fn of(args: &Args) -> Result<Self, Box<Problem>> {
        if !args.config.exists() {
            let beside = args.config.parent().unwrap_or(Path::new(".")).join("identity");
            let identity = args.identity.clone().unwrap_or(beside);
            return Ok(Self { identity, machine: Machine::default(), address: None });
        }
        let environment = std::env::vars_os().filter(|(name, _)| name != TOKEN_VARIABLE);
        let config: crate::config::Config =
            holdfast_net::config::load(Some(&args.config), environment).map_err(|error| plain(Code::Config, &error))?;
        let identity = config.identity.dir.clone().ok_or_else(|| {
            let title = format!("{} names a certificate and a key by files", args.config.display());
            let problem = Problem::new(Code::Config, title).so("nothing was sent");
            Box::new(problem.next("in its [identity] put dir = \"/etc/holdfast/identity\" in their place"))
        })?;
        Ok(Self { identity, machine: config.machine, address: Some(config.coordinator.address.to_string()) })
    }

    /// The coordinator may have several names. The agent dials those of its configuration.
    fn elsewhere(&self, args: &Args) -> Option<String> {
        let plain = |address: &str| address.trim_start_matches("https://").trim_end_matches('/').to_owned();
        let dials = |all: &str| all.split(", ").any(|address| plain(address) == plain(&args.coordinator));
        let configured = self.address.as_ref().filter(|all| !dials(all))?;
        let (file, joined) = (args.config.display(), &args.coordinator);
        Some(format!("  not there    {file} dials {configured}: put address = \"{joined}\" in its [coordinator]"))
    }

    /// Looked at before a token is used up: a configuration that can't be written then would cost it.
    fn may_write(&self, args: &Args) -> Result<(), Box<Problem>> {
        if self.address.is_some() {
            return Ok(());
        }
        let trial = args.config.with_extension("trial");
        let tried = args.config.parent().map_or(Ok(()), std::fs::create_dir_all);
        let tried = tried.and_then(|()| std::fs::write(&trial, "")).and_then(|()| std::fs::remove_file(&trial));
        tried.map_err(|error| {
            let title = format!("could not write {}: {error}", args.config.display());
            let problem = Problem::new(Code::Config, title).so("nothing was sent; the join token is still good");
            Box::new(problem.next("run it as the user who may write there, or name another file: --config FILE"))
        })
    }

    /// Whether a configuration was written.
    fn write(&self, args: &Args) -> Result<bool, Box<Problem>> {
        if self.address.is_some() {
            return Ok(false);
        }
        let text = format!(
            "state_dir = {:?}\n\n[coordinator]\naddress = {:?}\n{}\n[identity]\ndir = {:?}\n",
            args.state,
            args.coordinator,
            args.server_name.as_ref().map(|name| format!("server_name = {name:?}\n")).unwrap_or_default(),
            self.identity,
        );
        let written = args.config.parent().map_or(Ok(()), std::fs::create_dir_all);
        let written = written.and_then(|()| std::fs::write(&args.config, text));
        written
            .map(|()| true)
            .map_err(|error| plain(Code::Config, &format!("could not write {}: {error}", args.config.display())))
    }
}

fn name(args: &Args) -> Result<AgentName, Box<Problem>> {
    if let Some(name) = &args.name {
        return Ok(name.clone());
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim().split('.').next().unwrap_or_default().to_owned();
    AgentName::new(host).map_err(|error| {
        let problem = Problem::new(Code::Config, format!("this host's name can't be an agent's: {error}"));
        Box::new(problem.so("nothing was sent").next("--name NAME"))
    })
}

fn token(args: &Args) -> Result<String, Box<Problem>> {
    let named = args.token_file.as_deref().and_then(Path::to_str).unwrap_or_default();
    if named.starts_with(TOKEN_PREFIX) {
        let problem = Problem::new(Code::Config, "--token-file names a file, and was given a join token itself");
        let problem = problem.known("others on this host may have seen it: it stood in the list of processes");
        let problem = problem.so("nothing was sent").next("take it back: holdfast agent token revoke ID");
        return Err(Box::new(
            problem.next("make another one, and give it in a file, or by the input with --token-file -"),
        ));
    }
    let read = match &args.token_file {
        Some(file) if file == Path::new("-") => {
            let mut text = String::new();
            std::io::stdin().take(4096).read_to_string(&mut text).map(|_| text)
        }
        Some(file) => std::fs::read_to_string(file),
        None => Ok(std::env::var(TOKEN_VARIABLE).unwrap_or_default()),
    };
    let text = read.map_err(|error| plain(Code::Config, &format!("could not read the join token: {error}")))?;
    let text = text.trim().to_owned();
    if text.is_empty() {
        let problem = Problem::new(Code::Config, "there is no join token").so("nothing was sent");
        let problem = problem.next(format!("--token-file FILE, or - for the input, or the variable {TOKEN_VARIABLE}"));
        return Err(Box::new(problem.next("an operator makes one: holdfast agent token create")));
    }
    Ok(text)
}

/// Verifies by the pinned authority alone. Looks at who answers first; nothing is sent to them.
async fn trusted(args: &Args) -> Result<ClientTls, Box<Problem>> {
    let server_name = args.server_name.as_deref();
    if let Some(file) = &args.ca {
        return ClientTls::from_files(file, None, server_name).map_err(|error| plain(Code::Config, &error));
    }
    let wanted = args.ca_pin.expect("one of the two is required");
    let presented = channel::presented(&args.coordinator, &Limits::default()).await;
    let presented = presented.map_err(|error| unreachable(&error, &args.coordinator))?;
    let found = presented.iter().skip(1).find(|one| Sha256::digest(one).as_slice() == wanted).cloned();
    let found = found.ok_or_else(|| {
        let title = format!("{} does not present the pinned authority", args.coordinator);
        let problem = Problem::new(Code::CaPinMismatch, title).known(format!("the pin is sha256:{}", hex(&wanted)));
        let shown = presented.iter().skip(1).map(|one| format!("it presents sha256:{}", hex(&Sha256::digest(one))));
        let problem = shown.fold(problem, Problem::known);
        let problem = problem.not_known("whether this is the coordinator, or somebody in its place");
        let problem = problem.so("nothing was sent, the join token neither");
        Box::new(problem.next("compare with what this prints on the coordinator's host: holdfast-coordinator ca show"))
    })?;
    ClientTls::from_authority(found, server_name).map_err(|error| plain(Code::Config, &error))
}

fn refused(error: ask::Error, address: &str) -> Box<Problem> {
    match error {
        ask::Error::Dial(error) => unreachable(&error, address),
        ask::Error::Status(status) => Box::new(from_status(&status).unwrap_or_else(|| {
            Problem::new(Code::NoAnswer, format!("no answer: {}", status.message()))
                .not_known("whether this host was taken in")
                .next("repeat the same command: with the same token and key it is the same enrolment")
        })),
        error @ (ask::Error::Token(_) | ask::Error::Request(_)) => plain(Code::Config, &error),
    }
}

/// The token of a host that has joined is used, most likely by this host: nobody else is to be suspected before that is said.
fn is_already(problem: Box<Problem>, name: &AgentName, since: Option<SystemTime>, args: &Args) -> Box<Problem> {
    if problem.code != Code::JoinTokenUsed {
        return problem;
    }
    let since = since.and_then(|since| jiff::Timestamp::try_from(since).ok());
    let since = since.map(|since| format!(", since {since:.0}")).unwrap_or_default();
    let title = format!("this host is {name} already{since}, and the join token was used");
    let told = Problem::new(Code::JoinTokenUsed, title).known(problem.title);
    let told = problem.known.into_iter().fold(told, Problem::known);
    let told = told.so("the identity that is here was not touched, and goes on");
    let told = told.next(format!("holdfast-agent run --config {}", args.config.display()));
    Box::new(told.next("to join anew, a token of its own is needed: holdfast agent token create"))
}

fn unreachable(error: &channel::Error, address: &str) -> Box<Problem> {
    match error {
        channel::Error::Address { .. } | channel::Error::Count { .. } | channel::Error::Name(_) => {
            plain(Code::Config, error)
        }
        channel::Error::Dial(dial) => {
            let text = dial.to_string();
            let untrusted = dial.is_of_tls();
            let code = if untrusted { Code::CaPinMismatch } else { Code::NoAnswer };
            let problem = Problem::new(code, &text).so("nothing was sent, the join token neither");
            let clock = text.contains("expired") || text.contains("not valid yet");
            let problem =
                if clock { problem.known(format!("this host's clock says {}", clock_text())) } else { problem };
            let problem = if clock { problem.next("set this host's clock, then join again") } else { problem };
            let problem = dial.other_names(address).iter().fold(problem, Problem::next);
            Box::new(problem.next(format!("check that a coordinator serves at {address}")))
        }
    }
}

fn clock_text() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    format!("{seconds} s after 1970-01-01T00:00:00Z")
}

/// How far this host's clock is off, where that matters.
fn skew(answer: &EnrollResponse) -> Option<String> {
    let theirs = answer.clock.as_ref()?.seconds;
    let ours = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()).ok()?;
    let off = ours.saturating_sub(theirs);
    let word = if off > 0 { "ahead of" } else { "behind" };
    (off.abs() > SKEW_TOLD).then(|| {
        format!("  clock        this host is {} s {word} the coordinator: set it, certificates count by it", off.abs())
    })
}

fn unusable(error: &FolderError) -> Box<Problem> {
    plain(Code::Config, error)
}

fn plain(code: Code, error: &dyn std::fmt::Display) -> Box<Problem> {
    Box::new(Problem::new(code, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_has_joined_is_told_so_before_anybody_is_suspected() {
        use clap::Parser as _;
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        let args = Line::parse_from(["join", "--coordinator", "here:7443", "--ca", "ca.pem"]).args;
        let name = AgentName::new("web-01").expect("a name");
        let told = |code| {
            let refusal = Problem::new(code, "refused").next("somebody else had the token");
            is_already(Box::new(refusal), &name, Some(UNIX_EPOCH), &args)
        };
        let used = told(Code::JoinTokenUsed);
        assert!(used.title.starts_with("this host is web-01 already, since 1970-01-01T00:00:00Z"), "{used}");
        assert!(!used.to_string().contains("somebody else"), "{used}");
        assert_eq!(told(Code::NoAnswer).title, "refused", "any other refusal is told as it came");
    }

    #[test]
    fn a_pin_is_read_as_it_is_shown() {
        let digits = "0a".repeat(32);
        for text in [format!("sha256:{digits}"), digits.clone(), digits.to_uppercase()] {
            assert_eq!(pin(&text), Ok([10; 32]), "{text}");
        }
        for bad in ["", "sha256:", "sha256:0a", &digits.replace('a', "g")] {
            assert!(pin(bad).is_err(), "{bad}");
        }
    }
}
