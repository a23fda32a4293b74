//! A coordinator as in production, and the operators and agents that a measurement needs.

use std::time::Duration;

use anyhow::bail;
use holdfast_proto::v1::{DeploymentState, Event, WatchEventsRequest};
use holdfast_tests::api::{Operator, id_of};
use holdfast_tests::cluster::{Cluster, Plan};
use holdfast_tests::files::{DeploymentFile, command_target};
use holdfast_tests::fleet::{self, Fleet};
use holdfast_tests::reunion::until_in_contact;

use crate::options::Options;

const LEASE: Duration = Duration::from_secs(30);

/// A coordinator, and who works for it.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    agents: Agents,
}

enum Agents {
    None,
    Fleet(Fleet),
    /// `web-01` and `web-02`, with shims.
    Real,
}

/// A coordinator as in production, but that no agent is slowed down: what is measured is how fast it could be.
fn plan(options: &Options) -> Plan {
    const NO_BOUND: &str = "1000000000";
    Plan::new(options.program())
        .as_in_production()
        .coordinator_environment("HOLDFAST_AGENTS_MESSAGES_PER_SECOND", NO_BOUND)
        .coordinator_environment("HOLDFAST_AGENTS_BURST", NO_BOUND)
}

impl Scene {
    /// A coordinator alone.
    pub(crate) async fn new(options: &Options) -> Self {
        let cluster = plan(options).agents(&[]).start().await;
        Self { cluster, agents: Agents::None }
    }

    /// With so many agents in two processes, all in contact.
    pub(crate) async fn with_fleet(options: &Options, agents: usize) -> Self {
        let mut scene = Self::new(options).await;
        scene.gather(agents).await;
        scene
    }

    pub(crate) async fn gather(&mut self, agents: usize) {
        let fleet = Fleet::start(&self.cluster, &self.cluster.address(), "agents", agents, 2);
        until_in_contact(&self.cluster.operator(), agents).await;
        self.agents = Agents::Fleet(fleet);
    }

    /// With two real agents.
    pub(crate) async fn with_shims(options: &Options) -> Self {
        let cluster = plan(options).start().await;
        Self { cluster, agents: Agents::Real }
    }

    /// Process ids of the agents.
    pub(crate) fn agent_pids(&mut self) -> Vec<u32> {
        match &self.agents {
            Agents::None => Vec::new(),
            Agents::Fleet(fleet) => fleet.pids().collect(),
            Agents::Real => ["web-01", "web-02"].map(|name| self.cluster.agent(name).pid()).into(),
        }
    }

    /// Declares so many targets, spread over the agents, and gives a lane for each. A connection serves some lanes, as
    /// operators share none but don't have a machine each either.
    pub(crate) async fn lanes(&self, count: usize) -> Vec<Lane> {
        const PER_CONNECTION: usize = 32;
        let mut lanes: Vec<Lane> = Vec::with_capacity(count);
        for index in 0..count {
            let target = format!("lane@{index}");
            let shared = lanes.last().filter(|_| index % PER_CONNECTION != 0).map(|lane| lane.operator.clone());
            let operator = shared.unwrap_or_else(|| self.cluster.operator());
            operator.apply_target(&self.target(&target, index)).await;
            let file = DeploymentFile::new(&target, LEASE).mutates("change", "idempotent", &fleet::at_once());
            lanes.push(Lane { operator, file: file.text().to_owned() });
        }
        lanes
    }

    fn target(&self, name: &str, index: usize) -> String {
        match &self.agents {
            Agents::Fleet(fleet) => fleet::target(name, index % fleet.agents()),
            Agents::None | Agents::Real => command_target(name, false),
        }
    }
}

/// One target, on which one deployment follows the other.
#[derive(Clone)]
pub(crate) struct Lane {
    operator: Operator,
    file: String,
}

impl Lane {
    /// Submits, and gives the events as they come.
    pub(crate) async fn submit(&self) -> anyhow::Result<Events> {
        let deployment = id_of(&self.operator.submit(&self.file).await);
        let request = WatchEventsRequest { deployment: deployment.clone(), from_sequence: 0, follow: true };
        let stream = self.operator.client.clone().watch_events(request).await?.into_inner();
        Ok(Events { deployment, stream })
    }
}

/// The events of a deployment.
pub(crate) struct Events {
    deployment: String,
    stream: tonic::Streaming<holdfast_proto::v1::WatchEventsResponse>,
}

impl Events {
    /// Until the operator sees that the step has begun: the first report that was accepted.
    pub(crate) async fn begun(&mut self) -> anyhow::Result<()> {
        self.until("report_accepted").await.map(drop)
    }

    /// Until the operator sees that it succeeded.
    pub(crate) async fn succeeded(&mut self) -> anyhow::Result<()> {
        let last = self.until("deployment_ended").await?;
        if last.state_after != DeploymentState::Succeeded as i32 {
            bail!("{} did not succeed: {}", self.deployment, last.sentence);
        }
        Ok(())
    }

    async fn until(&mut self, kind: &str) -> anyhow::Result<Event> {
        while let Some(response) = self.stream.message().await? {
            if let Some(event) = response.event.filter(|event| event.kind == kind) {
                return Ok(event);
            }
        }
        bail!("the events of {} ended early", self.deployment)
    }
}
