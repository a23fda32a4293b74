//! Complete durable deployments per second: each is one mutating step with one permit, on a target of its own. A lane submits
//! its next one when it has seen the last one succeed.

use std::time::{Duration, Instant};

use holdfast_tests::machine;

use crate::options::Options;
use crate::raw::Disk;
use crate::report::{Aim, Figure, Report};
use crate::scene::{Lane, Scene};

/// One sixth of the one-row commit rate.
const AIM: f64 = 1.0 / 6.0;
/// Not counted, so that every lane is at work.
const WARM: Duration = Duration::from_secs(1);
/// What the best rate of the fleet with one journal for each process is kept as, for [`crate::latency`].
pub(crate) const BEST: &str = "complete, one journal for each process, best";

pub(crate) async fn measure(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    for agents in options.journal.fleets() {
        let scene = Scene::with_fleet(options, *agents).await;
        let per_process = agents / 2;
        let who = match per_process {
            1 => "one journal for each process".to_owned(),
            several => format!("{several} journals for each process"),
        };
        sweep(options, report, scene, &who, (per_process == 1).then_some(Aim::RatioAtLeast(AIM))).await?;
    }
    if options.shims {
        sweep(options, report, Scene::with_shims(options).await, "real shims and /bin/true", None).await?;
    }
    Ok(())
}

async fn sweep(
    options: &Options,
    report: &mut Report,
    mut scene: Scene,
    who: &str,
    aim: Option<Aim>,
) -> anyhow::Result<()> {
    let mut best = 0.0_f64;
    let mut disks = report.disk(Disk::look()?);
    for targets in &options.targets {
        let lanes = scene.lanes(*targets).await;
        let before = Times::now(&mut scene);
        let (rate, all) = run(lanes, options.span()).await?;
        Times::now(&mut scene).put_since(&before, all, report);
        disks = disks.and(report.disk(Disk::look()?));
        let figure = Figure::new(format!("complete, {who}, {targets} in flight"), rate, "/s");
        report.put(figure.of("one-row FULL commits/s", disks.commits));
        best = best.max(rate);
    }
    let figure = Figure::new(format!("complete, {who}, best"), best, "/s").of("one-row FULL commits/s", disks.commits);
    report.put(match aim {
        Some(aim) => figure.aim(aim),
        None => figure,
    });
    Ok(())
}

/// The rate while all were at work, and how many there were in all.
pub(crate) async fn run(lanes: Vec<Lane>, span: Duration) -> anyhow::Result<(f64, u64)> {
    let begun = Instant::now();
    let (from, until) = (begun + WARM, begun + WARM + span);
    let tasks: Vec<_> = lanes.into_iter().map(|lane| tokio::spawn(drive(lane, from, until))).collect();
    let (mut counted, mut all) = (0, 0);
    for task in tasks {
        let (within, whole) = task.await??;
        counted += within;
        all += whole;
    }
    Ok((counted as f64 / span.as_secs_f64(), all))
}

async fn drive(lane: Lane, from: Instant, until: Instant) -> anyhow::Result<(u64, u64)> {
    let (mut counted, mut all) = (0, 0);
    while Instant::now() < until {
        lane.submit().await?.succeeded().await?;
        let ended = Instant::now();
        counted += u64::from(ended >= from && ended < until);
        all += 1;
    }
    Ok((counted, all))
}

/// Processor time used so far.
struct Times {
    coordinator: Duration,
    agents: Duration,
    client: Duration,
}

impl Times {
    fn now(scene: &mut Scene) -> Self {
        Self {
            coordinator: machine::processor_time(scene.cluster.coordinator().pid()),
            agents: scene.agent_pids().into_iter().map(machine::processor_time).sum(),
            client: machine::processor_time(std::process::id()),
        }
    }

    fn put_since(&self, before: &Self, deployments: u64, report: &mut Report) {
        let each = |now: Duration, then: Duration| (now - then).as_secs_f64() * 1e6 / deployments.max(1) as f64;
        let coordinator = each(self.coordinator, before.coordinator);
        let agents = each(self.agents, before.agents);
        let client = each(self.client, before.client);
        report.note(format!(
            "processor time for each deployment: coordinator {coordinator:.0} µs, agents {agents:.0} µs, client {client:.0} µs"
        ));
    }
}
