//! A step's process that stands still where a test wants it.

use super::{Agent, Cluster};
use crate::{process, wait};

impl Cluster {
    /// Leaves that agent alone in the cluster, started anew: what its steps run stops itself right before that call of an apply.
    pub fn halt_before(&mut self, name: &str, call: &str) {
        self.agents.iter_mut().for_each(Agent::kill);
        let agent = self.agent(name);
        agent.settings().environment.insert("HOLDFAST_HALT".to_owned(), format!("apply.{call}=stop"));
        agent.start();
    }

    /// What stands still of the processes of that agent's steps.
    #[must_use]
    pub fn still(&self, name: &str) -> Vec<i32> {
        let is_still = |pid: &i32| process::state_of(pid.unsigned_abs()) == Some('T');
        self.shims(name).into_iter().filter(is_still).collect()
    }

    /// Waits until a process of that agent's steps stands still.
    pub async fn standing_still(&self, name: &str) -> i32 {
        wait::until("a step's process to stand still", wait::SOON * 2, async || {
            self.still(name).first().copied().ok_or_else(|| format!("none of {:?} does", self.shims(name)))
        })
        .await
    }
}
