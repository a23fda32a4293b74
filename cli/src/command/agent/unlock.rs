//! `holdfast agent unlock`

use holdfast_common::text::one_line;
use holdfast_proto::v1;

use super::super::confirm::{self, Given};
use super::super::{Context, Outcome};
use super::{find, shown};

/// What an unlock takes.
#[derive(Debug, clap::Args)]
pub struct Unlock {
    /// The agent's name
    pub name: String,
    /// What you found and did; kept for ever
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Let its next session come from a journal that was never seen or is behind, once: after its disk was lost
    #[arg(long)]
    pub admit_new_journal: bool,
    /// The agent's name, instead of typing it when asked
    #[arg(long, value_name = "NAME")]
    pub confirm: Option<String>,
}

pub(super) async fn unlock(args: Unlock, context: &mut Context) -> Outcome {
    let given =
        Given { what: "agent", name: args.confirm.as_deref(), reason: args.reason.as_deref(), option: "--reason" };
    confirm::possible(given, &args.name, context)?;
    let agent = find(&args.name, context).await?;
    confirm::name(given, &args.name, &consequences(&agent, args.admit_new_journal), context)?;
    let reason = confirm::reason(args.reason, "--reason", "why? ", context)?;
    let client = context.client().await?;
    let request = v1::UnlockAgentRequest { agent: args.name, reason, admit_new_journal: args.admit_new_journal };
    let agent = client.unlock_agent(request).await?;
    shown(&agent, context)
}

fn consequences(agent: &v1::Agent, admits: bool) -> Vec<String> {
    let name = one_line(&agent.name);
    let mut lines = Vec::new();
    if let Some(lock) = &agent.lock {
        lines.push(format!("the lock of {name} goes, which is there because {} was seen", one_line(&lock.why)));
    }
    lines.push(format!("{name} gets new work again, and what its journal says from now on counts as proof"));
    lines.push("if the copy still runs, whichever greets first is taken for the agent".to_owned());
    if admits {
        lines.push(format!("whoever comes next with the certificate of {name} is taken for it, with any journal"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlock_says_what_was_seen_and_what_follows() {
        let lock = Some(v1::IdentityLock { since: None, why: "an older journal".to_owned() });
        let agent = v1::Agent { name: "web-07".to_owned(), lock, ..v1::Agent::default() };
        let lines = consequences(&agent, false);
        assert_eq!(lines[0], "the lock of web-07 goes, which is there because an older journal was seen");
        assert!(!lines.iter().any(|line| line.contains("any journal")), "{lines:?}");
        assert!(consequences(&agent, true).last().is_some_and(|line| line.contains("any journal")));
    }
}
