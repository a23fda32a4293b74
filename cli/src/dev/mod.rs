//! `holdfast dev`: a whole Holdfast on one machine, to try things out and to break them.
//!
//! ```text
//!   holdfast dev ──┬── holdfast coordinator serve      one store, one address on loopback
//!                  ├── proxy ── holdfast agent run     web-01 ┐ two agents, one file system
//!                  ├── proxy ── holdfast agent run     web-02 ┘
//!                  └── control.sock ◀── holdfast dev cut web-01, from another terminal
//! ```
//!
//! The services are what they are elsewhere: child processes that know nothing of each other but an address. They end
//! with dev, and one that dies is told, never silently restarted.

mod api;
mod args;
mod child;
mod control;
mod folder;
mod hidden;
mod leftovers;
mod lines;
mod narrator;
mod pointer;
mod services;
mod signals;
mod site;
mod stage;
mod tour;

use std::path::Path;

use holdfast_common::code::ExitCode;
use holdfast_common::text::one_line;

pub use args::{Agent, Args, Command};
pub use hidden::dispatch;

use crate::output::Options;
use control::{Answer, Request};

/// Runs it. To be awaited on the process's main thread: the children's lives hang on the thread that started them.
///
/// An error is for a person: what could not be done, and why.
pub async fn run(args: &Args, output: &Options) -> anyhow::Result<ExitCode> {
    let data = args.data.as_deref();
    match &args.command {
        Some(Command::Cut(cut)) => {
            let agent = cut.agent.clone();
            let request = if cut.silent { Request::Silence { agent } } else { Request::Cut { agent } };
            ask(data, &request).await
        }
        Some(Command::Heal(Agent { agent })) => ask(data, &Request::Heal { agent: agent.clone() }).await,
        Some(Command::Pause(Agent { agent })) => ask(data, &Request::Pause { agent: agent.clone() }).await,
        Some(Command::Resume(Agent { agent })) => ask(data, &Request::Resume { agent: agent.clone() }).await,
        Some(Command::Kill(Agent { agent })) => ask(data, &Request::Kill { agent: agent.clone() }).await,
        Some(Command::Start(Agent { agent })) => ask(data, &Request::Start { agent: agent.clone() }).await,
        None => stage::run(args, output).await,
    }
}

async fn ask(data: Option<&Path>, request: &Request) -> anyhow::Result<ExitCode> {
    match control::ask(data, request).await? {
        Answer::Done { detail } => {
            anstream::println!("{}", one_line(&detail));
            Ok(ExitCode::Done)
        }
        Answer::Refused { detail } => anyhow::bail!("{}", one_line(&detail)),
    }
}
