//! From the call to Submit until the operator sees that the step has begun, over WatchEvents: one at a time, and under half of
//! the load that the machine can bear.

use std::time::{Duration, Instant};

use crate::complete;
use crate::options::Options;
use crate::raw::Disk;
use crate::report::{Aim, Figure, Report};
use crate::scene::{Lane, Scene};

/// The median should take no longer than so many fsync'd appends and [`BESIDE`].
const FSYNCS: f64 = 7.0;
/// Everything else on the way, in milliseconds.
const BESIDE: f64 = 2.0;
/// Of the median's bound.
const P99: f64 = 4.0;
/// Enough that under half load none waits for the one before it on its target.
const LANES: usize = 64;

pub(crate) async fn measure(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let scene = Scene::with_fleet(options, 2).await;
    let lanes = scene.lanes(LANES).await;
    let before = report.disk(Disk::look()?);
    let alone = one_at_a_time(&lanes[0], options.submissions).await?;
    let disk = before.and(report.disk(Disk::look()?));
    put(report, "one at a time", alone, disk, true);

    let most = match report.measured(complete::BEST) {
        Some(measured) => measured,
        None => complete::run(lanes.clone(), options.span() / 2).await?.0,
    };
    let half = (most / 2.0).max(1.0);
    let under_load = paced(&lanes, half, options.span()).await?;
    let disk = disk.and(report.disk(Disk::look()?));
    put(report, &format!("at half load, {half:.0}/s"), under_load, disk, false);
    if options.shims {
        let scene = Scene::with_shims(options).await;
        let spans = one_at_a_time(&scene.lanes(1).await[0], options.submissions).await?;
        put(report, "one at a time, real shims", spans, disk, false);
    }
    Ok(())
}

fn put(report: &mut Report, how: &str, mut spans: Vec<Duration>, disk: Disk, aims: bool) {
    spans.sort();
    let fsync = 1000.0 / disk.appends;
    let bound = FSYNCS * fsync + BESIDE;
    for (percent, bound) in [(50, bound), (99, bound * P99)] {
        let what = format!("submit -> begun, {how}, p{percent}");
        let figure =
            Figure::new(what, percentile(&spans, percent).as_secs_f64() * 1000.0, "ms").of("ms, an fsync", fsync);
        report.put(if aims { figure.aim(Aim::AtMost(bound)) } else { figure });
    }
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

async fn one_at_a_time(lane: &Lane, submissions: usize) -> anyhow::Result<Vec<Duration>> {
    let mut spans = Vec::with_capacity(submissions);
    for _submission in 0..submissions {
        let start = Instant::now();
        let mut events = lane.submit().await?;
        events.begun().await?;
        spans.push(start.elapsed());
        events.succeeded().await?;
    }
    Ok(spans)
}

/// Submits at that rate whatever comes of it, and counts each from when it should have been submitted: who waits for a slow one
/// must not hide behind it.
async fn paced(lanes: &[Lane], rate: f64, span: Duration) -> anyhow::Result<Vec<Duration>> {
    let begun = tokio::time::Instant::now();
    let count = (rate * span.as_secs_f64()) as usize;
    let mut tasks = Vec::with_capacity(count);
    for (index, lane) in (0..count).zip(lanes.iter().cycle()) {
        let due = begun + Duration::from_secs_f64(index as f64 / rate);
        let lane = lane.clone();
        tokio::time::sleep_until(due).await;
        tasks.push(tokio::spawn(async move {
            let mut events = lane.submit().await?;
            events.begun().await?;
            let span = due.elapsed();
            events.succeeded().await?;
            anyhow::Ok(span)
        }));
    }
    let mut spans = Vec::with_capacity(count);
    for task in tasks {
        spans.push(task.await??);
    }
    Ok(spans)
}
