//! `holdfast agents`

use holdfast_common::code::ExitCode;
use holdfast_common::text::one_line;

use super::{Context, Outcome, items};
use crate::output::Listing;
use crate::view;

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {}

pub(super) async fn run(_: &Args, context: &mut Context) -> Outcome {
    let answer = context.client().await?.agents().await?;
    let whole = crate::output::answer("ListAgentsResponse", &answer);
    context.printer.listing(&Listing {
        items: items(&whole, "agents"),
        whole,
        names: answer.agents.iter().map(|agent| one_line(&agent.name)).collect(),
        table: view::agents(&answer.agents, context.canvas()),
        nothing: "no agents",
    })?;
    Ok(ExitCode::Done)
}
