//! `holdfast cancel D --reason TEXT`

use holdfast_common::code::ExitCode;
use holdfast_common::text::one_line;
use holdfast_common::time::Millis;
use holdfast_proto::v1::{self, CancelAnswer, DeploymentState};

use super::watching::{Ended, Voice, Watching};
use super::{Context, Outcome, confirm, label};
use crate::failure::Failure;
use crate::outcome::Goal;
use crate::output::Record;
use crate::view;

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// TARGET#N or a UUID
    pub deployment: String,
    /// Why; kept with the request
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Show the five stages, and wait for what is observed
    #[arg(long)]
    pub wait: bool,
    /// With --wait: stop waiting after this time, like `5m`; the request stands
    #[arg(long, value_name = "DURATION", requires = "wait")]
    pub timeout: Option<Millis>,
}

pub(super) async fn run(args: Args, context: &mut Context) -> Outcome {
    let reason = confirm::reason(args.reason, "--reason", "why? ", context)?;
    let client = context.client().await?;
    let answer = client.cancel(&args.deployment, &reason).await?;
    let deployment = answer.deployment.clone().ok_or(Failure::incomplete("deployment"))?;
    let state = deployment.summary.as_ref().map_or(0, |summary| summary.state);
    context.printer.talk(&said(answer.answer, state, &one_line(&label(&deployment))))?;
    if !args.wait {
        print("CancelDeploymentResponse", &answer, &deployment, context)?;
        return Ok(ExitCode::Done);
    }
    let about = deployment.summary.unwrap_or_default();
    let watching = Watching {
        client,
        id: about.id,
        label: about.label,
        goal: Goal::Settled,
        voice: Voice::Stages,
        timeout: args.timeout,
    };
    match watching.run(context).await? {
        Ended::AtRest(deployment, rest) => {
            print("Deployment", &*deployment, &deployment, context)?;
            Ok(rest.exit_of_cancel())
        }
        Ended::Left(code) => Ok(code),
    }
}

fn said(answer: i32, state: i32, label: &str) -> String {
    match CancelAnswer::try_from(answer) {
        Ok(CancelAnswer::Recorded) => format!("the request to stop {label} is on record; {}", follows(state, label)),
        Ok(CancelAnswer::Cancelled) => format!("{label} had not begun, and is cancelled"),
        Ok(CancelAnswer::TooLate) => format!("{label} had ended before; the request is kept in its history"),
        Ok(CancelAnswer::Unspecified) | Err(_) => format!("the request to stop {label} was answered"),
    }
}

/// What a request can come to where the deployment stands.
fn follows(state: i32, label: &str) -> String {
    match DeploymentState::try_from(state) {
        Ok(DeploymentState::Held) => {
            format!("nothing of it runs any more, and what it left needs a decision: holdfast reconcile show {label}")
        }
        Ok(DeploymentState::Uncertain) => format!(
            "its agent is told when it comes back, and whether anything stops is not known: holdfast reconcile show {label}"
        ),
        Ok(
            DeploymentState::Queued
            | DeploymentState::Active
            | DeploymentState::Succeeded
            | DeploymentState::Failed
            | DeploymentState::Cancelled
            | DeploymentState::Unspecified,
        )
        | Err(_) => "whether it stops is not known yet".to_owned(),
    }
}

fn print<M: prost::Message>(
    kind: &str,
    message: &M,
    deployment: &v1::Deployment,
    context: &mut Context,
) -> Result<(), Failure> {
    let canvas = context.canvas();
    let timeline = deployment.cancellation.as_ref().map(|cancel| view::cancellation(deployment, cancel, canvas));
    let text = timeline.unwrap_or_default() + &view::summary(deployment, canvas);
    let whole = crate::output::answer(kind, message);
    Ok(context.printer.record(&Record { whole, name: one_line(&label(deployment)), text })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_can_come_to_depends_on_where_the_deployment_stands() {
        let recorded = |state: DeploymentState| said(CancelAnswer::Recorded as i32, state as i32, "shop@prod#12");
        assert!(recorded(DeploymentState::Active).ends_with("whether it stops is not known yet"));
        let held = recorded(DeploymentState::Held);
        assert!(held.contains("nothing of it runs any more") && !held.contains("not known"), "{held}");
        assert!(recorded(DeploymentState::Uncertain).contains("when it comes back"));
        assert!(said(CancelAnswer::Cancelled as i32, 0, "x").contains("had not begun"));
    }
}
