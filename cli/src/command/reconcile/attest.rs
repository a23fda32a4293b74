use clap::ValueEnum;
use holdfast_common::code::{Code, ExitCode};
use holdfast_common::problem::Problem;
use holdfast_common::text::one_line;
use holdfast_proto::v1::{self, AttestedRunner, AttestedTarget};

use super::about;
use crate::command::confirm::Given;
use crate::command::{Context, Outcome, confirm, file, record};
use crate::failure::Failure;
use crate::view;

/// Largest file that goes into one message with the rest.
const MAX_ATTACHMENT: usize = 3 * 1024 * 1024;

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// TARGET#N or a UUID
    pub deployment: String,
    /// What you know of whoever might still be changing the target
    #[arg(long, value_enum)]
    pub runner: Option<Runner>,
    /// What you saw at the target
    #[arg(long, value_name = "STATE", value_enum)]
    pub target_state: Option<TargetState>,
    /// The revision you saw there
    #[arg(long, value_name = "REVISION")]
    pub observed: Option<String>,
    /// How you know; kept for ever
    #[arg(long, value_name = "TEXT")]
    pub how: Option<String>,
    /// A file to keep with it, like a photograph of a screen
    #[arg(long, value_name = "FILE")]
    pub evidence: Option<String>,
    /// The target's name, instead of typing it when asked
    #[arg(long, value_name = "TARGET")]
    pub confirm: Option<String>,
}

/// What a person can know of a runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Runner {
    /// It has ended, and its effect with it
    Stopped,
    /// Its host is gone for good
    HostGone,
}

/// What a person can see at a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TargetState {
    /// The whole change is there
    Applied,
    /// Nothing of it is there
    NotApplied,
    /// A part of it is there
    Partial,
}

impl From<Runner> for AttestedRunner {
    fn from(runner: Runner) -> Self {
        match runner {
            Runner::Stopped => Self::Stopped,
            Runner::HostGone => Self::HostGone,
        }
    }
}

impl From<TargetState> for AttestedTarget {
    fn from(state: TargetState) -> Self {
        match state {
            TargetState::Applied => Self::Applied,
            TargetState::NotApplied => Self::NotApplied,
            TargetState::Partial => Self::Partial,
        }
    }
}

pub(super) async fn run(args: Args, context: &mut Context) -> Outcome {
    let attachment = match &args.evidence {
        Some(name) => attachment(name, context)?,
        None => Vec::new(),
    };
    let client = context.client().await?;
    let about = about(&client.reconciliation(&args.deployment).await?)?;
    let (Some(runner), Some(target_state)) = (args.runner, args.target_state) else {
        return Err(says_too_little(&about));
    };
    let given = Given { what: "target", name: args.confirm.as_deref(), reason: args.how.as_deref(), option: "--how" };
    let confirm = confirm::name(given, &about.target, &consequences(&about), context)?;
    let request = v1::AttestRequest {
        deployment: args.deployment,
        runner: AttestedRunner::from(runner) as i32,
        target_state: AttestedTarget::from(target_state) as i32,
        observed_revision: args.observed.unwrap_or_default(),
        how: confirm::reason(args.how, "--how", "how do you know? ", context)?,
        attachment,
        confirm,
    };
    let piece = client.attest(request).await?;
    let text = view::one_evidence(&piece, context.canvas());
    context.printer.record(&record("Evidence", &piece, one_line(&piece.id), text))?;
    context.printer.talk(&format!("holdfast reconcile show {} tells what that opens", one_line(&about.label)))?;
    Ok(ExitCode::Done)
}

/// What waits for a revision has no attempt that anything could be said of: that one is attested of its target.
fn says_too_little(about: &v1::DeploymentSummary) -> Failure {
    let (label, target) = (one_line(&about.label), one_line(&about.target));
    let title = format!("an attestation on {label} says how its runner and its target stand");
    Problem::new(Code::InvalidValue, title)
        .known(one_line(&about.because))
        .so("nothing was sent, and nothing was changed")
        .next("--runner stopped|host-gone --target-state applied|not-applied|partial, after looking at both")
        .next(format!(
            "holdfast target attest {target} --resource R --observed REV --how TEXT --confirm {target}, for the revision of \
             a resource alone"
        ))
        .with("deployment", label)
        .into()
}

fn attachment(name: &str, context: &mut Context) -> Result<Vec<u8>, Failure> {
    let bytes = file::bytes(name, MAX_ATTACHMENT, context)?;
    if bytes.len() <= MAX_ATTACHMENT {
        return Ok(bytes);
    }
    let title =
        format!("{} has more than {MAX_ATTACHMENT} bytes, so it can't be kept with the attestation", one_line(name));
    Err(Problem::new(Code::TooLarge, title).so("nothing was sent").next("attach a smaller file").into())
}

fn consequences(about: &v1::DeploymentSummary) -> Vec<String> {
    vec![
        format!("attesting for {}: Holdfast can't check it, and goes by your word from now on", one_line(&about.label)),
        "if the old attempt is still at work after all, what follows can meet it at the target".to_owned(),
        "it is kept and shown as your attestation for ever".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_a_revision_is_told_where_to_attest_that_alone() {
        let about = v1::DeploymentSummary {
            label: "shop@prod#13".to_owned(),
            target: "shop@prod".to_owned(),
            because: "the revision of db is unknown".to_owned(),
            ..v1::DeploymentSummary::default()
        };
        let failure = says_too_little(&about);
        let problem = failure.problem().expect("a refusal");
        assert_eq!((problem.code, failure.exit()), (Code::InvalidValue, ExitCode::Usage));
        assert_eq!(problem.known, ["the revision of db is unknown"]);
        assert!(
            problem.next[1].starts_with("holdfast target attest shop@prod --resource R --observed REV"),
            "{problem}"
        );
    }
}
