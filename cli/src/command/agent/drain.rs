//! Nothing new for an agent, and new work again.

use holdfast_common::code::ExitCode;
use holdfast_common::text::one_line;
use holdfast_proto::v1;

use super::super::{Context, Outcome, confirm, record};
use crate::failure::Failure;
use crate::output::Format;
use crate::view;

pub(super) async fn drain(agent: String, reason: Option<String>, context: &mut Context) -> Outcome {
    let reason = confirm::reason(reason, "--reason", "why? ", context)?;
    let answer = context.client().await?.drain_agent(v1::DrainAgentRequest { agent, reason }).await?;
    print(&answer, context)?;
    if !answer.holds.is_empty() && context.printer.format() == Format::Table {
        let holds = answer.holds.iter().map(|label| one_line(label)).collect::<Vec<_>>().join(", ");
        context.printer.talk(&format!("what it holds goes on: {holds}"))?;
    }
    Ok(ExitCode::Done)
}

pub(super) async fn resume(agent: String, context: &mut Context) -> Outcome {
    let answer = context.client().await?.resume_agent(v1::ResumeAgentRequest { agent }).await?;
    print(&answer, context)?;
    Ok(ExitCode::Done)
}

fn print(agent: &v1::Agent, context: &mut Context) -> Result<(), Failure> {
    let canvas = context.canvas();
    let text = view::agents(std::slice::from_ref(agent), canvas).draw(canvas.terminal);
    Ok(context.printer.record(&record("Agent", agent, one_line(&agent.name), text))?)
}
