//! A person says which copy is the agent.

use holdfast_common::code::Code;
use holdfast_common::id::AgentName;
use holdfast_common::problem::Problem;
use holdfast_common::text::{bounded, one_line};
use holdfast_proto::convert::parsed;
use holdfast_proto::v1;
use tonic::Status;

use super::{Call, agents};
use crate::driver::Judged;
use crate::grpc::{refused, status};
use crate::store::Act;

/// Longest reason that is kept, in bytes.
const MAX_REASON: usize = 1000;

/// What came of it.
enum Unlocked {
    /// Nobody locked it.
    NotLocked,
    /// It was never heard of.
    NoSuchAgent,
    /// It is unlocked, or lets a new journal in.
    Done,
}

pub(super) async fn unlock(call: Call<'_, v1::UnlockAgentRequest>) -> Result<v1::UnlockAgentResponse, Status> {
    let Call { shared, by, asked } = call;
    agents::may_manage(shared, &by, "unlock an agent")?;
    let agent: AgentName = parsed("agent", &asked.agent).map_err(|why| status::invalid(&why))?;
    let reason = one_line(&bounded(asked.reason.trim(), MAX_REASON)).to_string();
    if reason.is_empty() {
        let problem = Problem::new(Code::ReasonMissing, "an unlock is recorded for ever and needs a reason");
        return Err(status::of(&problem.so("nothing was changed").next("--reason TEXT")));
    }
    let admits = asked.admit_new_journal;
    let (name, operator) = (agent.clone(), by.name.clone());
    let unlocked = shared.driver.identify(agent.clone(), move |identity, now| {
        if identity.journal.is_none() && identity.enrolled.is_none() {
            return Judged::quietly(Unlocked::NoSuchAgent);
        }
        if identity.lock.is_none() && !admits {
            return Judged::quietly(Unlocked::NotLocked);
        }
        identity.unlock(operator.clone(), admits, now);
        let admitted = if admits { "; a new journal is let in" } else { "" };
        let detail = format!("{reason}{admitted}");
        let act = Act { at: now, by: operator.to_string(), kind: "agent_unlocked", about: name.to_string(), detail };
        Judged { answer: Unlocked::Done, acts: vec![act] }
    });
    match unlocked.await.map_err(|error| refused::about_agents(&error))? {
        Unlocked::Done => {
            tracing::warn!(by = %by.name, %agent, admits, "an agent was unlocked");
            shared.driver.agents_changed();
            Ok(v1::UnlockAgentResponse { agent: agents::find(shared, &by, &agent).await? })
        }
        Unlocked::NotLocked => {
            let problem = Problem::new(Code::NotLocked, format!("{agent} is not locked")).so("nothing was changed");
            Err(status::of(&problem.next("holdfast agents")))
        }
        Unlocked::NoSuchAgent => {
            let problem = Problem::new(Code::AgentNotFound, format!("no such agent: {agent}"));
            Err(status::of(&problem.so("nothing was changed").next("holdfast agents")))
        }
    }
}
