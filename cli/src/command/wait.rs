//! `holdfast wait D --for terminal|settled`: the exit code tells. Only a format that is asked for prints the deployment.

use holdfast_common::time::Millis;

use super::watching::{Ended, Voice, Watching, conclude};
use super::{Context, Outcome};
use crate::outcome::Goal;
use crate::output::Format;

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// TARGET#N, a UUID, or a unique beginning of one
    pub deployment: String,
    /// What to wait for
    #[arg(long = "for", value_name = "GOAL", value_enum, default_value_t)]
    pub goal: Goal,
    /// Stop waiting after this time, like `5m`; the deployment goes on
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<Millis>,
}

pub(super) async fn run(args: Args, context: &mut Context) -> Outcome {
    let client = context.client().await?;
    let about = client.deployment(&args.deployment).await?.summary.unwrap_or_default();
    let watching = Watching {
        client,
        id: about.id,
        label: about.label,
        goal: args.goal,
        voice: Voice::Silent,
        timeout: args.timeout,
    };
    match watching.run(context).await? {
        Ended::AtRest(deployment, rest) => {
            if !is_silent(context.printer.format()) {
                conclude(&deployment, context)?;
            }
            Ok(rest.exit())
        }
        Ended::Left(code) => Ok(code),
    }
}

/// Whether the exit code is the whole answer. Who asks for a format wants something to read.
fn is_silent(format: Format) -> bool {
    match format {
        Format::Table => true,
        Format::Json | Format::Jsonl | Format::Name => false,
    }
}
