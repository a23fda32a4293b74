//! What `deploy`, `watch`, `wait` and `cancel --wait` share: following a deployment to where it comes to rest.
//!
//! Ctrl-C and `--timeout` end the watching, never the deployment.

use std::time::Duration;

use holdfast_common::code::ExitCode;
use holdfast_common::text::one_line;
use holdfast_common::time::Millis;
use holdfast_proto::v1;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior};

use super::{Context, label};
use crate::client::Client;
use crate::failure::Failure;
use crate::follow::{Follower, News, Teller};
use crate::outcome::{Goal, Rest};
use crate::output::{Format, Record};
use crate::view::{self, Progress};

const TICK: Duration = Duration::from_millis(250);
/// Ticks between two looks at the deployment, for the lines that tell whether anybody is heard.
const LOOK_EVERY: usize = 8;

/// What is told on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    /// Each event.
    Events,
    /// Each stage of a cancel.
    Stages,
    /// Nothing.
    Silent,
}

/// What to follow, and how far.
#[derive(Clone, Debug)]
pub(super) struct Watching {
    pub(super) client: Client,
    /// Identity of the deployment.
    pub(super) id: String,
    /// What people call it.
    pub(super) label: String,
    pub(super) goal: Goal,
    pub(super) voice: Voice,
    pub(super) timeout: Option<Millis>,
}

/// How the watching ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The deployment is where it was waited for.
    AtRest(Box<v1::Deployment>, Rest),
    /// The watching stopped before, for this code. Said already.
    Left(ExitCode),
}

impl Watching {
    /// Follows. What is recorded already is told first.
    pub(super) async fn run(self, context: &mut Context) -> Result<Ended, Failure> {
        let (label, timeout) = (one_line(&self.label), self.timeout);
        let ended = tokio::select! {
            biased;
            () = interrupted() => None,
            ended = Follow::start(self).run(context) => Some(ended?),
            () = passed(timeout) => return timed_out(&label, context),
        };
        match ended {
            Some(ended) => Ok(ended),
            None => {
                context.printer.talk(&format!("left. {label} goes on; come back with: holdfast watch {label}"))?;
                Ok(Ended::Left(ExitCode::Interrupted))
            }
        }
    }
}

fn timed_out(label: &str, context: &mut Context) -> Result<Ended, Failure> {
    context.printer.talk(&format!("the time of --timeout is over. Nothing was stopped; {label} goes on"))?;
    context.printer.talk(&format!("come back with: holdfast watch {label}"))?;
    Ok(Ended::Left(ExitCode::ClientTimeout))
}

/// Ends with Ctrl-C. Where that can't be listened for, it ends the process as ever.
pub(super) async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

pub(super) async fn passed(timeout: Option<Millis>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout.into()).await,
        None => std::future::pending().await,
    }
}

struct Follow {
    watching: Watching,
    follower: Follower,
    teller: Teller,
    /// Sequence number of the last event told.
    last: u64,
    caught_up: bool,
    lost: Option<Instant>,
    told: Option<(v1::Deployment, Instant)>,
    stages: usize,
    /// What holds a stage up was said.
    held_up_told: bool,
    /// Why it waits was said.
    waiting_told: bool,
    turn: usize,
}

impl Follow {
    fn start(watching: Watching) -> Self {
        let follower = Follower::start(watching.client.clone(), watching.id.clone(), 1, true);
        Self {
            watching,
            follower,
            teller: Teller::default(),
            last: 0,
            caught_up: false,
            lost: None,
            told: None,
            stages: 0,
            held_up_told: false,
            waiting_told: false,
            turn: 0,
        }
    }

    async fn run(mut self, context: &mut Context) -> Result<Ended, Failure> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut unanswered = false;
        loop {
            let look = tokio::select! {
                news = self.follower.next() => match news? {
                    Some(news) => self.hear(news, context)?,
                    None => return Err(Failure::incomplete("further events")),
                },
                _ = tick.tick() => self.tick(context)? || unanswered,
            };
            if look {
                match self.look(context).await {
                    Ok(Some(ended)) => return self.finish(ended, context).await,
                    Ok(None) => unanswered = false,
                    Err(failure) if failure.is_no_answer() => unanswered = true,
                    Err(failure) => return Err(failure),
                }
            }
        }
    }

    /// Whether the deployment is to be looked at.
    fn hear(&mut self, news: News, context: &mut Context) -> Result<bool, Failure> {
        match news {
            News::Event(event) => {
                self.tell(&event, context)?;
                self.draw(context)?;
                let moved = Rest::of(event.state_after).is_ok_and(|rest| rest.is_some());
                let shown = context.printer.talk_terminal().interactive && self.watching.voice == Voice::Events;
                Ok(self.caught_up && (moved || shown || self.watching.voice == Voice::Stages))
            }
            News::CaughtUp => {
                self.caught_up = true;
                if self.lost.take().is_some() {
                    context.printer.talk("contact with the coordinator is back")?;
                }
                Ok(true)
            }
            News::Lost(failure) => {
                self.caught_up = false;
                if self.lost.is_none() {
                    self.lost = Some(Instant::now());
                    context.printer.talk(&lost(&failure))?;
                }
                Ok(false)
            }
        }
    }

    fn tell(&mut self, event: &v1::Event, context: &mut Context) -> Result<(), Failure> {
        self.last = event.sequence;
        self.waiting_told |= event.kind == "waits";
        match self.watching.voice {
            Voice::Events => tell_event(&mut self.teller, event, context),
            Voice::Stages | Voice::Silent => Ok(()),
        }
    }

    /// Draws the next frame. Whether the deployment is to be looked at.
    fn tick(&mut self, context: &mut Context) -> Result<bool, Failure> {
        if !self.caught_up && self.lost.is_none() {
            return Ok(false);
        }
        self.turn += 1;
        self.draw(context)?;
        let drawn = context.printer.talk_terminal().interactive && self.watching.voice != Voice::Silent;
        // Off a terminal there are no lines to keep true; events tell when to look.
        Ok(drawn && self.lost.is_none() && self.turn.is_multiple_of(LOOK_EVERY))
    }

    fn draw(&self, context: &mut Context) -> Result<(), Failure> {
        if !context.printer.talk_terminal().interactive || self.watching.voice == Voice::Silent {
            return Ok(());
        }
        let progress = Progress {
            told: self.told.as_ref().map(|(deployment, at)| (deployment.clone(), at.elapsed())),
            lost: self.lost.map(|since| since.elapsed()),
            turn: self.turn,
        };
        let lines = progress.lines(context.talk_canvas());
        Ok(context.printer.passing(&lines)?)
    }

    /// Asks where the deployment stands. Past events are no answer: what was uncertain may be decided since.
    async fn look(&mut self, context: &mut Context) -> Result<Option<Ended>, Failure> {
        let deployment = self.watching.client.deployment(&self.watching.id).await?;
        if self.watching.voice == Voice::Stages {
            self.stages = tell_stages(&deployment, self.stages, context)?;
            self.held_up_told = self.held_up_told || tell_held_up(&deployment, context)?;
        }
        self.tell_waiting(&deployment, context)?;
        let rest =
            Rest::of_deployment(&deployment)?.filter(|rest| self.caught_up && self.watching.goal.is_reached(*rest));
        Ok(match rest {
            Some(rest) => Some(Ended::AtRest(Box::new(deployment), rest)),
            None => {
                self.told = Some((deployment, Instant::now()));
                None
            }
        })
    }

    /// Says why it waits where no event of it did.
    fn tell_waiting(&mut self, deployment: &v1::Deployment, context: &mut Context) -> Result<(), Failure> {
        if self.watching.voice == Voice::Events && !self.waiting_told && !deployment.waiting.is_empty() {
            self.waiting_told = true;
            context.printer.talk(&format!("waits: {}", one_line(&deployment.waiting)))?;
        }
        Ok(())
    }

    /// Tells the events that were recorded together with the last move and have not been told yet.
    async fn finish(mut self, ended: Ended, context: &mut Context) -> Result<Ended, Failure> {
        if self.watching.voice == Voice::Events {
            let client = self.watching.client.clone();
            let mut rest = Follower::start(client, self.watching.id.clone(), self.last.saturating_add(1), false);
            while let Ok(Some(news)) = rest.next().await {
                if let News::Event(event) = news {
                    self.tell(&event, context)?;
                }
            }
        }
        Ok(ended)
    }
}

fn lost(failure: &Failure) -> String {
    let why = failure.problem().map(|problem| problem.title.clone());
    format!("contact with the coordinator is lost, trying again; the deployment goes on ({})", why.unwrap_or_default())
}

/// For people on stdout, for programs on stdout only in the format that is a stream.
fn tell_event(teller: &mut Teller, event: &v1::Event, context: &mut Context) -> Result<(), Failure> {
    match context.printer.format() {
        Format::Table | Format::Jsonl => {
            let canvas = context.canvas();
            let text = teller.line(event, canvas.now, canvas.terminal);
            let answer = v1::WatchEventsResponse { event: Some(event.clone()) };
            let whole = crate::output::answer("WatchEventsResponse", &answer);
            Ok(context.printer.streamed(&Record { whole, name: event.sequence.to_string(), text })?)
        }
        Format::Json | Format::Name => {
            let canvas = context.talk_canvas();
            let line = teller.line(event, canvas.now, canvas.terminal);
            Ok(context.printer.talk(line.trim_end())?)
        }
    }
}

/// Tells the stages that were not told yet, as far as they come without a gap. How many are told then.
fn tell_stages(deployment: &v1::Deployment, told: usize, context: &mut Context) -> Result<usize, Failure> {
    let Some(cancel) = &deployment.cancellation else { return Ok(told) };
    let stages = view::stages(cancel, context.talk_canvas());
    let seen = stages.iter().take_while(|stage| stage.at.is_some()).count();
    for stage in stages.iter().take(seen).skip(told) {
        let line = stage.line(context.talk_canvas());
        context.printer.talk(line.trim_start())?;
    }
    Ok(seen.max(told))
}

/// Tells the stage that something holds up. Whether there is one.
fn tell_held_up(deployment: &v1::Deployment, context: &mut Context) -> Result<bool, Failure> {
    let Some(cancel) = &deployment.cancellation else { return Ok(false) };
    let stages = view::stages(cancel, context.talk_canvas());
    let Some(stage) = stages.iter().find(|stage| stage.held_up.is_some()) else { return Ok(false) };
    let line = stage.line(context.talk_canvas());
    context.printer.talk(line.trim_start())?;
    Ok(true)
}

/// The answer at the end: for people what is known and what is not, for programs the deployment.
pub(super) fn conclude(deployment: &v1::Deployment, context: &mut Context) -> Result<(), Failure> {
    let text = format!("\n{}", view::summary(deployment, context.canvas()));
    let whole = crate::output::answer("Deployment", deployment);
    let whole = if context.printer.format() == Format::Jsonl { json!({ "deployment": whole }) } else { whole };
    Ok(context.printer.record(&Record { whole, name: one_line(&label(deployment)), text })?)
}
