//! `holdfast audit list|export|verify`

use std::fs::OpenOptions;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Subcommand;
use holdfast_common::code::{Code, ExitCode};
use holdfast_common::problem::Problem;
use holdfast_common::text::one_line;
use holdfast_coordinator::audit::{self, Checked};

use super::{Context, Outcome, items};
use crate::failure::Failure;
use crate::output::{Listing, Record};
use crate::view::{self, count};

/// Faults of a file that are told. JSON has all of them.
const TOLD: usize = 50;

/// Who did what, and the record as a file that anybody can check.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List what people did and were refused, the latest first
    List {
        /// Of this target only
        #[arg(long, value_name = "TARGET")]
        target: Option<String>,
        /// At most about so many
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
    },
    /// Write events, evidence, decisions and acts as lines of JSON, with the hashes that chain them
    Export {
        /// Of this target only
        #[arg(long, value_name = "TARGET")]
        target: Option<String>,
        /// To this new file instead of stdout
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
    },
    /// Check an exported file, without a coordinator: exits with 0 if nothing of it was changed, else with 1
    Verify {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// An earlier file of the same store: this one must go on from where that one ends
        #[arg(long, value_name = "EARLIER")]
        after: Option<PathBuf>,
    },
}

pub(super) async fn run(command: Command, context: &mut Context) -> Outcome {
    match command {
        Command::List { target, limit } => list(target.unwrap_or_default(), limit, context).await,
        Command::Export { target, to } => export(target.unwrap_or_default(), to.as_deref(), context).await,
        Command::Verify { file, after } => verify(&file, after.as_deref(), context),
    }
}

async fn list(target: String, limit: usize, context: &mut Context) -> Outcome {
    let answer = context.client().await?.audit(&target, limit).await?;
    let whole = crate::output::answer("ListAuditResponse", &answer);
    context.printer.listing(&Listing {
        items: items(&whole, "entries"),
        whole,
        names: answer.entries.iter().map(|entry| one_line(&entry.what)).collect(),
        table: view::audit(&answer.entries, context.canvas()),
        nothing: "nothing that you may audit",
    })?;
    if !answer.next_page_token.is_empty() {
        context.printer.talk("there is more: --limit, or all of it by holdfast audit export")?;
    }
    Ok(ExitCode::Done)
}

async fn export(target: String, to: Option<&Path>, context: &mut Context) -> Outcome {
    let client = context.client().await?;
    let mut lines = client.export_audit(target).await?;
    let mut file = to.map(create).transpose()?;
    let mut count = 0_u64;
    while let Some(piece) = lines.next().await? {
        for line in piece {
            count += 1;
            match &mut file {
                Some(file) => writeln!(file, "{line}").map_err(|error| unwritable(to, error))?,
                None => context.printer.raw(format!("{line}\n").as_bytes())?,
            }
        }
    }
    if let Some(file) = file {
        let file = file.into_inner().map_err(|error| unwritable(to, error.into_error()))?;
        file.sync_all().map_err(|error| unwritable(to, error))?;
    }
    let name = to.map_or_else(|| "FILE".to_owned(), |file| file.display().to_string());
    context.printer.talk(&format!("{count} lines; anybody can check them: holdfast audit verify {name}"))?;
    Ok(ExitCode::Done)
}

/// Only its owner may read it. An earlier file is never written over: it tells what was there then.
fn create(path: &Path) -> Result<BufWriter<std::fs::File>, Failure> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.map(BufWriter::new).map_err(|error| unwritable(Some(path), error))
}

fn unwritable(path: Option<&Path>, error: io::Error) -> Failure {
    let name = path.map_or_else(|| "the file".to_owned(), |path| path.display().to_string());
    Failure::Unexpected(anyhow::Error::new(error).context(format!("could not write {name}")))
}

fn verify(file: &Path, after: Option<&Path>, context: &mut Context) -> Outcome {
    let checked = check(file)?;
    let mut wrong: Vec<String> = checked.faults.iter().map(ToString::to_string).collect();
    if let Some(after) = after {
        let earlier = check(after)?;
        let broken = earlier.faults.iter().map(|fault| format!("{}: {fault}", after.display()));
        wrong.extend(broken.chain(audit::goes_on(&earlier, &checked)));
    }
    let name = file.display().to_string();
    let mut whole = serde_json::to_value(&checked).context("plain data").map_err(Failure::Unexpected)?;
    whole["sound"] = wrong.is_empty().into();
    whole["wrong"] = wrong.clone().into();
    let text = if wrong.is_empty() { sound(&name, &checked, after) } else { String::new() };
    context.printer.record(&Record { whole, name: name.clone(), text })?;
    if wrong.is_empty() {
        return Ok(ExitCode::Done);
    }
    let count = if wrong.len() == 1 { "one fault".to_owned() } else { format!("{} faults", wrong.len()) };
    let problem = Problem::new(Code::StoreUnsound, format!("{name} is not what was recorded: {count}"));
    let problem = wrong.iter().take(TOLD).fold(problem, |problem, wrong| problem.known(wrong));
    let rest = wrong.len().saturating_sub(TOLD);
    let problem = if rest > 0 { problem.known(format!("and {rest} more: --json has all")) } else { problem };
    let problem = problem.so("the file proves nothing from the first fault on");
    Err(problem.next("on the coordinator's host: holdfast-coordinator verify").into())
}

fn check(path: &Path) -> Result<Checked, Failure> {
    let unreadable = |error: io::Error| -> Failure {
        Problem::new(Code::FileSyntax, format!("could not read {}: {error}", path.display()))
            .so("nothing was checked")
            .into()
    };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let checked = audit::check(BufReader::new(file)).map_err(unreadable)?;
    if is_another_file(&checked) {
        return Err(Problem::new(Code::FileSyntax, format!("{} is no exported audit file", path.display()))
            .known("it has no first line of one, and no line of it is a record")
            .so("nothing was checked")
            .next("holdfast audit export --to FILE writes one")
            .into());
    }
    Ok(checked)
}

/// Whether nothing in it is of an export: then nothing was changed, it is just not one.
fn is_another_file(checked: &Checked) -> bool {
    let Checked { events, evidence, decisions, acts, refusals, .. } = checked;
    checked.head.is_none() && [events, evidence, decisions, acts, refusals].into_iter().all(|count| *count == 0)
}

/// What can be said of a file of which nothing is wrong, and where its chains end: to be kept by whoever checks the next one.
fn sound(name: &str, checked: &Checked, after: Option<&Path>) -> String {
    let Checked { events, evidence, decisions, acts, refusals, heads, .. } = checked;
    let mut text = format!("{}: every hash and every event follows\n", one_line(name));
    let counts = [
        format!("{} of {}", count(*events, "event", "events"), count(heads.len() as u64, "target", "targets")),
        count(*evidence, "piece of evidence", "pieces of evidence"),
        count(*decisions, "decision", "decisions"),
        count(*acts, "act", "acts"),
        count(*refusals, "refusal", "refusals"),
    ];
    text += &format!("  {}\n", counts.join(", "));
    if let Some(head) = &checked.head {
        let of = if head.whole { "whole" } else { "in part" };
        text += &format!(
            "  store {} {of}, exported {} by {}\n",
            one_line(&head.store),
            one_line(&head.exported_at),
            one_line(&head.exported_by)
        );
    }
    if let Some(after) = after {
        text += &format!("  it goes on from {}\n", one_line(&after.display().to_string()));
    }
    for (target, tip) in heads {
        text += &format!("  {}  event {}  {}\n", one_line(target), tip.sequence, one_line(&tip.hash));
    }
    if let Some(tip) = &checked.last_act {
        text += &format!("  acts  {}  {}\n", tip.sequence, one_line(&tip.hash));
    }
    text
}
