//! What to measure, and how much of it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

/// How fast Holdfast is on this machine, beside the raw ceilings of the same minute.
#[derive(Debug, Parser)]
#[command(name = "bench")]
pub(crate) struct Options {
    /// What to measure.
    #[arg(value_enum, default_value = "all")]
    parts: Vec<Part>,
    /// Length of one measurement of a rate.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Deployments in flight, each on a target of its own. May be given several times.
    #[arg(long, default_values_t = [8, 32, 128])]
    pub(crate) targets: Vec<usize>,
    /// Submissions whose way to the begun step is timed, one after the other.
    #[arg(long, default_value_t = 300)]
    pub(crate) submissions: usize,
    /// Agents of `memory` and `agents`; 10000 needs a limit of 40000 descriptors.
    #[arg(long, default_value_t = 2000)]
    pub(crate) agents: usize,
    /// One journal for each of two processes, or one for each of several agents in them.
    #[arg(long, value_enum, default_value_t = Journal::Both)]
    pub(crate) journal: Journal,
    /// Also the real agent with real shims that run /bin/true.
    #[arg(long)]
    pub(crate) shims: bool,
    /// The most events that `decisions` stores on one target; a power of ten.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) events: u64,
    /// Deployments that are stored when `start` starts the coordinator.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) deployments: u64,
    /// The program with everything in it; the one beside this program if not given.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Also write everything to this file, as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Everything below.
    All,
    /// The ceilings alone.
    Raw,
    /// Complete durable deployments.
    Complete,
    /// From the submission to the begun step.
    Latency,
    /// Messages of a session.
    Messages,
    /// Memory of idle agents, at both ends.
    Memory,
    /// The cost of a decision over the number of stored events.
    Decisions,
    /// The coordinator's start over a full store.
    Start,
    /// Many agents lose their coordinator and come back.
    Agents,
}

/// How many agents share a process of the fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Journal {
    /// One agent for each of two processes.
    Process,
    /// Eight agents in each.
    Agent,
    /// One after the other.
    Both,
}

impl Journal {
    /// How many agents in two processes.
    pub(crate) fn fleets(self) -> &'static [usize] {
        match self {
            Journal::Process => &[2],
            Journal::Agent => &[16],
            Journal::Both => &[2, 16],
        }
    }
}

impl Options {
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let program = self.program();
        anyhow::ensure!(
            program.exists(),
            "{} is not built: cargo build --release -p holdfast-tests --bins",
            program.display()
        );
        Ok(())
    }

    /// In the order in which one helps the next: what `decisions` stored is there for `start`.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let wanted = |part: &Part| *part != Part::All && (self.parts.contains(&Part::All) || self.parts.contains(part));
        Part::value_variants().iter().copied().filter(wanted).collect()
    }

    pub(crate) fn span(&self) -> Duration {
        Duration::from_secs(self.seconds.max(1))
    }

    pub(crate) fn program(&self) -> PathBuf {
        let own = std::env::current_exe().unwrap_or_default();
        self.program.clone().unwrap_or_else(|| own.with_file_name("holdfast-under-test"))
    }
}
