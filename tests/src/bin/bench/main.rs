//! How fast Holdfast is on this machine, beside the raw ceilings of the same minute. `docs/benchmarks.md` tells how to run it
//! and what each figure means.
//!
//! ```text
//!   bench (the client) ──▶ coordinator ◀── fleet: one or two processes of agents, everything real but their hands
//!        └───────────────▶ echo            the same TLS and stream, nothing behind it
//! ```

mod agents;
mod complete;
mod decisions;
mod latency;
mod memory;
mod messages;
mod options;
mod raw;
mod report;
mod scene;
mod start;
mod stored;

use anyhow::Context as _;
use clap::Parser as _;
use holdfast_tests::machine;

use options::{Options, Part};
use report::Report;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    options.check()?;
    machine::raise_descriptors();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut report = Report::new(&options);
    runtime.block_on(measure(&options, &mut report))?;
    report.close();
    match &options.json {
        Some(file) => {
            std::fs::write(file, report.json()).with_context(|| format!("could not write {}", file.display()))
        }
        None => Ok(()),
    }
}

async fn measure(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let mut filled = None;
    for part in options.parts() {
        report.part(part);
        match part {
            Part::All => {}
            Part::Raw => raw::measure(options, report).await?,
            Part::Complete => complete::measure(options, report).await?,
            Part::Latency => latency::measure(options, report).await?,
            Part::Messages => messages::measure(options, report).await?,
            Part::Memory => memory::measure(options, report).await?,
            Part::Decisions => filled = Some(decisions::measure(options, report)?),
            Part::Start => start::measure(options, report, filled.take()).await?,
            Part::Agents => agents::measure(options, report).await?,
        }
    }
    Ok(())
}
