//! How each kind of fault is made, and ended.

use std::time::{Duration, Instant};

use holdfast::proxy::Ways;
use holdfast_tests::cluster::{LONG, MARGIN};
use holdfast_tests::{process, wait};

use super::scene::{HIT, Scene};
use super::table::Fault;

/// How often every cell is made. Once, unless said.
pub(super) const ROUNDS: &str = "HOLDFAST_ROUNDS";
/// A lease that lapses soon, and that a busy machine keeps alive.
const SHORT: Duration = Duration::from_secs(2);

/// As [`ROUNDS`] says.
pub(super) fn rounds() -> u32 {
    std::env::var(ROUNDS).ok().map_or(1, |text| text.parse().expect("a number of rounds"))
}

impl Fault {
    /// How long the lease is.
    pub(super) fn lease(self) -> Duration {
        match self {
            Fault::AgentKilled | Fault::CoordinatorKilled | Fault::ProcessKilled => LONG,
            Fault::AgentCut | Fault::ProcessPaused | Fault::HostPaused => SHORT,
        }
    }

    /// Makes it. An agent that stood at the point goes on where it is not what is broken.
    pub(super) async fn inject(self, scene: &mut Scene) {
        match self {
            Fault::AgentKilled => scene.cluster.agent(HIT).kill(),
            Fault::AgentCut => {
                scene.cluster.line(HIT).black_hole(Ways::Both);
                scene.cluster.agent(HIT).thaw();
            }
            Fault::CoordinatorKilled => {
                scene.cluster.coordinator().kill();
                scene.cluster.agent(HIT).thaw();
            }
            Fault::ProcessKilled => process::kill(scene.process().await),
            Fault::ProcessPaused => process::pause(scene.process().await),
            Fault::HostPaused => {
                scene.cluster.agent(HIT).freeze().await;
                scene.cluster.shims(HIT).into_iter().for_each(process::pause);
            }
        }
    }

    /// Lets it last as long as it has to.
    pub(super) async fn last(self, scene: &Scene) {
        match self {
            Fault::AgentKilled | Fault::CoordinatorKilled | Fault::ProcessKilled => {}
            Fault::AgentCut | Fault::HostPaused => drop(scene.until_lapsed().await),
            Fault::ProcessPaused => {
                let begun = Instant::now();
                let over = || begun.elapsed() > SHORT + MARGIN;
                wait::until_true("the lease to be over, were it not renewed", wait::SOON, over).await;
            }
        }
    }

    /// Ends it: what is broken comes back.
    pub(super) async fn end(self, scene: &mut Scene) {
        match self {
            Fault::AgentKilled => {
                let environment = &mut scene.cluster.agent(HIT).settings().environment;
                environment.remove("HOLDFAST_CRASH");
                environment.remove("HOLDFAST_HALT");
                scene.cluster.agent(HIT).start();
            }
            Fault::AgentCut => {
                let line = scene.cluster.line(HIT);
                line.reset();
                line.heal().await;
            }
            Fault::CoordinatorKilled => scene.cluster.start_coordinator().await,
            Fault::ProcessKilled | Fault::ProcessPaused => {}
            Fault::HostPaused => {
                scene.cluster.agent(HIT).thaw();
                scene.cluster.shims(HIT).into_iter().for_each(process::resume);
            }
        }
    }
}
