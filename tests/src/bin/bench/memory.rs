//! What an idle agent costs: at the coordinator, beside a bare server of the same TLS stream, and on its host.

use std::time::Duration;

use holdfast_tests::cluster::Plan;
use holdfast_tests::echo::Echo;
use holdfast_tests::fleet::Fleet;
use holdfast_tests::machine::{self, Memory};
use holdfast_tests::wait;

use crate::options::Options;
use crate::report::{Aim, Figure, Report};
use crate::scene::Scene;

const AIM: f64 = 2.0;
/// Of the agent at rest, in MiB.
const AT_REST: f64 = 20.0;
/// More than two heartbeats: what a connect and a first commit needed has been given back.
const SETTLED: Duration = Duration::from_secs(11);
const PATIENCE: Duration = Duration::from_secs(240);

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;

pub(crate) async fn measure(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let bare = bare(options).await;
    let mut scene = Scene::new(options).await;
    let pid = scene.cluster.coordinator().pid();
    let before = machine::memory(pid);
    scene.gather(options.agents).await;
    tokio::time::sleep(SETTLED).await;
    let after = machine::memory(pid);
    drop(scene);
    report.put(Figure::new("bare server, for each idle stream", bare, "KiB"));
    let what = format!("coordinator, for each of {} idle agents", options.agents);
    let figure = Figure::new(what, each(before, after, options.agents), "KiB");
    report.put(figure.of("KiB, a bare TLS stream", bare).aim(Aim::RatioAtMost(AIM)));
    report.put(Figure::new("coordinator with all of them", after.proportional as f64 / MIB, "MiB"));
    report.put(Figure::new("coordinator without agents", before.proportional as f64 / MIB, "MiB"));
    at_rest(options, report).await;
    Ok(())
}

/// KiB for each stream of a server that does nothing, held by the same agents.
async fn bare(options: &Options) -> f64 {
    let scene = Scene::new(options).await;
    let echo = Echo::start(&scene.cluster).await;
    let before = machine::memory(echo.pid());
    let _fleet = Fleet::start(&scene.cluster, &echo.address(), "bare", options.agents, 2);
    let all_there = || machine::connected_to(echo.port()) >= options.agents;
    wait::until_true("every bare stream to be there", PATIENCE, all_there).await;
    tokio::time::sleep(SETTLED).await;
    each(before, machine::memory(echo.pid()), options.agents)
}

fn each(before: Memory, after: Memory, agents: usize) -> f64 {
    after.private.saturating_sub(before.private) as f64 / KIB / agents as f64
}

async fn at_rest(options: &Options, report: &mut Report) {
    let mut cluster = Plan::new(options.program()).agents(&["web-01"]).as_in_production().start().await;
    tokio::time::sleep(SETTLED).await;
    let agent = machine::memory(cluster.agent("web-01").pid());
    let figure = Figure::new("agent at rest, in contact, resident", agent.resident as f64 / MIB, "MiB");
    report.put(figure.aim(Aim::AtMost(AT_REST)));
    report.put(Figure::new("agent at rest, what it has written", agent.private as f64 / MIB, "MiB"));
}
