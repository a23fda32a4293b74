//! `holdfast logs D`
//!
//! Output of steps is data of strangers: on the way to a terminal it keeps its colours and nothing else. What is not there is
//! said where it is missing, with its size: on stderr, and in JSON as a row with a `gap`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use holdfast_common::code::{Code, ExitCode};
use holdfast_common::problem::Problem;
use holdfast_net::backoff::Backoff;
use holdfast_proto::v1;

use super::watching::interrupted;
use super::{Context, Outcome};
use crate::client::Client;
use crate::failure::Failure;
use crate::outcome::Rest;
use crate::output::Record;
use crate::refusal::{self, Call};
use lines::Lines;

mod gap;
mod lines;

const FIRST_DELAY: Duration = Duration::from_millis(200);
const MAX_DELAY: Duration = Duration::from_secs(5);
/// Tries after a stream was lost, before the first byte that is new: some minutes with `-f`, else some seconds.
const TRIES_FOLLOWING: u32 = 60;
const TRIES: u32 = 5;

/// What it takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Pieces of one output come in the order in which they were written. Those of two outputs, also stdout and stderr of one \
step, come in the order in which they arrived: nothing records which was written first. What is missing is named on \
stderr with its size, like [12.4 MiB not kept: cut on the host].

-o json and -o jsonl both print one JSON object per line and piece: attempt, step, stream, offset, and the bytes in \
base64 as data, since they need not be text; or a gap, with why.")]
pub struct Args {
    /// TARGET#N, a UUID, or a unique beginning of one
    pub deployment: String,
    /// Go on as output comes, until all of it is there
    #[arg(short, long)]
    pub follow: bool,
    /// Only this step's
    #[arg(long, value_name = "STEP")]
    pub step: Option<String>,
    /// Only this attempt's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub attempt: Option<u32>,
    /// Only this output
    #[arg(long, value_enum)]
    pub stream: Option<Stream>,
    /// Begin each output at this byte
    #[arg(long, value_name = "BYTES", default_value_t = 0, hide_default_value = true)]
    pub since_offset: u64,
    /// Bytes as they were written; not to a terminal
    #[arg(long, conflicts_with_all = ["json", "output"])]
    pub raw: bool,
}

/// One of a step's two outputs.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

pub(super) async fn run(args: Args, context: &mut Context) -> Outcome {
    if args.raw && context.printer.terminal().interactive {
        return Err(Problem::new(
            Code::InvalidValue,
            "--raw never writes to a terminal: what steps print can take it over",
        )
        .next("send it to a file or a pipe, or leave out --raw")
        .into());
    }
    let client = context.client().await?;
    let deployment = client.deployment(&args.deployment).await?;
    is_there(&deployment, &args)?;
    let about = deployment.summary.unwrap_or_default();
    let narrowed = args.step.is_some() || args.attempt.is_some() || args.stream.is_some() || args.since_offset > 0;
    let request = v1::ReadLogsRequest {
        deployment: about.id.clone(),
        step: args.step.unwrap_or_default(),
        attempt: args.attempt.unwrap_or_default(),
        follow: args.follow,
        stream: match args.stream {
            None => v1::LogChannel::Unspecified,
            Some(Stream::Stdout) => v1::LogChannel::Stdout,
            Some(Stream::Stderr) => v1::LogChannel::Stderr,
        } as i32,
        from: Vec::new(),
        from_offset: args.since_offset,
    };
    let mut reading = Reading { raw: args.raw, read: BTreeMap::new(), last: None, told: false };
    let ended = tokio::select! {
        biased;
        () = interrupted(), if args.follow => return Ok(ExitCode::Interrupted),
        ended = reading.all(&client, request.clone(), context) => ended,
    };
    ended?;
    if !reading.told {
        let label = holdfast_common::text::one_line(&about.label);
        let now = client.deployment(&about.id).await?;
        let nothing = nothing(&never_began(&now, &request), narrowed);
        context.printer.talk(&format!("{nothing}; what is known of each step: holdfast show {label}"))?;
    }
    Ok(ExitCode::Done)
}

/// A step or an attempt that there is not would look like one that wrote nothing. What may yet come is waited for.
fn is_there(deployment: &v1::Deployment, args: &Args) -> Result<(), Failure> {
    let attempts: BTreeSet<u32> = deployment.attempts.iter().map(|attempt| attempt.number).collect();
    let mut steps: Vec<&str> = Vec::new();
    for run in deployment.attempts.iter().flat_map(|attempt| &attempt.steps) {
        if !steps.contains(&run.name.as_str()) {
            steps.push(&run.name);
        }
    }
    let may_come = args.follow && Rest::of_deployment(deployment)?.is_none();
    match (args.attempt, &args.step) {
        (Some(number), _) if !may_come && !attempts.contains(&number) => {
            let numbers: Vec<String> = attempts.iter().map(u32::to_string).collect();
            Err(absent(format!("attempt {number}"), "attempts", &numbers.join(", "), deployment))
        }
        (_, Some(step)) if !steps.is_empty() && !steps.contains(&step.as_str()) => {
            Err(absent(format!("step {step:?}"), "steps", &steps.join(", "), deployment))
        }
        _ => Ok(()),
    }
}

fn absent(what: String, kind: &str, there: &str, deployment: &v1::Deployment) -> Failure {
    let label = super::label(deployment);
    let there = if there.is_empty() { format!("it has had no {kind}") } else { format!("its {kind} are {there}") };
    Problem::new(Code::InvalidValue, format!("{label} has no {what}"))
        .known(there)
        .next(format!("holdfast show {label}"))
        .into()
}

/// What is said where there was nothing to print.
fn nothing(never_began: &[String], narrowed: bool) -> String {
    match never_began {
        [] if narrowed => "nothing that was asked for was written".to_owned(),
        [] => "no step wrote anything".to_owned(),
        [step] => format!("step {step} never began, so it wrote nothing"),
        steps => format!("steps {} never began, so they wrote nothing", steps.join(", ")),
    }
}

/// The steps that were asked for, where it is known of each that no process of it ever ran, nor will.
fn never_began(deployment: &v1::Deployment, asked: &v1::ReadLogsRequest) -> Vec<String> {
    let attempts = deployment.attempts.iter().filter(|one| asked.attempt == 0 || one.number == asked.attempt);
    let runs = attempts.flat_map(|one| &one.steps).filter(|run| asked.step.is_empty() || run.name == asked.step);
    let mut steps: Vec<String> = Vec::new();
    for run in runs {
        let not_spawned = run.exit.as_ref().is_some_and(|exit| exit.kind() == v1::ExitKind::NotSpawned);
        if !not_spawned && run.state() != v1::StepState::NotStarted {
            return Vec::new();
        }
        let name = holdfast_common::text::one_line(&run.name);
        if !steps.contains(&name) {
            steps.push(name);
        }
    }
    steps
}

/// Attempt, step, stream.
type Key = (u32, String, i32);

/// How far one output was read.
#[derive(Default)]
struct Read {
    /// Everything before this offset was printed.
    next: u64,
    lines: Lines,
    /// Gaps that were told, by where they begin and why: a gap of unknown length comes again after a cut.
    gaps: BTreeSet<(u64, i32)>,
}

struct Reading {
    raw: bool,
    read: BTreeMap<Key, Read>,
    last: Option<Key>,
    /// Whether anything was printed, or said to be missing.
    told: bool,
}

impl Reading {
    /// Reads to the end. After a lost connection each output goes on from where it was read to.
    async fn all(
        &mut self,
        client: &Client,
        mut request: v1::ReadLogsRequest,
        context: &mut Context,
    ) -> Result<(), Failure> {
        let mut backoff = Backoff::new(FIRST_DELAY, MAX_DELAY, rand::random());
        let most = if request.follow { TRIES_FOLLOWING } else { TRIES };
        let mut tries = 0;
        loop {
            let before = self.printed();
            request.from = self.positions();
            match self.once(client, &request, context).await {
                Ok(()) => return self.finish(context),
                Err(failure) if failure.is_no_answer() && tries < most => {
                    if self.printed() > before {
                        tries = 0;
                        backoff.reset();
                    }
                    tries += 1;
                    tokio::time::sleep(backoff.next()).await;
                }
                Err(failure) => {
                    self.finish(context)?;
                    return Err(failure);
                }
            }
        }
    }

    fn printed(&self) -> u64 {
        self.read.values().map(|read| read.next).sum()
    }

    fn positions(&self) -> Vec<v1::LogPosition> {
        let position = |((attempt, step, stream), read): (&Key, &Read)| v1::LogPosition {
            attempt: *attempt,
            step: step.clone(),
            stream: *stream,
            offset: read.next,
        };
        self.read.iter().map(position).collect()
    }

    async fn once(
        &mut self,
        client: &Client,
        request: &v1::ReadLogsRequest,
        context: &mut Context,
    ) -> Result<(), Failure> {
        let mut stream = client.logs(request.clone()).await?;
        while let Some(piece) = stream.message().await.map_err(|status| refusal::of(&status, &Call::Reads))? {
            match piece.gap {
                Some(gap) => self.print_gap(piece, &gap, context)?,
                None => self.print(piece, context)?,
            }
        }
        Ok(())
    }

    /// What was printed before is left out, whatever the server sends.
    fn print(&mut self, mut piece: v1::ReadLogsResponse, context: &mut Context) -> Result<(), Failure> {
        let key = (piece.attempt, piece.step.clone(), piece.stream);
        let read = self.read.entry(key.clone()).or_default();
        let end = piece.offset.saturating_add(piece.data.len() as u64);
        if end <= read.next {
            return Ok(());
        }
        let known = read.next.saturating_sub(piece.offset);
        piece.data = piece.data.split_off(usize::try_from(known).unwrap_or(usize::MAX).min(piece.data.len()));
        piece.offset = piece.offset.saturating_add(known);
        read.next = end;
        self.told = true;
        if self.raw {
            return Ok(context.printer.raw(&piece.data)?);
        }
        if context.printer.format().is_json() {
            return row(piece, context);
        }
        let colour = context.printer.terminal().colour;
        let text = read.lines.push(&piece.data, colour);
        self.heading(&key, !text.is_empty(), context)?;
        Ok(context.printer.raw(text.as_bytes())?)
    }

    fn print_gap(
        &mut self,
        piece: v1::ReadLogsResponse,
        gap: &v1::LogGap,
        context: &mut Context,
    ) -> Result<(), Failure> {
        let key = (piece.attempt, piece.step.clone(), piece.stream);
        let read = self.read.entry(key.clone()).or_default();
        if gap.reason() != v1::LogGapReason::NotArrived {
            read.next = read.next.max(gap.from.saturating_add(gap.length.unwrap_or_default()));
        }
        if !read.gaps.insert((gap.from, gap.reason)) {
            return Ok(());
        }
        self.told = true;
        if context.printer.format().is_json() {
            return row(piece, context);
        }
        if !self.raw {
            let text = read.lines.finish(context.printer.terminal().colour);
            self.heading(&key, true, context)?;
            context.printer.raw(text.as_bytes())?;
        }
        Ok(context.printer.talk(&gap::sentence(gap))?)
    }

    /// Says on stderr whose output follows, where that changes.
    fn heading(&mut self, key: &Key, is_news: bool, context: &mut Context) -> Result<(), Failure> {
        if !is_news || self.last.as_ref() == Some(key) {
            return Ok(());
        }
        let (attempt, step, stream) = key;
        let stream = match v1::LogChannel::try_from(*stream) {
            Ok(v1::LogChannel::Stdout) => "stdout",
            Ok(v1::LogChannel::Stderr) => "stderr",
            Ok(v1::LogChannel::Unspecified) | Err(_) => "a stream that this version does not know",
        };
        let step = holdfast_common::text::one_line(step);
        context.printer.talk(&format!("== attempt {attempt}, step {step}, {stream}"))?;
        self.last = Some(key.clone());
        Ok(())
    }

    /// Prints last lines that have no end.
    fn finish(&mut self, context: &mut Context) -> Result<(), Failure> {
        let colour = context.printer.terminal().colour;
        let mut read = std::mem::take(&mut self.read);
        for (key, read) in &mut read {
            let text = read.lines.finish(colour);
            self.heading(key, !text.is_empty(), context)?;
            context.printer.raw(text.as_bytes())?;
        }
        Ok(())
    }
}

fn row(piece: v1::ReadLogsResponse, context: &mut Context) -> Result<(), Failure> {
    let whole = holdfast_proto::json::to_json("ReadLogsResponse", &piece);
    Ok(context.printer.streamed(&Record { whole, name: piece.step, text: String::new() })?)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
        #[command(flatten)]
        output: crate::output::Options,
    }

    #[test]
    fn a_step_or_attempt_that_there_is_not_is_an_error_that_names_those_there_are() {
        let steps = ["fetch", "switch"].map(|name| v1::StepRun { name: name.to_owned(), ..v1::StepRun::default() });
        let of = |state: v1::DeploymentState, attempts: Vec<v1::Attempt>| v1::Deployment {
            summary: Some(v1::DeploymentSummary { state: state as i32, ..v1::DeploymentSummary::default() }),
            attempts,
            ..v1::Deployment::default()
        };
        let one = v1::Attempt { number: 1, steps: steps.to_vec(), ..v1::Attempt::default() };
        let asked = |deployment: &v1::Deployment, more: &[&str]| {
            let line = Line::try_parse_from([&["logs", "shop@prod#1"], more].concat()).expect("understood");
            is_there(deployment, &line.args).map_err(|failure| failure.problem().expect("a refusal").to_string())
        };
        let ended = of(v1::DeploymentState::Succeeded, vec![one.clone()]);
        assert_eq!(asked(&ended, &["--step", "switch", "--attempt", "1"]), Ok(()));
        assert!(asked(&ended, &["--step", "nosuch"]).is_err_and(|told| told.contains("its steps are fetch, switch")));
        assert!(asked(&ended, &["--attempt", "9", "-f"]).is_err_and(|told| told.contains("its attempts are 1")));
        let active = of(v1::DeploymentState::Active, vec![one]);
        assert_eq!(asked(&active, &["--attempt", "2", "-f"]), Ok(()), "it may come");
        let queued = of(v1::DeploymentState::Queued, Vec::new());
        assert_eq!(asked(&queued, &["--step", "switch", "-f"]), Ok(()), "its steps are not known yet");
        assert!(asked(&queued, &["--attempt", "1"]).is_err_and(|told| told.contains("no attempts")));
    }

    #[test]
    fn a_step_that_never_began_is_told_as_such_and_one_that_may_yet_begin_is_not() {
        let run = |name: &str, state: v1::StepState, exit: Option<v1::ExitKind>| v1::StepRun {
            name: name.to_owned(),
            state: state as i32,
            exit: exit.map(|kind| v1::Exit { kind: kind as i32, ..v1::Exit::default() }),
            ..v1::StepRun::default()
        };
        let told = |steps, step: &str| {
            let attempts = vec![v1::Attempt { number: 1, steps, ..v1::Attempt::default() }];
            let asked = v1::ReadLogsRequest { step: step.to_owned(), ..v1::ReadLogsRequest::default() };
            nothing(&never_began(&v1::Deployment { attempts, ..v1::Deployment::default() }, &asked), !step.is_empty())
        };
        let refused = || run("one", v1::StepState::Failed, Some(v1::ExitKind::NotSpawned));
        let after = || run("two", v1::StepState::NotStarted, None);
        assert_eq!(told(vec![refused()], ""), "step one never began, so it wrote nothing");
        assert_eq!(told(vec![refused(), after()], ""), "steps one, two never began, so they wrote nothing");
        let silent = run("two", v1::StepState::Applied, Some(v1::ExitKind::Exited));
        assert_eq!(told(vec![refused(), silent.clone()], "one"), "step one never began, so it wrote nothing");
        assert_eq!(told(vec![refused(), silent], ""), "no step wrote anything");
        assert_eq!(
            told(vec![run("two", v1::StepState::Pending, None)], "two"),
            "nothing that was asked for was written"
        );
    }
}
