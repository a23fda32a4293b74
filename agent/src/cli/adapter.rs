//! `holdfast-agent adapter`: what adapters need of their systems, and what they can show of them.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use holdfast_common::file::TargetFile;
use holdfast_common::id::{ResourceName, TargetName};

use crate::adapters::postgres::Claim;
use crate::trial::{self, Trial};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Print the SQL that a database administrator installs for a postgres resource. Running it again changes nothing.
    Sql(Sql),
    /// Try a resource with this host's own credentials, and say what can be shown of it. Changes nothing.
    Test(Test),
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

/// Which resource.
#[derive(Debug, Args)]
pub(super) struct Test {
    /// The resource's name in its target.
    resource: ResourceName,
    /// The agent's TOML file.
    #[arg(long)]
    config: Option<PathBuf>,
    /// The target's file.
    #[arg(long)]
    target: PathBuf,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Sql(sql) => super::say(claim(sql).sql().trim_end()),
        Command::Test(test) => try_it(test),
    }
}

fn claim(sql: Sql) -> Claim {
    let Sql { schema, target, resource, deploy, inspect, fence } = sql;
    Claim { schema, target, resource, deploy, inspect, fence }
}

fn try_it(test: Test) -> anyhow::Result<()> {
    let config = super::read(test.config)?;
    let text =
        std::fs::read_to_string(&test.target).with_context(|| format!("could not read {}", test.target.display()))?;
    let target = TargetFile::parse(&text).map_err(|errors| anyhow::anyhow!("{}: {errors}", test.target.display()))?;
    let resource = target.resource(&test.resource);
    let resource = resource.with_context(|| format!("{} has no resource {}", target.name, test.resource))?;
    let trial = trial::of(&config, &target.name, resource);
    if test.json {
        super::say(&serde_json::to_string_pretty(&trial)?)?;
    } else {
        trial.lines().iter().try_for_each(|line| super::say(line))?;
    }
    failed(&trial)
}

fn failed(trial: &Trial) -> anyhow::Result<()> {
    let count = trial.failures();
    anyhow::ensure!(count == 0, "{count} of these can't be relied on");
    Ok(())
}
