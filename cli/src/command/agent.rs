//! `holdfast agent …`

use clap::Subcommand;

use super::{Context, Outcome, join_token, retire};

/// One agent, or hosts that are to become some.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make, list and take back the tokens that hosts join with
    Token {
        /// What to do with them.
        #[command(subcommand)]
        command: join_token::Command,
    },
    /// Remove an agent: nothing that its host shows opens anything any more. What runs there is not touched
    Remove(retire::Remove),
    /// Revoke one certificate, of an agent that goes on with another
    Revoke(retire::Revoke),
}

pub(super) async fn run(command: Command, context: &mut Context) -> Outcome {
    match command {
        Command::Token { command } => join_token::run(command, context).await,
        Command::Remove(args) => retire::remove(args, context).await,
        Command::Revoke(args) => retire::revoke(args, context).await,
    }
}
