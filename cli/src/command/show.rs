//! `holdfast show D`

use holdfast_common::code::ExitCode;

use super::{Context, Outcome};

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// TARGET#N, a UUID, or a unique beginning of one
    pub deployment: String,
}

pub(super) async fn run(args: &Args, context: &mut Context) -> Outcome {
    let deployment = context.client().await?.deployment(&args.deployment).await?;
    context.print_deployment(&deployment)?;
    Ok(ExitCode::Done)
}
