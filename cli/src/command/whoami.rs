//! `holdfast whoami`

use holdfast_common::code::ExitCode;
use holdfast_common::text::one_line;

use super::{Context, Outcome, record};
use crate::view::{self, stamp};

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub(super) async fn run(_: &Args, context: &mut Context) -> Outcome {
    let client = context.client().await?;
    let me = client.who_am_i().await?;
    let until = stamp::near(me.expires_at.as_ref(), context.canvas())
        .map_or_else(|| "its token has no known end".to_owned(), |at| format!("its token ends {at}"));
    let position = me.position.clone().unwrap_or_default();
    let text = format!(
        "{} ({}); {until}\ncoordinator {}, store {}, epoch {}, commit {}\n",
        one_line(&me.operator),
        view::grants(&me.grants),
        one_line(&me.coordinator_version),
        one_line(&position.store),
        position.epoch,
        position.commit
    );
    context.printer.record(&record("WhoAmIResponse", &me, me.operator.clone(), text))?;
    Ok(ExitCode::Done)
}
