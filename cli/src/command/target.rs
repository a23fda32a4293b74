//! `holdfast target apply|show|inspect`

use clap::Subcommand;
use holdfast_common::code::ExitCode;
use holdfast_common::text::one_line;
use holdfast_common::time::Millis;
use holdfast_proto::v1;

use super::{Context, Outcome, file, items, record};
use crate::failure::Failure;
use crate::output::Listing;
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
}

pub(super) async fn run(command: Command, context: &mut Context) -> Outcome {
    match command {
        Command::Apply { file } => apply(&file, context).await,
        Command::Show { target } => show(&target, context).await,
        Command::Inspect { target } => inspect(&target, context).await,
    }
}

async fn apply(name: &str, context: &mut Context) -> Outcome {
    let text = file::text(name, context)?;
    let client = context.client().await?;
    let target = client.apply_target(text).await.map_err(|failure| file::named(failure, name))?;
    print(&target, context)?;
    Ok(ExitCode::Done)
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
