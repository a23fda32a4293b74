//! `holdfast watch D`

use holdfast_common::code::ExitCode;
use holdfast_common::id::RequestId;
use holdfast_common::text::one_line;
use holdfast_common::time::Millis;
use holdfast_proto::v1;

use super::watching::{Ended, Voice, Watching, conclude};
use super::{Context, Outcome, label, record};
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

/// What was asked for under a request id, as it is on record.
pub(super) struct Recorded {
    pub(super) deployment: v1::Deployment,
    /// It had been recorded before.
    pub(super) existed: bool,
    pub(super) request: RequestId,
}

/// Says that it is on record, and watches it unless detached.
pub(super) async fn recorded(
    client: Client,
    recorded: &Recorded,
    detach: bool,
    timeout: Option<Millis>,
    context: &mut Context,
) -> Outcome {
    let Recorded { deployment, existed, request } = recorded;
    let name = one_line(&label(deployment));
    let was = if *existed { "was recorded before under" } else { "is recorded under" };
    context.printer.talk(&format!("{name} {was} request id {request}"))?;
    if detach {
        context.printer.record(&record("Deployment", deployment, name.clone(), format!("{name}\n")))?;
        return Ok(ExitCode::Done);
    }
    follow(client, deployment, timeout, context).await
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
