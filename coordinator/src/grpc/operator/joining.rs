//! Join tokens, and agents that go.

use std::collections::BTreeMap;

use holdfast_common::code::Code;
use holdfast_common::id::AgentName;
use holdfast_common::problem::Problem;
use holdfast_common::text::one_line;
use holdfast_coordinator_core::identity::Identity;
use holdfast_proto::convert::{Invalid, duration_from_wire, parsed, wall_to_wire};
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, agents, find, page};
use crate::ca;
use crate::grpc::shared::Shared;
use crate::grpc::{enroll, refused, status};
use crate::joining;
use crate::sessions::Standing;
use crate::store::{Digest, JoinTokenRow};

pub(super) async fn create_token(
    call: Call<'_, v1::CreateJoinTokenRequest>,
) -> Result<v1::CreateJoinTokenResponse, Status> {
    let Call { shared, by, asked } = call;
    agents::may_manage(shared, &by, "create a join token")?;
    let invalid = |why| status::invalid(&why);
    let life = asked.life.ok_or(Invalid::Missing { field: "life" }).map_err(invalid)?;
    let life = duration_from_wire("life", life).map_err(invalid)?;
    let agent: Option<AgentName> = match asked.agent.as_str() {
        "" => None,
        name => Some(parsed("agent", name).map_err(invalid)?),
    };
    if let Some(name) = &agent
        && !identity(shared, name).await?.is_free()
    {
        return Err(status::of(&enroll::name_taken(name).so("no join token was made: it would let nobody in")));
    }
    let labels: BTreeMap<String, String> = asked.labels.into_iter().collect();
    let (secret, row) =
        joining::draw(agent, labels, life, shared.now(), &by.name).map_err(|error| not_drawn(&error))?;
    shared.driver.make_join_token(row.clone()).await.map_err(|error| refused::about_tokens(&error))?;
    tracing::info!(by = %by.name, token = row.id, "a join token was made");
    let ca_fingerprint = shared.signer.tls.chain().iter().skip(1).last().map(ca::fingerprint).unwrap_or_default();
    Ok(v1::CreateJoinTokenResponse {
        token: Some(shown(shared, &row)),
        secret: secret.reveal().to_owned(),
        ca_fingerprint,
    })
}

pub(super) async fn list_tokens(
    call: Call<'_, v1::ListJoinTokensRequest>,
) -> Result<v1::ListJoinTokensResponse, Status> {
    let Call { shared, by, asked } = call;
    agents::may_manage(shared, &by, "list join tokens")?;
    let after = Some(asked.page_token.as_str()).filter(|token| !token.is_empty());
    let rows = shared.reader.run(|reader| reader.join_tokens()).await.map_err(|error| refused::by_store(&error))?;
    let (rows, next_page_token) = page::cut(rows, after, page::size(asked.page_size), |row| row.id.as_str());
    Ok(v1::ListJoinTokensResponse { tokens: rows.iter().map(|row| shown(shared, row)).collect(), next_page_token })
}

pub(super) async fn revoke_token(
    call: Call<'_, v1::RevokeJoinTokenRequest>,
) -> Result<v1::RevokeJoinTokenResponse, Status> {
    let Call { shared, by, asked } = call;
    agents::may_manage(shared, &by, "revoke a join token")?;
    let id = one_line(&asked.id);
    let revoked = shared.driver.revoke_join_token(id.clone(), by.name.clone()).await;
    let Some(row) = revoked.map_err(|error| refused::about_tokens(&error))? else {
        let problem = Problem::new(Code::TokenNotFound, format!("no such join token: {id}"));
        return Err(status::of(&problem.so("nothing was changed").next("holdfast agent token list")));
    };
    tracing::info!(by = %by.name, token = row.id, "a join token was taken back");
    Ok(v1::RevokeJoinTokenResponse { token: Some(shown(shared, &row)) })
}

pub(super) async fn remove_agent(call: Call<'_, v1::RemoveAgentRequest>) -> Result<v1::RemoveAgentResponse, Status> {
    let Call { shared, by, asked } = call;
    agents::may_manage(shared, &by, "remove an agent")?;
    let agent: AgentName = parsed("agent", &asked.agent).map_err(|why| status::invalid(&why))?;
    if asked.confirm != agent.as_str() {
        return Err(status::of(&not_confirmed(&agent)));
    }
    let reason = find::reason(&asked.reason)?;
    let identity = identity(shared, &agent).await?;
    if identity.enrolled.is_none() && identity.journal.is_none() && identity.removed.is_none() {
        let problem = Problem::new(Code::AgentNotFound, format!("no such agent: {agent}"));
        return Err(status::of(&problem.so("nothing was changed").next("holdfast agents")));
    }
    let removed = shared.driver.remove_agent(agent.clone(), by.name.clone(), reason.clone()).await;
    if removed.map_err(|error| refused::about_tokens(&error))? {
        shared.revocations.removed(&agent, shared.now());
        stand(shared, &agent).await?;
        tracing::warn!(by = %by.name, %agent, reason, "an agent was removed");
        shared.driver.agents_changed();
    }
    let never_heard = || v1::Agent { name: agent.to_string(), removed: true, ..v1::Agent::default() };
    Ok(v1::RemoveAgentResponse { agent: Some(agents::find(shared, &by, &agent).await?.unwrap_or_else(never_heard)) })
}

async fn identity(shared: &Shared, agent: &AgentName) -> Result<Identity, Status> {
    let name = agent.clone();
    let read = shared.reader.run(move |reader| reader.agent_identity(&name)).await;
    Ok(read.map_err(|error| refused::by_store(&error))?.unwrap_or_default())
}

/// What is written of the agent's identity decides about its work from now on.
pub(crate) async fn stand(shared: &Shared, agent: &AgentName) -> Result<(), Status> {
    shared.directory.stand(agent, Standing::from(&identity(shared, agent).await?));
    Ok(())
}

pub(super) async fn revoke_certificate(
    call: Call<'_, v1::RevokeCertificateRequest>,
) -> Result<v1::RevokeCertificateResponse, Status> {
    let Call { shared, by, asked } = call;
    agents::may_manage(shared, &by, "revoke a certificate")?;
    let fingerprint = asked.fingerprint.to_ascii_lowercase();
    if Digest::parse(&fingerprint).is_none_or(|digest| digest.to_string() != fingerprint) {
        return Err(status::plain(Code::InvalidMessage, "field `fingerprint`: expected 64 hexadecimal digits"));
    }
    let reason = find::reason(&asked.reason)?;
    if let Some(owner) = owner(shared, &fingerprint).await?.filter(|owner| owner.as_str() != asked.confirm) {
        return Err(status::of(&not_confirmed(&owner)));
    }
    let revoked = shared.driver.revoke_certificate(fingerprint.clone(), by.name.clone(), reason.clone()).await;
    let agent = revoked.map_err(|error| refused::about_tokens(&error))?;
    shared.revocations.revoked(&fingerprint);
    tracing::warn!(by = %by.name, fingerprint, ?agent, reason, "a certificate was revoked");
    Ok(v1::RevokeCertificateResponse { agent: agent.map(|agent| agent.to_string()).unwrap_or_default() })
}

/// Whose certificate it is; `None` where nobody was seen with it.
async fn owner(shared: &Shared, fingerprint: &str) -> Result<Option<AgentName>, Status> {
    let wanted = fingerprint.to_owned();
    let read = shared.reader.run(move |reader| {
        let signed = reader.certificate(&wanted)?.and_then(|row| row.agent);
        let shown = || Ok(reader.agents()?.into_iter().find(|row| row.fingerprint == wanted).map(|row| row.name));
        signed.map_or_else(shown, |agent| Ok(Some(agent)))
    });
    read.await.map_err(|error| refused::by_store(&error))
}

fn not_confirmed(agent: &AgentName) -> Problem {
    Problem::new(Code::NotConfirmed, format!("the confirmation is not the agent's name, {agent}"))
        .so("nothing was changed")
        .next(format!("--confirm {agent} --reason TEXT, after reading what follows from it"))
        .with("agent", agent.as_str())
}

fn not_drawn(error: &joining::Error) -> Status {
    let code = match error {
        joining::Error::Life | joining::Error::Labels => Code::InvalidMessage,
        joining::Error::NoRandomness(_) => Code::Internal,
    };
    status::of(&Problem::new(code, error.to_string()).so("no join token was made"))
}

fn shown(shared: &Shared, row: &JoinTokenRow) -> v1::JoinToken {
    let standing = if row.used.is_some() {
        v1::JoinTokenStanding::Used
    } else if row.revoked {
        v1::JoinTokenStanding::Revoked
    } else if row.expires_at <= shared.now() {
        v1::JoinTokenStanding::Expired
    } else {
        v1::JoinTokenStanding::Pending
    };
    v1::JoinToken {
        id: row.id.clone(),
        agent: row.agent.as_ref().map(ToString::to_string).unwrap_or_default(),
        labels: row.labels.clone().into_iter().collect(),
        expires_at: Some(wall_to_wire(row.expires_at)),
        standing: standing as i32,
        created_at: Some(wall_to_wire(row.created_at)),
        created_by: row.created_by.clone(),
        used_by: row.used.as_ref().map(|used| used.by.to_string()).unwrap_or_default(),
    }
}
