//! `holdfast-agent adapter`: what adapters need of their systems, and what they can show of them.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use holdfast_common::file::TargetFile;
use holdfast_common::id::ResourceName;

use crate::trial::{self, Trial};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Try a resource with this host's own credentials, and say what can be shown of it. Changes nothing.
    Test(Test),
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
        Command::Test(test) => try_it(test),
    }
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
