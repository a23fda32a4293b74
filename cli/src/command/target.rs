//! `holdfast target apply|show|inspect|hold|unhold`

use clap::Subcommand;
use holdfast_common::code::ExitCode;
use holdfast_common::text::one_line;
use holdfast_common::time::{Millis, Wall};
use holdfast_proto::convert::{duration_to_wire, wall_to_wire};
use holdfast_proto::v1;
use holdfast_proto::v1::hold_target_request::Until;

use super::confirm::Given;
use super::{Context, Outcome, confirm, file, items, record};
use crate::failure::Failure;
use crate::output::{Format, Listing};
use crate::view;

/// How long a reading is waited for.
pub(super) const READING: Millis = Millis::from_secs(20);

/// What to do with one target.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Declare a target, or declare it anew
    Apply {
        /// The target's file, TOML or JSON; `-` is the input
        file: String,
    },
    /// Show who holds it, since when, why, who waits
    Show {
        /// Its name
        target: String,
    },
    /// Have an agent read it; changes nothing
    Inspect {
        /// Its name
        target: String,
    },
    /// Put on record which revision you saw at a resource that nobody knows; it stays your word for ever (severe)
    Attest(Attest),
    /// Let nothing new begin on it. What is under way goes on; placed again, it replaces reason and time
    Hold {
        /// Its name
        target: String,
        /// Why; shown to whoever waits
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        /// When it ends by itself: an instant like 2026-11-29T18:00:00Z, or a length of time like 2h30m
        #[arg(long, value_name = "WHEN|DURATION", value_parser = until)]
        until: Option<Until>,
    },
    /// Take the hold away: what is first in the queue begins
    Unhold {
        /// Its name
        target: String,
    },
}

/// What an attestation of a revision takes.
#[derive(Debug, clap::Args)]
pub struct Attest {
    /// The target's name
    pub target: String,
    /// Which of its resources
    #[arg(long, value_name = "RESOURCE")]
    pub resource: String,
    /// The revision you saw there
    #[arg(long, value_name = "REVISION")]
    pub observed: String,
    /// How you know; kept for ever
    #[arg(long, value_name = "TEXT")]
    pub how: Option<String>,
    /// The target's name, instead of typing it when asked
    #[arg(long, value_name = "TARGET")]
    pub confirm: Option<String>,
}

fn until(text: &str) -> Result<Until, String> {
    if let Ok(lasts) = text.parse::<Millis>() {
        return Ok(Until::Lasts(duration_to_wire(lasts)));
    }
    let instant = text.parse::<jiff::Timestamp>();
    instant.map(|at| Until::At(wall_to_wire(Wall(at.as_microsecond())))).map_err(|_| {
        "write an instant with its zone like 2026-11-29T18:00:00Z, or a length of time like 2h30m".to_owned()
    })
}

pub(super) async fn run(command: Command, context: &mut Context) -> Outcome {
    match command {
        Command::Apply { file } => apply(&file, context).await,
        Command::Show { target } => show(&target, context).await,
        Command::Inspect { target } => inspect(&target, context).await,
        Command::Attest(args) => attest(args, context).await,
        Command::Hold { target, reason, until } => hold(target, reason, until, context).await,
        Command::Unhold { target } => unhold(target, context).await,
    }
}

async fn attest(args: Attest, context: &mut Context) -> Outcome {
    let given = Given { what: "target", name: args.confirm.as_deref(), reason: args.how.as_deref(), option: "--how" };
    let confirm = confirm::name(given, &args.target, &consequences(&args), context)?;
    let request = v1::AttestRevisionRequest {
        target: args.target,
        resource: args.resource,
        observed_revision: args.observed,
        how: confirm::reason(args.how, "--how", "how do you know? ", context)?,
        confirm,
    };
    let target = context.client().await?.attest_revision(request).await?;
    print(&target, context)?;
    Ok(ExitCode::Done)
}

fn consequences(args: &Attest) -> Vec<String> {
    let Attest { target, resource, observed, .. } = args;
    vec![
        format!(
            "attesting that {resource} of {target} is at {observed}: Holdfast can't check it, and goes by your word"
        ),
        format!("what waits for {target} begins on top of it; it is kept and shown as your attestation"),
    ]
}

async fn hold(target: String, reason: Option<String>, until: Option<Until>, context: &mut Context) -> Outcome {
    let reason = confirm::reason(reason, "--reason", "why? ", context)?;
    let answer = context.client().await?.hold_target(v1::HoldTargetRequest { target, reason, until }).await?;
    print(&answer, context)?;
    if let Some(holder) = answer.holder.filter(|_| context.printer.format() == Format::Table) {
        context.printer.talk(&format!(
            "{} holds the target: an attempt of it that is under way goes on, a new one waits",
            one_line(&holder.label)
        ))?;
    }
    Ok(ExitCode::Done)
}

async fn unhold(target: String, context: &mut Context) -> Outcome {
    let target = context.client().await?.unhold_target(v1::UnholdTargetRequest { target }).await?;
    print(&target, context)?;
    Ok(ExitCode::Done)
}

async fn apply(name: &str, context: &mut Context) -> Outcome {
    let text = file::text(name, context)?;
    let client = context.client().await?;
    let answer = client.apply_target(text).await.map_err(|failure| file::named(failure, name))?;
    let target = answer.target.clone().ok_or(Failure::incomplete("target"))?;
    context.printer.talk(&changed(answer.change(), &one_line(&target.name)))?;
    print(&target, context)?;
    Ok(ExitCode::Done)
}

fn changed(change: v1::TargetChange, target: &str) -> String {
    match change {
        v1::TargetChange::New => format!("{target} is declared"),
        v1::TargetChange::Anew => format!("{target} is declared anew: it was declared otherwise before"),
        v1::TargetChange::None => format!("nothing has changed: {target} was declared like this already"),
        v1::TargetChange::Unspecified => format!("{target} is declared; what that changed is not told to this version"),
    }
}

async fn show(name: &str, context: &mut Context) -> Outcome {
    let target = context.client().await?.target(name).await?;
    print(&target, context)?;
    Ok(ExitCode::Done)
}

fn print(target: &v1::Target, context: &mut Context) -> Result<(), Failure> {
    let text = view::target(target, context.canvas());
    Ok(context.printer.record(&record("Target", target, one_line(&target.name), text))?)
}

async fn inspect(name: &str, context: &mut Context) -> Outcome {
    let answer = context.client().await?.inspect_target(name, READING).await?;
    let whole = crate::output::answer("InspectTargetResponse", &answer);
    context.printer.listing(&Listing {
        items: items(&whole, "readings"),
        whole,
        names: answer.readings.iter().map(|reading| one_line(&reading.resource)).collect(),
        table: view::readings(&answer.readings),
        nothing: "nothing of this target can be read",
    })?;
    let all_read = !answer.readings.is_empty() && answer.readings.iter().all(|one| one.reading.is_some());
    if all_read {
        return Ok(ExitCode::Done);
    }
    context.printer.talk("not everything was read: no reading is not a reading of nothing")?;
    Ok(ExitCode::Precondition)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_that_changes_nothing_is_told_apart_from_one_that_does() {
        let told: Vec<String> = [v1::TargetChange::New, v1::TargetChange::Anew, v1::TargetChange::None]
            .map(|change| changed(change, "shop@prod"))
            .into();
        assert!(told[2].starts_with("nothing has changed") && told[0] != told[1], "{told:?}");
    }
}
