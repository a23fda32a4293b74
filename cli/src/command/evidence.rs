//! `holdfast evidence D`

use holdfast_common::code::ExitCode;
use holdfast_common::text::one_line;

use super::{Context, Outcome, items};
use crate::output::Listing;
use crate::view;

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// TARGET#N, a UUID, or a unique beginning of one
    pub deployment: String,
}

pub(super) async fn run(args: &Args, context: &mut Context) -> Outcome {
    let answer = context.client().await?.evidence(&args.deployment).await?;
    let whole = crate::output::answer("ListEvidenceResponse", &answer);
    context.printer.listing(&Listing {
        items: items(&whole, "evidence"),
        whole,
        names: answer.evidence.iter().map(|piece| one_line(&piece.id)).collect(),
        table: view::evidence(&answer.evidence, context.canvas()),
        nothing: "no evidence",
    })?;
    Ok(ExitCode::Done)
}
