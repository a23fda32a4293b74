//! `holdfast agent drain|resume`

mod drain;

use clap::Subcommand;

use super::{Context, Outcome};

/// What to do with one agent.
#[derive(Debug, Subcommand)]
pub enum Command {
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
}

pub(super) async fn run(command: Command, context: &mut Context) -> Outcome {
    match command {
        Command::Drain { agent, reason } => drain::drain(agent, reason, context).await,
        Command::Resume { agent } => drain::resume(agent, context).await,
    }
}
