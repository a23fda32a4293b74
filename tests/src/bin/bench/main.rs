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
use holdfast_tests::folder::Folder;
use holdfast_tests::machine;

use options::{Options, Part};
use report::Report;

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    options.check()?;
    machine::raise_descriptors();
    let several = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let one = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut report, mut filled) = (Report::new(&options), None);
    for part in options.parts() {
        report.part(part);
        // Who waits for one thing after the other has one thread: a second one that is woken for nothing would be measured with it.
        let runtime = if matches!(part, Part::Latency) { &one } else { &several };
        runtime.block_on(measure(part, &options, &mut report, &mut filled))?;
    }
    report.close();
    match &options.json {
        Some(file) => {
            std::fs::write(file, report.json()).with_context(|| format!("could not write {}", file.display()))
        }
        None => Ok(()),
    }
}

async fn measure(
    part: Part,
    options: &Options,
    report: &mut Report,
    filled: &mut Option<Folder>,
) -> anyhow::Result<()> {
    match part {
        Part::All => {}
        Part::Raw => raw::measure(options, report).await?,
        Part::Complete => complete::measure(options, report).await?,
        Part::Latency => latency::measure(options, report).await?,
        Part::Messages => messages::measure(options, report).await?,
        Part::Memory => memory::measure(options, report).await?,
        Part::Decisions => *filled = Some(decisions::measure(options, report)?),
        Part::Start => start::measure(options, report, filled.take()).await?,
        Part::Agents => agents::measure(options, report).await?,
    }
    Ok(())
}
