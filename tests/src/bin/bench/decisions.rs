//! What a decision costs over the number of events that are stored on its target: from the submission to the end of one
//! deployment, through the real driver and store, one step and one commit for each message. Processor time, so that the disk
//! does not count.

use std::time::{Duration, Instant};

use holdfast_tests::folder::Folder;
use rustix::time::{ClockId, clock_gettime};

use crate::options::Options;
use crate::report::{Aim, Figure, Report};
use crate::stored::{Shelves, Stored};

/// Flat means that with the most events it costs no more than this of what it costs with the fewest.
const FLAT: f64 = 1.5;
const FEWEST: u64 = 1_000;
/// Deployments that are measured at each size.
const MEASURED: u32 = 100;
/// Where the store is in the folder.
pub(crate) const FILE: &str = "holdfast.db";

/// Gives the folder with the store that it filled.
pub(crate) fn measure(options: &Options, report: &mut Report) -> anyhow::Result<Folder> {
    tokio::task::block_in_place(|| measure_here(options, report))
}

fn measure_here(options: &Options, report: &mut Report) -> anyhow::Result<Folder> {
    let folder = Folder::new();
    let mut stored = Stored::open(&folder.join(FILE))?;
    let shelves = stored.shelves("decisions", 1)?;
    let begun = Instant::now();
    let (mut size, mut fewest) = (FEWEST, None);
    while size <= options.events {
        fill(&mut stored, &shelves, size)?;
        let (processor, clock) = deploy(&mut stored, &shelves)?;
        let figure = Figure::new(format!("submit .. end with {size} events on the target"), processor, "µs");
        report.put(match fewest {
            Some(fewest) => figure.of("µs, with the fewest", fewest).aim(Aim::RatioAtMost(FLAT)),
            None => figure,
        });
        report.note(format!("by the clock, with its commits: {clock:.0} µs"));
        fewest = fewest.or(Some(processor));
        size *= 10;
    }
    let seconds = begun.elapsed().as_secs_f64();
    report.note(format!("{} deployments were stored in {seconds:.0} s", stored.deployments()));
    Ok(folder)
}

fn fill(stored: &mut Stored, shelves: &Shelves, events: u64) -> anyhow::Result<()> {
    const ROUNDS: u64 = 50;
    while stored.events()? < events {
        stored.fill(shelves, ROUNDS)?;
    }
    Ok(())
}

/// Microseconds for each deployment: of this thread's processor time, and by the clock.
fn deploy(stored: &mut Stored, shelves: &Shelves) -> anyhow::Result<(f64, f64)> {
    let (processor, clock) = (processor_time(), Instant::now());
    for shelf in shelves.values().cycle().take(MEASURED as usize) {
        stored.deploy(shelf)?;
    }
    let each = |span: Duration| span.as_secs_f64() * 1e6 / f64::from(MEASURED);
    Ok((each(processor_time() - processor), each(clock.elapsed())))
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
