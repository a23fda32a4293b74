//! One of several deployments that are watched together, on one line.

use std::time::Duration;

use holdfast_common::text::one_line;
use holdfast_proto::v1::{self, DeploymentState};

use super::{Pulse, word};
use crate::output::Terminal;

/// Its name, where it stands, and whether anybody is heard of it. Without colours.
#[must_use]
pub fn fleet_line(
    deployment: &v1::Deployment,
    told: Duration,
    lost: Option<Duration>,
    turn: usize,
    terminal: &Terminal,
) -> String {
    let about = deployment.summary.clone().unwrap_or_default();
    if !matches!(DeploymentState::try_from(about.state), Ok(DeploymentState::Queued | DeploymentState::Active)) {
        return one_line_of(deployment);
    }
    let pulse = Pulse { told: Some((deployment.clone(), told)), lost, turn };
    format!("{:<20} {}", one_line(&about.label), pulse.line(terminal))
}

/// Its name, where it stands, and why.
#[must_use]
pub fn one_line_of(deployment: &v1::Deployment) -> String {
    let about = deployment.summary.clone().unwrap_or_default();
    let state = word::deployment_state(about.state);
    format!("{:<20} {state:<9} {}", one_line(&about.label), one_line(&about.because)).trim_end().to_owned()
}
