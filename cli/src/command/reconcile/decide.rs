use clap::ValueEnum;
use holdfast_common::code::Code;
use holdfast_common::code::ExitCode;
use holdfast_common::problem::Problem;
use holdfast_common::text::one_line;
use holdfast_proto::v1::{self, DecisionKind};

use super::about;
use crate::command::confirm::Given;
use crate::command::{Context, Outcome, confirm, label};
use crate::failure::Failure;
use crate::view::{self, word};

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// TARGET#N or a UUID
    pub deployment: String,
    /// What to decide
    #[arg(long = "as", value_name = "DECISION", value_enum)]
    pub decision: Decision,
    /// Why; kept for ever
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// The target's name, instead of typing it when asked
    #[arg(long, value_name = "TARGET")]
    pub confirm: Option<String>,
    /// The evidence you were shown (`reconcile show` tells its number); refused if there is newer. Without it the
    /// checklist is shown now
    #[arg(long, value_name = "SEQ")]
    pub shown: Option<u64>,
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Decision {
    /// A new attempt, under a newer fence
    Retry,
    /// It has ended well: its changes are applied
    AcceptSucceeded,
    /// It has failed, and the target is free again
    AcceptFailed,
    /// It was cancelled, and the target is free again
    AcceptCancelled,
    /// It has failed, and a rollback of it takes the target over
    Rollback,
    /// Go on with the process that still runs, on its own agent
    Readmit,
    /// Give it up on your own word; its resources are not known then
    Abandon,
    /// Decide nothing, and keep the reason as evidence
    Note,
}

impl From<Decision> for DecisionKind {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Retry => Self::Retry,
            Decision::AcceptSucceeded => Self::AcceptSucceeded,
            Decision::AcceptFailed => Self::AcceptFailed,
            Decision::AcceptCancelled => Self::AcceptCancelled,
            Decision::Rollback => Self::Rollback,
            Decision::Readmit => Self::Readmit,
            Decision::Abandon => Self::Abandon,
            Decision::Note => Self::Note,
        }
    }
}

pub(super) async fn run(args: Args, context: &mut Context) -> Outcome {
    let client = context.client().await?;
    let list = client.reconciliation(&args.deployment).await?;
    let about = about(&list)?;
    let kind = DecisionKind::from(args.decision);
    open(&list, kind, &one_line(&about.label))?;
    let given =
        Given { what: "target", name: args.confirm.as_deref(), reason: args.reason.as_deref(), option: "--reason" };
    if args.decision != Decision::Note {
        confirm::possible(given, &about.target, context)?;
    }
    if args.shown.is_none() {
        let text = view::reconciliation(&list, context.talk_canvas());
        context.printer.talk(text.trim_end())?;
    }
    let confirm = match args.decision {
        Decision::Note => String::new(),
        Decision::Retry
        | Decision::AcceptSucceeded
        | Decision::AcceptFailed
        | Decision::AcceptCancelled
        | Decision::Rollback
        | Decision::Readmit
        | Decision::Abandon => confirm::name(given, &about.target, &consequences(&list, kind, &about), context)?,
    };
    let request = v1::DecideRequest {
        deployment: args.deployment,
        kind: kind as i32,
        reason: confirm::reason(args.reason, "--reason", "why? ", context)?,
        evidence_sequence: args.shown.unwrap_or(list.evidence_sequence),
        confirm,
    };
    let answer = client.decide(request).await?;
    let deployment = answer.deployment.ok_or(Failure::incomplete("deployment"))?;
    context.print_deployment(&deployment)?;
    if let Some(rollback) = answer.rollback.as_ref().map(|rollback| one_line(&label(rollback))) {
        context
            .printer
            .talk(&format!("{rollback} goes back over it, and holds the target now: holdfast watch {rollback}"))?;
    }
    Ok(ExitCode::Done)
}

fn option(list: &v1::Reconciliation, kind: DecisionKind) -> Option<&v1::DecisionOption> {
    list.options.iter().find(|option| option.kind == kind as i32)
}

/// Nobody is asked to type a name for a decision that the checklist does not allow.
fn open(list: &v1::Reconciliation, kind: DecisionKind, label: &str) -> Result<(), Failure> {
    let Some(option) = option(list, kind).filter(|option| !option.allowed) else { return Ok(()) };
    let word = word::decision(kind as i32);
    Err(Problem::new(Code::DecisionNotOpen, format!("{word} is not open for {label}: {}", one_line(&option.why_not)))
        .so("nothing was decided, and nothing was changed")
        .next(format!("holdfast reconcile show {label}"))
        .with("deployment", label)
        .with("decision", word)
        .into())
}

fn consequences(list: &v1::Reconciliation, kind: DecisionKind, about: &v1::DeploymentSummary) -> Vec<String> {
    let leads_to = option(list, kind).map(|option| one_line(&option.leads_to)).unwrap_or_default();
    vec![
        format!("deciding {} for {}: {leads_to}", word::decision(kind as i32), one_line(&about.label)),
        "the decision is kept for ever with your name, its reason and the evidence".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(allowed: bool) -> v1::Reconciliation {
        let option = v1::DecisionOption {
            kind: DecisionKind::Retry as i32,
            allowed,
            why_not: "the runner is not known to be out".to_owned(),
            leads_to: "a new attempt".to_owned(),
        };
        v1::Reconciliation { options: vec![option], ..v1::Reconciliation::default() }
    }

    #[test]
    fn a_decision_that_is_not_open_is_refused_with_the_reason_of_the_checklist() {
        let failure = open(&list(false), DecisionKind::Retry, "shop@prod#12").expect_err("not open");
        let problem = failure.problem().expect("a refusal");
        assert_eq!(problem.code, Code::DecisionNotOpen);
        assert!(problem.title.ends_with("the runner is not known to be out"), "{problem}");
        assert!(open(&list(true), DecisionKind::Retry, "shop@prod#12").is_ok());
    }

    #[test]
    fn what_the_checklist_does_not_name_is_left_to_the_coordinator() {
        assert!(open(&list(false), DecisionKind::Rollback, "shop@prod#12").is_ok());
    }
}
