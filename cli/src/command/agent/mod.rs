//! `holdfast agent …`

mod drain;
mod retire;
mod token;
mod unlock;

use clap::Subcommand;
use holdfast_common::code::{Code, ExitCode};
use holdfast_common::problem::Problem;
use holdfast_common::text::one_line;
use holdfast_proto::v1;

use super::{Context, Outcome, record};
use crate::failure::Failure;
use crate::view;

/// One agent, or hosts that are to become some.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show an agent: its contact, what it holds, its certificate, whether its identity is locked and why
    Show {
        /// The agent's name
        name: String,
    },
    /// Let it have nothing new. What it holds goes on
    Drain {
        /// Its name
        agent: String,
        /// Why; shown to whoever waits
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Let it have new work again
    Resume {
        /// Its name
        agent: String,
    },
    /// Make, list and take back the tokens that hosts join with
    Token {
        /// What to do with them.
        #[command(subcommand)]
        command: token::Command,
    },
    /// Say which copy is the agent: it gets new work again, and what its journal says counts again (severe)
    Unlock(unlock::Unlock),
    /// Remove an agent: nothing that its host shows opens anything any more. What runs there is not touched (severe)
    Remove(retire::Remove),
    /// Revoke one certificate; its agent goes on with another one, where it has one (severe)
    Revoke(retire::Revoke),
}

pub(super) async fn run(command: Command, context: &mut Context) -> Outcome {
    match command {
        Command::Show { name } => {
            let agent = find(&name, context).await?;
            shown(&agent, context)
        }
        Command::Drain { agent, reason } => drain::drain(agent, reason, context).await,
        Command::Resume { agent } => drain::resume(agent, context).await,
        Command::Token { command } => token::run(command, context).await,
        Command::Unlock(args) => unlock::unlock(args, context).await,
        Command::Remove(args) => retire::remove(args, context).await,
        Command::Revoke(args) => retire::revoke(args, context).await,
    }
}

async fn find(name: &str, context: &mut Context) -> Result<v1::Agent, Failure> {
    let agents = context.client().await?.agents().await?.agents;
    agents.into_iter().find(|agent| agent.name == name).ok_or_else(|| {
        let problem = Problem::new(Code::AgentNotFound, format!("no such agent: {}", one_line(name)));
        problem.next("holdfast agents").into()
    })
}

fn shown(agent: &v1::Agent, context: &mut Context) -> Outcome {
    let text = view::one_agent(agent, context.canvas());
    context.printer.record(&record("Agent", agent, one_line(&agent.name), text))?;
    Ok(ExitCode::Done)
}
