//! `holdfast logs D`
//!
//! Output of steps is data of strangers: on the way to a terminal it keeps its colours and nothing else.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_common::code::ExitCode;
use holdfast_net::backoff::Backoff;
use holdfast_proto::v1;

use super::watching::interrupted;
use super::{Context, Outcome};
use crate::client::Client;
use crate::failure::Failure;
use crate::output::Record;
use crate::refusal::{self, Call};
use lines::Lines;

mod lines;

const FIRST_DELAY: Duration = Duration::from_millis(200);
const MAX_DELAY: Duration = Duration::from_secs(5);
/// Tries after a stream was lost, before the first byte that is new.
const TRIES: u32 = 60;

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// TARGET#N, a UUID, or a unique beginning of one
    pub deployment: String,
    /// Go on as output comes, until the deployment has ended
    #[arg(short, long)]
    pub follow: bool,
    /// Only this step's
    #[arg(long, value_name = "STEP")]
    pub step: Option<String>,
    /// Only this attempt's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub attempt: Option<u32>,
    /// Bytes as they were written; not to a terminal
    #[arg(long, conflicts_with_all = ["json", "output"])]
    pub raw: bool,
}

pub(super) async fn run(args: Args, context: &mut Context) -> Outcome {
    if args.raw && context.printer.terminal().interactive {
        return Err(holdfast_common::problem::Problem::new(
            holdfast_common::code::Code::InvalidValue,
            "--raw never writes to a terminal: what steps print can take it over",
        )
        .next("send it to a file or a pipe, or leave out --raw")
        .into());
    }
    let client = context.client().await?;
    let about = client.deployment(&args.deployment).await?.summary.unwrap_or_default();
    let request = v1::ReadLogsRequest {
        deployment: about.id,
        step: args.step.unwrap_or_default(),
        attempt: args.attempt.unwrap_or_default(),
        follow: args.follow,
    };
    let mut reading = Reading { raw: args.raw, read: BTreeMap::new(), last: None };
    tokio::select! {
        biased;
        () = interrupted(), if args.follow => Ok(ExitCode::Interrupted),
        ended = reading.all(&client, &request, context) => ended.map(|()| ExitCode::Done),
    }
}

/// Attempt, step, stream.
type Key = (u32, String, i32);

#[derive(Default)]
struct Stream {
    /// Everything before this offset was printed.
    next: u64,
    lines: Lines,
}

struct Reading {
    raw: bool,
    read: BTreeMap<Key, Stream>,
    last: Option<Key>,
}

impl Reading {
    /// Reads to the end. A lost stream is read again from its start, and what was printed is skipped.
    async fn all(
        &mut self,
        client: &Client,
        request: &v1::ReadLogsRequest,
        context: &mut Context,
    ) -> Result<(), Failure> {
        let mut backoff = Backoff::new(FIRST_DELAY, MAX_DELAY, rand::random());
        let mut tries = 0;
        loop {
            let before = self.printed();
            match self.once(client, request, context).await {
                Ok(()) => return self.finish(context),
                Err(failure) if failure.is_no_answer() && request.follow && tries < TRIES => {
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
        self.read.values().map(|stream| stream.next).sum()
    }

    async fn once(
        &mut self,
        client: &Client,
        request: &v1::ReadLogsRequest,
        context: &mut Context,
    ) -> Result<(), Failure> {
        let mut stream = client.logs(request.clone()).await?;
        while let Some(piece) = stream.message().await.map_err(|status| refusal::of(&status, &Call::Reads))? {
            self.print(piece, context)?;
        }
        Ok(())
    }

    fn print(&mut self, mut piece: v1::ReadLogsResponse, context: &mut Context) -> Result<(), Failure> {
        let key = (piece.attempt, piece.step.clone(), piece.stream);
        let stream = self.read.entry(key.clone()).or_default();
        let end = piece.offset.saturating_add(piece.data.len() as u64);
        let known = stream.next.saturating_sub(piece.offset);
        if end <= stream.next && piece.cut == 0 && !piece.data.is_empty() {
            return Ok(());
        }
        piece.data = piece.data.split_off(usize::try_from(known).unwrap_or(usize::MAX).min(piece.data.len()));
        piece.offset = piece.offset.saturating_add(known);
        stream.next = stream.next.max(end);
        if self.raw {
            return Ok(context.printer.raw(&piece.data)?);
        }
        if context.printer.format().is_json() {
            let whole = crate::output::answer("ReadLogsResponse", &piece);
            return Ok(context.printer.streamed(&Record { whole, name: piece.step, text: String::new() })?);
        }
        let colour = context.printer.terminal().colour;
        let mut text = stream.lines.push(&piece.data, colour);
        if piece.cut > 0 {
            text.push_str(&stream.lines.finish(colour));
        }
        self.heading(&key, &text, context)?;
        context.printer.raw(text.as_bytes())?;
        if piece.cut > 0 {
            context.printer.talk(&format!("[{} more bytes of it were not kept]", piece.cut))?;
        }
        Ok(())
    }

    /// Says on stderr whose output follows, where that changes.
    fn heading(&mut self, key: &Key, text: &str, context: &mut Context) -> Result<(), Failure> {
        if text.is_empty() || self.last.as_ref() == Some(key) {
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
        for (key, stream) in &mut read {
            let text = stream.lines.finish(colour);
            self.heading(key, &text, context)?;
            context.printer.raw(text.as_bytes())?;
        }
        Ok(())
    }
}
