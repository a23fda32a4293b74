//! A service behind a deployment API.

use std::time::Duration;

use holdfast_tests::deploy_api::DeployApi;
use holdfast_tests::files::DeploymentFile;

use super::rig::{Rig, THING};
use crate::PROGRAM;

impl Rig for DeployApi {
    fn target_file(&self) -> String {
        self.target(THING, "manual")
    }

    fn deployment(&self, revision: &str, ttl: Duration) -> String {
        DeploymentFile::new(THING, ttl).step("roll-out", &DeployApi::step(revision, 0)).text().to_owned()
    }

    fn agent_environment(&self) -> Vec<(&'static str, String)> {
        vec![("HOLDFAST_RESOURCE", self.rules(THING))]
    }

    fn effect(&self) -> &'static str {
        "submit"
    }

    /// The key is the operation's own, and the operation was done by the other agent.
    fn answers_again(&self) -> bool {
        true
    }

    fn underwent(&self) -> Vec<String> {
        DeployApi::underwent(self)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_refuses_what_a_paused_agent_does_late() {
    let api = DeployApi::start(PROGRAM.as_ref(), "thing@test/service").await;
    super::the_resource_refuses_the_stale_effect(api).await;
}
