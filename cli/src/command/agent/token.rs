//! `holdfast agent token create|list|revoke`

use clap::Subcommand;
use holdfast_common::code::ExitCode;
use holdfast_common::id::AgentName;
use holdfast_common::text::one_line;
use holdfast_common::time::Millis;
use holdfast_proto::convert::duration_to_wire;
use holdfast_proto::v1;

use super::super::token::shows_the_secret;
use super::super::{Context, Outcome, items};
use crate::failure::Failure;
use crate::output::{Listing, Record};
use crate::settings::Settings;
use crate::view::{self, stamp};

/// What hosts join with.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a token that is good once, and show it with the whole command for the host
    Create(Create),
    /// List them, without their secrets
    List,
    /// Take one back that was not used yet
    Revoke {
        /// As `holdfast agent token list` shows it
        id: String,
    },
}

/// What a new one is to be.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// What targets select the agent by, whatever its host says; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// How long it is good, at most `7d`
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    pub ttl: Millis,
    /// The only name that may join with it
    #[arg(long, value_name = "NAME")]
    pub name: Option<AgentName>,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        Some(_) | None => Err("expected KEY=VALUE".to_owned()),
    }
}

pub(super) async fn run(command: Command, context: &mut Context) -> Outcome {
    match command {
        Command::Create(args) => create(args, context).await,
        Command::List => list(context).await,
        Command::Revoke { id } => revoke(&id, context).await,
    }
}

async fn create(args: Create, context: &mut Context) -> Outcome {
    shows_the_secret(context.printer.format())?;
    let client = context.client().await?;
    let address = Settings::find(&context.connection, &context.surroundings.environment)?.address;
    let request = v1::CreateJoinTokenRequest {
        labels: args.labels.into_iter().collect(),
        life: Some(duration_to_wire(args.ttl)),
        agent: args.name.as_ref().map(ToString::to_string).unwrap_or_default(),
    };
    let answer = client.create_join_token(request).await?;
    let token = answer.token.as_ref().ok_or(Failure::incomplete("token"))?;
    let until = stamp::near(token.expires_at.as_ref(), context.talk_canvas()).unwrap_or_default();
    let about = view::join_token_about(token);
    context
        .printer
        .talk(&format!("join token {} {about}, good once, until {until}. On the host:", one_line(&token.id)))?;
    context.printer.talk(&format!("  {}", command_line(&address, &answer.ca_fingerprint, &token.agent)))?;
    context.printer.talk("and give it this, which is shown only this once:")?;
    let whole = crate::output::answer("CreateJoinTokenResponse", &answer);
    let (name, text) = (one_line(&token.id), format!("{}\n", one_line(&answer.secret)));
    context.printer.record(&Record { whole, name, text })?;
    Ok(ExitCode::Done)
}

/// The secret is in no list of processes: it is read from the input.
fn command_line(address: &str, fingerprint: &str, name: &str) -> String {
    let trust = match fingerprint {
        "" => "--ca CA.pem".to_owned(),
        fingerprint => format!("--ca-pin sha256:{}", one_line(fingerprint)),
    };
    let name = if name.is_empty() { String::new() } else { format!(" --name {}", one_line(name)) };
    format!("holdfast-agent join --coordinator {} {trust}{name} --token-file -", one_line(address))
}

async fn list(context: &mut Context) -> Outcome {
    let answer = context.client().await?.join_tokens().await?;
    let whole = crate::output::answer("ListJoinTokensResponse", &answer);
    context.printer.listing(&Listing {
        items: items(&whole, "tokens"),
        whole,
        names: answer.tokens.iter().map(|token| one_line(&token.id)).collect(),
        table: view::join_tokens(&answer.tokens, context.canvas()),
        nothing: "no join tokens",
    })?;
    Ok(ExitCode::Done)
}

async fn revoke(id: &str, context: &mut Context) -> Outcome {
    let token = context.client().await?.revoke_join_token(id).await?;
    let name = one_line(&token.id);
    let text = match token.used_by.as_str() {
        "" => format!("the join token {name} is taken back\n"),
        by => format!("the join token {name} is taken back; {} had joined with it and stays\n", one_line(by)),
    };
    let whole = crate::output::answer("JoinToken", &token);
    context.printer.record(&Record { whole, name, text })?;
    Ok(ExitCode::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_command_has_the_pin_and_never_the_secret() {
        assert_eq!(
            command_line("deploy.example:7443", "0a", "web-01"),
            "holdfast-agent join --coordinator deploy.example:7443 --ca-pin sha256:0a --name web-01 --token-file -"
        );
        assert!(command_line("deploy.example:7443", "", "").contains("--ca CA.pem --token-file -"));
    }

    #[test]
    fn a_label_is_a_key_and_a_value() {
        assert_eq!(label("role=a=b"), Ok(("role".to_owned(), "a=b".to_owned())));
        assert!(label("role").is_err() && label("=x").is_err());
    }
}
