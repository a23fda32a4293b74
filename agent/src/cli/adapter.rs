//! `holdfast-agent adapter`: what adapters need of their systems.

use clap::{Args, Subcommand};
use holdfast_common::id::{ResourceName, TargetName};

use crate::adapters::postgres::Claim;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Print the SQL that a database administrator installs for a postgres resource. Running it again changes nothing.
    Sql(Sql),
}

/// Whose schema it is, and which three roles may do what. The roles must be there, and none may be a member of another.
#[derive(Debug, Args)]
pub(super) struct Sql {
    /// The schema, as the target's file names it.
    #[arg(long)]
    schema: String,
    /// The target.
    #[arg(long)]
    target: TargetName,
    /// The resource's name in it.
    #[arg(long)]
    resource: ResourceName,
    /// The role that runs migrations.
    #[arg(long)]
    deploy: String,
    /// The role that reads.
    #[arg(long)]
    inspect: String,
    /// The role that fences off.
    #[arg(long)]
    fence: String,
}

pub(super) fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Sql(sql) => super::say(claim(sql).sql().trim_end()),
    }
}

fn claim(sql: Sql) -> Claim {
    let Sql { schema, target, resource, deploy, inspect, fence } = sql;
    Claim { schema, target, resource, deploy, inspect, fence }
}
