//! `holdfast wait D --for terminal|settled`

use holdfast_common::time::Millis;

use super::watching::{Ended, Voice, Watching, conclude};
use super::{Context, Outcome};
use crate::outcome::Goal;

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
            conclude(&deployment, context)?;
            Ok(rest.exit())
        }
        Ended::Left(code) => Ok(code),
    }
}
