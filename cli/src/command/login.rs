//! `holdfast login [ADDRESS]`
//!
//! ```text
//! CA pinned ── token read ── WhoAmI over that CA ── then written, never before
//! ```

use std::path::Path;

use holdfast_common::code::{Code, ExitCode};
use holdfast_common::problem::Problem;
use holdfast_common::spec::hex;
use holdfast_common::text::one_line;
use holdfast_net::channel::{self, Limits};
use holdfast_net::tls::ClientTls;
use rustls_pki_types::CertificateDer;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{Context, Outcome, confirm, hidden};
use crate::client::Client;
use crate::failure::Failure;
use crate::output::{Record, Tone};
use crate::refusal;
use crate::settings::{About, Contexts, New, Settings, Source, Token};
use crate::view::{self, stamp};

/// What it takes. `--context`, `--ca`, `--server-name` and `--token-file` are those that every command has.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The coordinator's CA is pinned: by --ca FILE, or by the fingerprint of the CA that the coordinator presents, shown to be \
compared or given by --fingerprint. The token is asked for without echo, or read from the input or --token-file, and is \
tried before anything is written. The context's name is --context NAME, else the host's.")]
pub struct Args {
    /// The coordinator, like `deploy.example:7443`; without it the chosen context is signed in to anew
    #[arg(value_name = "ADDRESS", conflicts_with = "address")]
    pub coordinator: Option<String>,
    /// SHA-256 of the CA's certificate, as `holdfast-coordinator ca show` and `openssl x509 -noout -fingerprint -sha256 -in ca.pem`
    /// print it
    #[arg(long, value_name = "SHA256", conflicts_with = "ca", value_parser = fingerprint)]
    pub fingerprint: Option<[u8; 32]>,
}

fn fingerprint(text: &str) -> Result<[u8; 32], String> {
    let digits = text.rsplit_once('=').map_or(text, |(_, digits)| digits);
    let digits = digits.strip_prefix("sha256:").unwrap_or(digits);
    let digits: String = digits.trim().chars().filter(|c| *c != ':').collect();
    let bad = || "a SHA-256 has 64 hexadecimal digits".to_owned();
    if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(bad());
    }
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| bad());
    let bytes: Vec<u8> = (0..64).step_by(2).map(byte).collect::<Result<_, _>>()?;
    bytes.try_into().map_err(|_| bad())
}

pub(super) async fn run(args: Args, context: &mut Context) -> Outcome {
    let contexts = Contexts::of(&context.surroundings.environment)?;
    let (name, address, known) = which(&args, &contexts, context)?;
    let server_name =
        context.connection.server_name.clone().or_else(|| known.as_ref().and_then(|known| known.server_name.clone()));
    let pin = pin(&args, &address, known.as_ref(), server_name.as_deref(), context).await?;
    let token = token(&address, context)?;
    context.token_from = Some(match context.connection.token_file {
        Some(_) => Source::Option("--token-file"),
        None => Source::Typed,
    });
    let me = Client::with(&address, pin.tls, &token).await?.who_am_i().await?;
    let new = New { name: &name, address: &address, ca: &pin.pem, server_name: server_name.as_deref(), token: &token };
    contexts.save(&new)?;
    let until = stamp::near(me.expires_at.as_ref(), context.canvas()).unwrap_or_default();
    let text = format!(
        "signed in to {} as {} ({}); the token ends {until}\ncontext {name} is written to {} and is the current one\n",
        one_line(&address),
        one_line(&me.operator),
        view::grants(&me.grants),
        contexts.path().display()
    );
    let whole = json!({
        "context": name, "address": address, "whoAmI": crate::output::answer("WhoAmIResponse", &me),
    });
    context.printer.record(&Record { whole, name, text })?;
    if let Some(note) = context.surroundings.environment.comes_before_contexts() {
        context.printer.talk(&note)?;
    }
    Ok(ExitCode::Done)
}

/// The context's name, its address, and what is there of it already.
fn which(args: &Args, contexts: &Contexts, context: &Context) -> Result<(String, String, Option<About>), Failure> {
    let given = args.coordinator.clone().or_else(|| context.connection.address.clone());
    let Some(address) = given else {
        let name = contexts.chosen(&context.connection, &context.surroundings.environment).ok_or_else(nowhere)?;
        let about = contexts.named(&name)?;
        return Ok((name, about.address.clone(), Some(about)));
    };
    let host = channel::host(&address).map_err(|error| refusal::unreachable(&error, &address))?;
    let name = context.connection.context.clone().unwrap_or(host);
    match contexts.find(&name) {
        Some(about) if about.address != address => Err(Problem::new(
            Code::Config,
            format!("the context {name} is that of another coordinator, {}", about.address),
        )
        .so("nothing was sent, and nothing was written")
        .next("take another name: --context NAME")
        .next(format!("or remove it first: holdfast context remove {name}"))
        .into()),
        known => Ok((name, address, known)),
    }
}

fn nowhere() -> Failure {
    Problem::new(Code::Config, "no coordinator is named").so("nothing was sent").next("holdfast login HOST:PORT").into()
}

/// The CA that is trusted from now on.
struct Pin {
    pem: String,
    tls: ClientTls,
}

async fn pin(
    args: &Args,
    address: &str,
    known: Option<&About>,
    server_name: Option<&str>,
    context: &mut Context,
) -> Result<Pin, Failure> {
    let file = context.connection.ca.clone();
    match (file, args.fingerprint, known) {
        (Some(file), _, _) => of_file(&file, server_name),
        (None, None, Some(known)) => of_file(&known.ca, server_name),
        (None, wanted, _) => {
            let presented = channel::presented(address, &Limits::default())
                .await
                .map_err(|error| refusal::unreachable(&error, address))?;
            let authority = match wanted {
                Some(wanted) => compared(&presented, wanted, address)?,
                None => confirmed(&presented, address, context)?,
            };
            let pem = pem::encode(&pem::Pem::new("CERTIFICATE", authority.to_vec()));
            let tls = ClientTls::from_authority(authority, server_name).map_err(|error| unusable(&error))?;
            Ok(Pin { pem, tls })
        }
    }
}

fn of_file(file: &Path, server_name: Option<&str>) -> Result<Pin, Failure> {
    let tls = ClientTls::from_files(file, None, server_name).map_err(|error| unusable(&error))?;
    let pem = std::fs::read_to_string(file).map_err(|error| {
        Problem::new(Code::Config, format!("could not read {}: {error}", file.display())).so("nothing was sent")
    })?;
    Ok(Pin { pem, tls })
}

fn unusable(error: &holdfast_net::tls::Error) -> Failure {
    Problem::new(Code::Config, error.to_string()).so("nothing was sent").into()
}

/// As openssl prints it.
fn shown(certificate: &CertificateDer<'_>) -> String {
    let digits = hex(&Sha256::digest(certificate)).to_uppercase();
    let pairs: Vec<&str> = (0..digits.len()).step_by(2).map(|at| &digits[at..at + 2]).collect();
    pairs.join(":")
}

/// The authority among what is presented: all but the coordinator's own certificate.
fn authorities<'a>(
    presented: &'a [CertificateDer<'static>],
    address: &str,
) -> Result<&'a [CertificateDer<'static>], Failure> {
    match presented {
        [_, authorities @ ..] if !authorities.is_empty() => Ok(authorities),
        _ => Err(Problem::new(Code::Config, format!("{address} presents no CA to pin, only its own certificate"))
            .so("nothing was sent, and nothing was written")
            .next("--ca FILE: the CA that signs the coordinator's certificate")
            .next("or append that CA to the file of the coordinator's `tls.cert`")
            .into()),
    }
}

fn compared(
    presented: &[CertificateDer<'static>],
    wanted: [u8; 32],
    address: &str,
) -> Result<CertificateDer<'static>, Failure> {
    let authorities = authorities(presented, address)?;
    let found = authorities.iter().find(|one| Sha256::digest(one).as_slice() == wanted);
    found.cloned().ok_or_else(|| {
        let problem = Problem::new(Code::NotConfirmed, format!("{address} presents a CA with another fingerprint"));
        authorities
            .iter()
            .fold(problem, |problem, one| problem.known(format!("it presents {}", shown(one))))
            .not_known("whether this is the coordinator, or somebody in its place")
            .so("nothing was sent, and nothing was written")
            .next("ask whoever runs the coordinator for the fingerprint of its CA")
            .into()
    })
}

fn confirmed(
    presented: &[CertificateDer<'static>],
    address: &str,
    context: &mut Context,
) -> Result<CertificateDer<'static>, Failure> {
    let authority = authorities(presented, address)?.last().expect("not empty");
    let fingerprint = shown(authority);
    if context.surroundings.interactive {
        let shown = Tone::Strong.paint(&fingerprint, context.printer.talk_terminal());
        context.printer.talk(&format!("{} presents the CA with SHA-256", one_line(address)))?;
        context.printer.talk(&format!("  {shown}"))?;
        context.printer.talk("compare it with what is printed on the coordinator's host by")?;
        context.printer.talk("  openssl x509 -noout -fingerprint -sha256 -in CA.pem")?;
        if confirm::yes("is it the same? [y/N] ", context)? {
            return Ok(authority.clone());
        }
    }
    Err(Problem::new(Code::NotConfirmed, format!("nobody confirmed the CA that {address} presents"))
        .known(format!("its SHA-256 is {fingerprint}"))
        .so("nothing was sent, and nothing was written")
        .next("--ca FILE, the CA that signs the coordinator's certificate")
        .next(format!("or, if it is the right one: --fingerprint {fingerprint}"))
        .into())
}

fn token(address: &str, context: &mut Context) -> Result<Token, Failure> {
    if let Some(file) = context.connection.token_file.clone() {
        let mut warnings = Vec::new();
        let token = Settings::token_of(&file, &mut warnings)?;
        warnings.iter().try_for_each(|warning| context.printer.talk(warning))?;
        return Ok(token);
    }
    hidden::line(&format!("token for {}: ", one_line(address)), "token", context).map(Token::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_openssl_prints_it_and_as_plain_digits() {
        let certificate = CertificateDer::from(vec![1, 2, 3]);
        let shown = shown(&certificate);
        assert_eq!(shown.len(), 64 + 31);
        let bytes: [u8; 32] = Sha256::digest([1, 2, 3]).into();
        let pin = format!("sha256:{}", shown.replace(':', "").to_lowercase());
        for text in [&shown, &pin, &shown.replace(':', ""), &format!("sha256 Fingerprint={shown}")] {
            assert_eq!(fingerprint(text), Ok(bytes), "{text}");
        }
        for bad in ["", "ab", &shown[1..], &format!("{shown}:00"), &shown.replacen('A', "G", 64).replace('0', "G")] {
            assert!(fingerprint(bad).is_err(), "{bad}");
        }
    }
}
