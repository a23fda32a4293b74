//! `holdfast whoami`

use holdfast_common::code::ExitCode;
use holdfast_common::text::one_line;

use super::{Context, Outcome, record};
use crate::view::{self, stamp};

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub(super) async fn run(_: &Args, context: &mut Context) -> Outcome {
    let settings = context.settings()?;
    let client = context.client().await?;
    let me = client.who_am_i().await?;
    let until = stamp::near(me.expires_at.as_ref(), context.canvas())
        .map_or_else(|| "its token has no known end".to_owned(), |at| format!("its token ends {at}"));
    let position = me.position.clone().unwrap_or_default();
    let text = format!(
        "{} ({}); {until}\nat {}, said by {}; the token by {}\ncoordinator {}, store {}, epoch {}, commit {}\n",
        one_line(&me.operator),
        view::grants(&me.grants),
        one_line(&settings.address),
        settings.address_from,
        settings.token_from,
        one_line(&me.coordinator_version),
        one_line(&position.store),
        position.epoch,
        position.commit
    );
    context.printer.record(&record("WhoAmIResponse", &me, me.operator.clone(), text))?;
    Ok(ExitCode::Done)
}
