//! Agents, with what they hold.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_common::id::{AgentName, IncarnationId};
use holdfast_common::spec::TargetSpec;
use holdfast_coordinator_core::state::{Attempt, AttemptState, DeploymentState};
use holdfast_proto::v1;
use tonic::Status;
use uuid::Uuid;

use super::{Call, find, page};
use crate::auth::guard::not_allowed;
use crate::auth::{Operator, Permission};
use crate::grpc::shared::Shared;
use crate::grpc::view::agent::Stored;
use crate::grpc::{refused, status, view};
use crate::sessions::Profile;
use crate::store::Reader;
use crate::store::rows::DeploymentFilter;

/// Deployments under way that are looked through.
const MOST_HELD: u32 = 10_000;

pub(super) async fn list(call: Call<'_, v1::ListAgentsRequest>) -> Result<v1::ListAgentsResponse, Status> {
    let Call { shared, by, asked } = call;
    let after: Option<AgentName> = page::token(&asked.page_token)?;
    let mut holds = holds(shared, &by).await?;
    let mut stored = stored(shared).await?;
    let mut agents: Vec<v1::Agent> = Vec::new();
    let targets = targets(shared, &by).await?;
    for status in shared.directory.list() {
        let (held, stored) = (holds.remove(&status.name), stored.remove(&status.name).unwrap_or_default());
        if held.is_some() || is_shown(targets.as_deref(), &status.profile) {
            agents.push(view::agent::agent(status, &stored, held.unwrap_or_default()));
        }
    }
    for (name, stored) in stored {
        let Some(profile) = joined(&stored) else { continue };
        if is_shown(targets.as_deref(), &profile) {
            agents.push(view::agent::never_heard(&name, &stored));
        }
    }
    agents.sort_by(|one, other| one.name.cmp(&other.name));
    let after = after.as_ref().map(AgentName::as_str);
    let (agents, next_page_token) = page::cut(agents, after, page::size(asked.page_size), |agent| agent.name.as_str());
    Ok(v1::ListAgentsResponse { agents, next_page_token })
}

/// One agent, if it was ever heard of or has joined, as in the list.
pub(super) async fn find(shared: &Shared, by: &Operator, agent: &AgentName) -> Result<Option<v1::Agent>, Status> {
    let held = holds(shared, by).await?.remove(agent).unwrap_or_default();
    let status = shared.directory.list().into_iter().find(|status| status.name == *agent);
    let stored = stored(shared).await?.remove(agent).unwrap_or_default();
    Ok(match status {
        Some(status) => Some(view::agent::agent(status, &stored, held)),
        None => joined(&stored).map(|_| view::agent::never_heard(agent, &stored)),
    })
}

fn is_shown(targets: Option<&[TargetSpec]>, profile: &Profile) -> bool {
    targets.is_none_or(|targets| targets.iter().any(|target| profile.matches(target)))
}

/// What a host that has joined and never spoke would be selected by.
fn joined(stored: &Stored) -> Option<Profile> {
    let labels = stored.identity.as_ref()?.enrolled.as_ref()?.labels.clone();
    let incarnation = IncarnationId(Uuid::nil());
    let (version, instance) = (String::new(), String::new());
    Some(Profile { incarnation, labels, adapters: BTreeSet::new(), targets: Vec::new(), version, instance })
}

async fn stored(shared: &Shared) -> Result<BTreeMap<AgentName, Stored>, Status> {
    let read = |reader: &Reader| Ok((reader.agents()?, reader.agent_identities()?, reader.certificates()?));
    let read = shared.reader.run(read).await.map_err(|error| refused::by_store(&error))?;
    let (rows, identities, certificates) = read;
    let mut all: BTreeMap<AgentName, Stored> = BTreeMap::new();
    for row in rows {
        let name = row.name.clone();
        all.entry(name).or_default().row = Some(row);
    }
    for (agent, identity) in identities {
        all.entry(agent).or_default().identity = Some(identity);
    }
    for certificate in certificates {
        let Some(stored) = certificate.agent.clone().and_then(|agent| all.get_mut(&agent)) else { continue };
        let of_its_kind = if certificate.revoked_at.is_none() { &mut stored.newest } else { &mut stored.revoked };
        let shown = stored.row.as_ref().map(|row| row.fingerprint.as_str());
        if view::agent::tells_more(of_its_kind.as_ref(), &certificate, shown) {
            *of_its_kind = Some(certificate);
        }
    }
    Ok(all)
}

/// Whether the caller manages agents: an agent may serve any target, so that is asked of all of them.
pub(super) fn may_manage(shared: &Shared, by: &Operator, what: &str) -> Result<(), Status> {
    if by.scope.may_everywhere(Permission::Agents) {
        return Ok(());
    }
    let problem =
        not_allowed(by, Permission::Agents, None).known("an agent may serve any target: it takes a grant for *");
    shared.driver.refused(by.name.to_string(), what.to_owned(), problem.title.clone());
    Err(status::of(&problem))
}

/// The targets that the caller may view, whose agents are therefore shown; `None` where that is all of them.
async fn targets(shared: &Shared, by: &Operator) -> Result<Option<Vec<TargetSpec>>, Status> {
    if by.scope.may_everywhere(Permission::View) {
        return Ok(None);
    }
    let rows = shared.reader.run(|reader| reader.targets()).await.map_err(|error| refused::by_store(&error))?;
    let specs = rows.into_iter().map(|row| row.spec);
    Ok(Some(specs.filter(|spec| by.scope.may(Permission::View, &spec.name)).collect()))
}

/// For each agent, the deployments whose last attempt it was given and that have not ended, as far as the caller may
/// view them.
async fn holds(shared: &Shared, by: &Operator) -> Result<BTreeMap<AgentName, Vec<String>>, Status> {
    let filter = DeploymentFilter {
        among: find::seen(shared, by).await?,
        states: vec![
            DeploymentState::Active,
            DeploymentState::Uncertain,
            DeploymentState::Held,
            DeploymentState::Queued,
        ],
        limit: MOST_HELD,
        ..DeploymentFilter::default()
    };
    let read = shared.reader.run(move |reader| reader.deployments(&filter)).await;
    let mut holds: BTreeMap<AgentName, Vec<String>> = BTreeMap::new();
    for row in read.map_err(|error| refused::by_store(&error))? {
        let held = |attempt: &&Attempt| row.record.reserved_at.is_some() && !was_declined(attempt);
        if let Some(attempt) = row.record.attempts.last().filter(held) {
            let label = view::deployment::label(&row.target, &row.record).to_string();
            holds.entry(attempt.agent.clone()).or_default().push(label);
        }
    }
    Ok(holds)
}

/// Whether the agent did not take it: then it has nothing of it.
fn was_declined(attempt: &Attempt) -> bool {
    matches!(attempt.state, AttemptState::Declined(_))
}
