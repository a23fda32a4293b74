use holdfast_common::code::Code;
use holdfast_common::problem::Problem;
use holdfast_common::text::one_line;
use holdfast_common::time::Millis;
use holdfast_proto::v1;

use super::{about, answered, asked};
use crate::command::confirm::Given;
use crate::command::{Context, Outcome, confirm};
use crate::failure::Failure;

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// TARGET#N or a UUID
    pub deployment: String,
    /// The target's name, instead of typing it when asked
    #[arg(long, value_name = "TARGET")]
    pub confirm: Option<String>,
    /// Why; kept with the record
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

pub(super) async fn run(args: Args, context: &mut Context) -> Outcome {
    let client = context.client().await?;
    let list = client.reconciliation(&args.deployment).await?;
    let about = about(&list)?;
    can(&list, &one_line(&about.label))?;
    let given =
        Given { what: "target", name: args.confirm.as_deref(), reason: args.reason.as_deref(), option: "--reason" };
    let confirm = confirm::name(given, &about.target, &consequences(&list), context)?;
    let reason = confirm::reason(args.reason, "--reason", "why? ", context)?;
    let request = v1::FenceOffDeploymentRequest { deployment: args.deployment.clone(), confirm, reason, wait: None };
    let v1::FenceOffDeploymentResponse { inquiry, .. } = client.fence_off(request, Millis(0)).await?;
    let found = asked::answer(&client, &args.deployment, &inquiry, context).await?;
    let answer = v1::FenceOffDeploymentResponse { inquiry, answer: found };
    answered("FenceOffDeploymentResponse", &answer, answer.answer.as_ref(), &args.deployment, context)
}

/// Nobody is asked to type a name for what no fence can do.
fn can(list: &v1::Reconciliation, label: &str) -> Result<(), Failure> {
    if list.open_steps.is_empty() || list.open_steps.iter().any(|step| step.can_fence_off) {
        return Ok(());
    }
    let steps: Vec<String> = list
        .open_steps
        .iter()
        .map(|step| format!("step {} at {}", one_line(&step.step), one_line(&step.resource)))
        .collect();
    Err(Problem::new(Code::CannotFenceOff, format!("nothing of {label} can be fenced off: {}", steps.join(", ")))
        .known("what it does there is compared with no fence: a higher one would not stop it")
        .so("nothing was sent, and nothing was changed")
        .next(format!("holdfast reconcile show {label}"))
        .next(format!(
            "holdfast reconcile attest {label} --runner ... --target-state ... --how TEXT --confirm TARGET, where a person \
             knows that the runner is out"
        ))
        .with("deployment", label)
        .into())
}

fn consequences(list: &v1::Reconciliation) -> Vec<String> {
    let each = list.open_steps.iter().map(|step| {
        format!(
            "fencing off: {} will refuse step {} of the attempt on {} under fence {}, even if it is still at work",
            one_line(&step.resource),
            one_line(&step.step),
            one_line(&step.agent),
            one_line(&step.fence_text)
        )
    });
    each.chain(["what it changed before stays as it is, and this can't be taken back".to_owned()]).collect()
}
