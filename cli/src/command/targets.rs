//! `holdfast targets`

use holdfast_common::code::ExitCode;
use holdfast_common::text::one_line;

use super::{Context, Outcome, items};
use crate::output::Listing;
use crate::view;

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub(super) async fn run(_: &Args, context: &mut Context) -> Outcome {
    let answer = context.client().await?.targets().await?;
    let whole = crate::output::answer("ListTargetsResponse", &answer);
    context.printer.listing(&Listing {
        items: items(&whole, "targets"),
        whole,
        names: answer.targets.iter().map(|target| one_line(&target.name)).collect(),
        table: view::targets(&answer.targets, context.canvas()),
        nothing: "no targets: holdfast target apply FILE declares one",
    })?;
    Ok(ExitCode::Done)
}
