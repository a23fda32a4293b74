//! `holdfast agent remove|revoke`

use holdfast_common::code::ExitCode;
use holdfast_common::text::one_line;
use holdfast_proto::v1;

use super::super::confirm::{self, Given};
use super::super::{Context, Outcome};
use crate::output::Record;

/// What a removal takes.
#[derive(Debug, clap::Args)]
pub struct Remove {
    /// The agent
    pub name: String,
    /// Its name once more, instead of typing it when asked
    #[arg(long, value_name = "NAME")]
    pub confirm: Option<String>,
    /// Why; recorded for ever
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// What a revocation takes.
#[derive(Debug, clap::Args)]
pub struct Revoke {
    /// SHA-256 of the certificate, as `holdfast agents` and `openssl x509 -fingerprint -sha256` show it
    #[arg(long, value_name = "SHA256", value_parser = fingerprint)]
    pub fingerprint: String,
    /// The name of the agent whose it is, instead of typing it when asked
    #[arg(long, value_name = "NAME")]
    pub confirm: Option<String>,
    /// Why; recorded for ever
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

fn fingerprint(text: &str) -> Result<String, String> {
    let digits = text.rsplit_once('=').map_or(text, |(_, digits)| digits);
    let digits = digits.strip_prefix("sha256:").unwrap_or(digits);
    let digits: String = digits.trim().chars().filter(|c| *c != ':').collect::<String>().to_ascii_lowercase();
    let sound = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if sound { Ok(digits) } else { Err("a SHA-256 has 64 hexadecimal digits".to_owned()) }
}

pub(super) async fn remove(args: Remove, context: &mut Context) -> Outcome {
    let given =
        Given { what: "agent", name: args.confirm.as_deref(), reason: args.reason.as_deref(), option: "--reason" };
    confirm::possible(given, &args.name, context)?;
    confirm::name(given, &args.name, &consequences(&args.name), context)?;
    let reason = confirm::reason(args.reason, "--reason", "why? ", context)?;
    let request = v1::RemoveAgentRequest { agent: args.name.clone(), confirm: args.name, reason };
    let agent = context.client().await?.remove_agent(request).await?;
    let name = one_line(&agent.name);
    let text = format!(
        "{name} is removed: its certificates open nothing any more\n\
         what runs on its host was not touched and goes on; its leases lapse, and nothing that it holds is free by this\n\
         if the host is to come back: holdfast agent token create\n"
    );
    let whole = crate::output::answer("Agent", &agent);
    context.printer.record(&Record { whole, name, text })?;
    Ok(ExitCode::Done)
}

fn consequences(name: &str) -> Vec<String> {
    let name = one_line(name);
    vec![
        format!("no certificate of {name} opens anything any more, and its session ends at once"),
        "what runs on its host goes on; what it would report is refused and recorded; nothing that it holds is free by this"
            .to_owned(),
    ]
}

pub(super) async fn revoke(args: Revoke, context: &mut Context) -> Outcome {
    let reason = confirm::reason(args.reason, "--reason", "why? ", context)?;
    let agents = context.client().await?.agents().await?.agents;
    // One that is not shown any more belongs to somebody too: whose, the coordinator knows, and asks for the name.
    let confirm = match agents.iter().find(|agent| agent.fingerprint == args.fingerprint) {
        Some(agent) => {
            let name = args.confirm.as_deref();
            let given = Given { what: "agent", name, reason: Some(&reason), option: "--reason" };
            confirm::name(given, &agent.name, &ends(agent), context)?
        }
        None => args.confirm.unwrap_or_default(),
    };
    let request = v1::RevokeCertificateRequest { fingerprint: args.fingerprint.clone(), reason, confirm };
    let answer = context.client().await?.revoke_certificate(request).await?;
    let text = match answer.agent.as_str() {
        "" => "no certificate with this fingerprint was seen yet; it opens nothing if it is shown\n".to_owned(),
        agent => format!(
            "the certificate is revoked and opens nothing any more; it was {}'s, which goes on with any other that it has\n",
            one_line(agent)
        ),
    };
    let whole = crate::output::answer("RevokeCertificateResponse", &answer);
    context.printer.record(&Record { whole, name: args.fingerprint, text })?;
    Ok(ExitCode::Done)
}

fn ends(agent: &v1::Agent) -> Vec<String> {
    let name = one_line(&agent.name);
    vec![
        format!("the certificate that {name} shows opens nothing any more, and its session ends at once"),
        format!("{name} goes on with another one, if it has one; else nobody hears of it until it has joined anew"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_it_is_shown_anywhere() {
        let digits = "0a".repeat(32);
        let pairs = ["0A"; 32].join(":");
        for text in [digits.clone(), format!("sha256:{digits}"), format!("sha256 Fingerprint={pairs}")] {
            assert_eq!(fingerprint(&text), Ok(digits.clone()), "{text}");
        }
        assert!(fingerprint("0a").is_err());
    }
}
