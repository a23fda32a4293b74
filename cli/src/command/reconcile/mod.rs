//! `holdfast reconcile list|show|inspect|fence-off|decide|attest`

mod asked;
mod attest;
mod decide;
mod fence_off;
mod inspect;

use clap::Subcommand;
use holdfast_common::code::ExitCode;
use holdfast_common::text::one_line;
use holdfast_proto::v1::{self, DeploymentState};

use super::{Context, Outcome, list, record};
use crate::failure::Failure;
use crate::view;

const NEED_SOMEBODY: [DeploymentState; 2] = [DeploymentState::Uncertain, DeploymentState::Held];
const MOST: usize = 1000;

/// Finding out what happened, and deciding.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List what is uncertain or held: somebody must decide
    List,
    /// Show the checklist: runner, target, relation, and each decision allowed or why not
    Show {
        /// TARGET#N, a UUID, or a unique beginning of one
        deployment: String,
    },
    /// Have the open step's resource read; changes nothing there
    Inspect {
        /// TARGET#N or a UUID
        deployment: String,
    },
    /// Raise the open step's resource above the old attempt, so that it can change nothing more there (severe)
    FenceOff(fence_off::Args),
    /// Decide on what is known (severe, except `note`)
    Decide(decide::Args),
    /// Put on record what you saw yourself; it stays your word for ever (severe)
    Attest(attest::Args),
}

pub(super) async fn run(command: Command, context: &mut Context) -> Outcome {
    match command {
        Command::List => list::print("", &NEED_SOMEBODY, MOST, "nothing waits for a decision", context).await,
        Command::Show { deployment } => show(&deployment, context).await,
        Command::Inspect { deployment } => inspect::run(&deployment, context).await,
        Command::FenceOff(args) => fence_off::run(args, context).await,
        Command::Decide(args) => decide::run(args, context).await,
        Command::Attest(args) => attest::run(args, context).await,
    }
}

async fn show(deployment: &str, context: &mut Context) -> Outcome {
    let list = context.client().await?.reconciliation(deployment).await?;
    let name = list.deployment.as_ref().map(|about| one_line(&about.label)).unwrap_or_default();
    let text = view::reconciliation(&list, context.canvas());
    context.printer.record(&record("Reconciliation", &list, name, text))?;
    Ok(ExitCode::Done)
}

/// What a checklist is about, or a refusal to act on nothing.
fn about(list: &v1::Reconciliation) -> Result<v1::DeploymentSummary, Failure> {
    list.deployment.clone().ok_or(Failure::incomplete("deployment"))
}

/// Prints the answer to a question to a resource, and says what it is worth.
fn answered<M: prost::Message>(
    kind: &str,
    message: &M,
    answer: Option<&v1::Evidence>,
    deployment: &str,
    context: &mut Context,
) -> Outcome {
    let text = answer.map(|piece| view::one_evidence(piece, context.canvas())).unwrap_or_default();
    let name = answer.map(|piece| one_line(&piece.id)).unwrap_or_default();
    context.printer.record(&record(kind, message, name, text))?;
    let deployment = one_line(deployment);
    match answer {
        None => {
            context.printer.talk("no answer came in time. The question is on record, and an answer will be kept:")?;
            context.printer.talk(&format!("holdfast evidence {deployment}"))?;
            Ok(ExitCode::ClientTimeout)
        }
        Some(piece) if piece.kind == "inquiry_failed" => {
            context.printer.talk("it could not be done: nothing new is known")?;
            Ok(ExitCode::Precondition)
        }
        Some(_) => {
            context.printer.talk(&format!("holdfast reconcile show {deployment} tells what that opens"))?;
            Ok(ExitCode::Done)
        }
    }
}
