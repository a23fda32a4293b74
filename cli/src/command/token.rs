//! `holdfast token create|list|revoke`

use clap::Subcommand;
use holdfast_common::code::{Code, ExitCode};
use holdfast_common::problem::Problem;
use holdfast_common::text::one_line;
use holdfast_common::time::Millis;
use holdfast_proto::convert::duration_to_wire;
use holdfast_proto::v1;

use super::{Context, Outcome, items};
use crate::failure::Failure;
use crate::output::{Format, Listing, Record};
use crate::view::{self, stamp, word};

/// Operators' tokens, within what your own allows.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make a token, and show its secret once
    Create(Create),
    /// List the tokens that you may manage, without their secrets
    List,
    /// Take a token back: it opens nothing any more, and its live streams end within seconds
    Revoke {
        /// The operator it stands for
        name: String,
    },
}

/// What a new token is to be.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// The operator, person or program, that it stands for
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// A role, and the targets on which it counts: `viewer`, `operator:shop@*`; may be repeated. Roles: viewer, deployer,
    /// approver, reconciler, operator, auditor, admin (`holdfast explain ROLE`)
    #[arg(long = "role", value_name = "ROLE[:PATTERN]", value_parser = grant, required = true)]
    pub roles: Vec<v1::Grant>,
    /// How long it lives, like `12h`
    #[arg(long, value_name = "DURATION", default_value = "30d")]
    pub ttl: Millis,
}

fn grant(text: &str) -> Result<v1::Grant, String> {
    let (role, targets) = text.split_once(':').unwrap_or((text, "*"));
    let known =
        (1..).map(|number| (number, word::role(number))).take_while(|(number, _)| v1::Role::try_from(*number).is_ok());
    let number = known.into_iter().find(|(_, word)| word == role).map(|(number, _)| number);
    match (number, targets) {
        (None, _) => Err(format!("{role:?} is not a role")),
        (Some(_), "") => Err("the pattern of targets is empty".to_owned()),
        (Some(role), targets) => Ok(v1::Grant { role, targets: targets.to_owned() }),
    }
}

pub(super) async fn run(command: Command, context: &mut Context) -> Outcome {
    match command {
        Command::Create(args) => create(args, context).await,
        Command::List => list(context).await,
        Command::Revoke { name } => revoke(&name, context).await,
    }
}

/// The secret is shown only once: nothing is made where it would not be shown at all.
pub(super) fn shows_the_secret(format: Format) -> Result<(), Failure> {
    match format {
        Format::Table | Format::Json | Format::Jsonl => Ok(()),
        Format::Name => Err(Problem::new(
            Code::InvalidValue,
            "-o name would leave out the token's secret, which is shown only once",
        )
        .so("nothing was made")
        .next("leave out -o name: without it stdout is the secret alone")
        .next("or --json, whose \"secret\" it is")
        .into()),
    }
}

async fn create(args: Create, context: &mut Context) -> Outcome {
    shows_the_secret(context.printer.format())?;
    let client = context.client().await?;
    let request =
        v1::CreateTokenRequest { name: args.name, grants: args.roles, life: Some(duration_to_wire(args.ttl)) };
    let answer = client.create_token(request).await?;
    let token = answer.token.as_ref().ok_or(Failure::incomplete("token"))?;
    let name = one_line(&token.name);
    let until = stamp::near(token.expires_at.as_ref(), context.talk_canvas()).unwrap_or_default();
    let grants = view::grants(&token.grants);
    context
        .printer
        .talk(&format!("the token of {name} ({grants}), good until {until}; it is shown only this once:"))?;
    let whole = crate::output::answer("CreateTokenResponse", &answer);
    context.printer.record(&Record { whole, name, text: format!("{}\n", one_line(&answer.secret)) })?;
    Ok(ExitCode::Done)
}

async fn list(context: &mut Context) -> Outcome {
    let answer = context.client().await?.tokens().await?;
    let whole = crate::output::answer("ListTokensResponse", &answer);
    context.printer.listing(&Listing {
        items: items(&whole, "tokens"),
        whole,
        names: answer.tokens.iter().map(|token| one_line(&token.name)).collect(),
        table: view::tokens(&answer.tokens, context.canvas()),
        nothing: "no tokens that you may manage",
    })?;
    Ok(ExitCode::Done)
}

async fn revoke(name: &str, context: &mut Context) -> Outcome {
    let token = context.client().await?.revoke_token(name).await?;
    let name = one_line(&token.name);
    let text = format!("the token of {name} is revoked; what it was watching ends within seconds\n");
    let whole = crate::output::answer("Token", &token);
    context.printer.record(&Record { whole, name, text })?;
    Ok(ExitCode::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_token_is_made_whose_secret_would_not_be_shown() {
        for format in [Format::Table, Format::Json, Format::Jsonl] {
            assert!(shows_the_secret(format).is_ok(), "{format:?}");
        }
        let failure = shows_the_secret(Format::Name).expect_err("the secret would be lost");
        let problem = failure.problem().expect("a refusal");
        assert_eq!(problem.code, Code::InvalidValue);
        assert!(problem.to_string().contains("nothing was made"), "{problem}");
    }

    #[test]
    fn a_role_may_name_its_targets_and_counts_on_all_of_them_without() {
        let everywhere = v1::Grant { role: v1::Role::Admin as i32, targets: "*".to_owned() };
        assert_eq!(grant("admin"), Ok(everywhere));
        let some = v1::Grant { role: v1::Role::Auditor as i32, targets: "shop@*".to_owned() };
        assert_eq!(grant("auditor:shop@*"), Ok(some));
        for bad in ["", "root", "admin:", "not told", "Admin"] {
            assert!(grant(bad).is_err(), "{bad:?}");
        }
    }
}
