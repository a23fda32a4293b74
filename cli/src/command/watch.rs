//! `holdfast watch D`

use holdfast_common::time::Millis;
use holdfast_proto::v1;

use super::watching::{Ended, Voice, Watching, conclude};
use super::{Context, Outcome};
use crate::client::Client;
use crate::outcome::Goal;

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// TARGET#N, a UUID, or a unique beginning of one
    pub deployment: String,
    /// Stop watching after this time, like `5m`; the deployment goes on
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<Millis>,
}

pub(super) async fn run(args: Args, context: &mut Context) -> Outcome {
    let client = context.client().await?;
    let deployment = client.deployment(&args.deployment).await?;
    follow(client, &deployment, args.timeout, context).await
}

/// Watches to where somebody must act or it has ended.
pub(super) async fn follow(
    client: Client,
    deployment: &v1::Deployment,
    timeout: Option<Millis>,
    context: &mut Context,
) -> Outcome {
    let about = deployment.summary.clone().unwrap_or_default();
    let watching =
        Watching { client, id: about.id, label: about.label, goal: Goal::Settled, voice: Voice::Events, timeout };
    match watching.run(context).await? {
        Ended::AtRest(deployment, rest) => {
            conclude(&deployment, context)?;
            Ok(rest.exit())
        }
        Ended::Left(code) => Ok(code),
    }
}
