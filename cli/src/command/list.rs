//! `holdfast list`

use clap::ValueEnum;
use holdfast_common::code::ExitCode;
use holdfast_proto::v1::DeploymentState;

use super::{Context, Outcome, items};
use crate::output::Listing;
use crate::view;

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this target's
    pub target: Option<String>,
    /// Only in this state; may be repeated
    #[arg(long, value_name = "STATE", value_enum)]
    pub state: Vec<State>,
    /// At most this many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
}

/// A state to filter by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "holdfast explain tells what each means")]
pub enum State {
    Queued,
    Active,
    Uncertain,
    Held,
    Succeeded,
    Failed,
    Cancelled,
}

impl From<State> for DeploymentState {
    fn from(state: State) -> Self {
        match state {
            State::Queued => Self::Queued,
            State::Active => Self::Active,
            State::Uncertain => Self::Uncertain,
            State::Held => Self::Held,
            State::Succeeded => Self::Succeeded,
            State::Failed => Self::Failed,
            State::Cancelled => Self::Cancelled,
        }
    }
}

pub(super) async fn run(args: &Args, context: &mut Context) -> Outcome {
    let states: Vec<DeploymentState> = args.state.iter().copied().map(Into::into).collect();
    let target = args.target.as_deref().unwrap_or_default();
    print(target, &states, args.limit as usize, "no deployments", context).await
}

/// What `list` and `reconcile list` share.
pub(super) async fn print(
    target: &str,
    states: &[DeploymentState],
    limit: usize,
    nothing: &'static str,
    context: &mut Context,
) -> Outcome {
    let client = context.client().await?;
    let answer = client.deployments(target, states, limit).await?;
    if answer.deployments.is_empty() && !target.is_empty() {
        // A mistyped target must not look like one without deployments.
        client.target(target).await?;
    }
    let whole = crate::output::answer("ListDeploymentsResponse", &answer);
    context.printer.listing(&Listing {
        items: items(&whole, "deployments"),
        whole,
        names: answer.deployments.iter().map(|one| holdfast_common::text::one_line(&one.label)).collect(),
        table: view::deployments(&answer.deployments, context.canvas()),
        nothing,
    })?;
    if !answer.next_page_token.is_empty() {
        context.printer.talk(&format!("there are more: --limit {}", limit.saturating_mul(2)))?;
    }
    Ok(ExitCode::Done)
}
