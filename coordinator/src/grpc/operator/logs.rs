//! What a deployment's steps wrote.
//!
//! Whoever follows is woken by what arrives, and by commits, which tell of new attempts and of ends. An output is over when its
//! end has arrived and everything before it was sent. If a deployment has ended and outputs of it are still on their hosts,
//! the reader waits while anything comes, and then is told what has not arrived.

use std::time::Duration;

use holdfast_common::code::Code;
use holdfast_common::id::{AttemptId, DeploymentId, StepName};
use holdfast_common::outcome::{Exit, StepEnd};
use holdfast_coordinator_core::state::{Attempt, Deployment, StepRun, StepState};
use holdfast_proto::convert::{parsed_or_none, wall_to_wire};
use holdfast_proto::v1;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::lapse::Told;
use super::{Call, Sender, find};
use crate::auth::Permission;
use crate::grpc::shared::Shared;
use crate::grpc::{refused, status};
use crate::logs::{Channel, Found, Gap, GapReason, Stream};

/// Commits are many on a busy coordinator: how seldom the deployment is read again for them.
const READ_AGAIN: Duration = Duration::from_millis(250);

/// How long after a deployment's end a reader waits while nothing more of its outputs arrives.
const LATE: Duration = Duration::from_secs(15);

/// Longest list of positions to go on from.
const MAX_POSITIONS: usize = 4096;

pub(super) async fn read(call: Call<'_, v1::ReadLogsRequest>) -> Result<Told<v1::ReadLogsResponse>, Status> {
    let Call { shared, by, asked } = call;
    let wanted = Wanted::read(&asked)?;
    let row = find::deployment(shared, &by, &asked.deployment, Permission::View).await?;
    let (sender, stream) = mpsc::channel(4);
    let id = row.record.id;
    let bells = (shared.driver.committed(), shared.logs.arrivals(id));
    let reading = Reading { shared: shared.clone(), id, wanted, open: Vec::new(), sender };
    tokio::spawn(reading.run(asked.follow, bells));
    Ok(Told::new(ReceiverStream::new(stream), shared, by, row.target))
}

/// What was asked for.
struct Wanted {
    step: Option<StepName>,
    /// 0 is every one.
    attempt: u32,
    channel: Option<Channel>,
    from: Vec<v1::LogPosition>,
    from_offset: u64,
}

impl Wanted {
    fn read(asked: &v1::ReadLogsRequest) -> Result<Self, Status> {
        let step = parsed_or_none("step", &asked.step).map_err(|why| status::invalid(&why))?;
        let channel = match v1::LogChannel::try_from(asked.stream) {
            Ok(v1::LogChannel::Unspecified) => None,
            Ok(v1::LogChannel::Stdout) => Some(Channel::Stdout),
            Ok(v1::LogChannel::Stderr) => Some(Channel::Stderr),
            Err(_) => return Err(status::plain(Code::InvalidMessage, "stream: not an output that this version knows")),
        };
        if asked.from.len() > MAX_POSITIONS {
            return Err(status::plain(Code::TooLarge, format!("from: more than {MAX_POSITIONS} positions")));
        }
        let from = asked.from.clone();
        Ok(Self { step, attempt: asked.attempt, channel, from, from_offset: asked.from_offset })
    }

    fn has_attempt(&self, number: u32) -> bool {
        self.attempt == 0 || self.attempt == number
    }

    fn has_step(&self, name: &StepName) -> bool {
        self.step.as_ref().is_none_or(|wanted| wanted == name)
    }

    fn begin(&self, attempt: u32, step: &StepName, channel: Channel) -> u64 {
        let wire = channel_to_wire(channel) as i32;
        let fits = |at: &&v1::LogPosition| at.attempt == attempt && at.step == step.as_str() && at.stream == wire;
        self.from.iter().find(fits).map_or(self.from_offset, |at| at.offset)
    }
}

/// One output, and how far it was read.
struct Open {
    attempt: u32,
    stream: Stream,
    offset: u64,
    /// Everything of it was sent, or told as missing.
    over: bool,
    /// What the host has of it, where that is known.
    announced: Option<u64>,
}

struct Reading {
    shared: Shared,
    id: DeploymentId,
    wanted: Wanted,
    open: Vec<Open>,
    sender: Sender<v1::ReadLogsResponse>,
}

/// Why a reading ends before its outputs do.
enum Stopped {
    NobodyListens,
    Failed(Status),
}

impl From<Status> for Stopped {
    fn from(status: Status) -> Self {
        Stopped::Failed(status)
    }
}

type Bells = (watch::Receiver<u64>, watch::Receiver<u64>);

impl Reading {
    async fn run(mut self, follow: bool, bells: Bells) {
        let stop = self.shared.stop.clone();
        let sender = self.sender.clone();
        let stopped = tokio::select! {
            () = sender.closed() => return,
            () = stop.cancelled() => {
                // An answer that just ends would say that this was all.
                Err(Stopped::Failed(status::plain(Code::NotServing, "the coordinator is stopping")))
            }
            read = self.read_all(follow, bells) => read,
        };
        if let Err(Stopped::Failed(status)) = stopped {
            let _gone = sender.send(Err(status)).await;
        }
    }

    async fn read_all(&mut self, follow: bool, (mut committed, mut arrived): Bells) -> Result<(), Stopped> {
        let mut quiet_since = Instant::now();
        loop {
            committed.borrow_and_update();
            let deployment = self.deployment().await?;
            let read_at = Instant::now();
            self.find(&deployment);
            let mut is_stale = false;
            loop {
                arrived.borrow_and_update();
                if self.send_all().await? {
                    quiet_since = Instant::now();
                }
                let over = self.is_over(&deployment);
                let too_quiet = over == Over::ButForOutputs && quiet_since.elapsed() >= LATE;
                if !follow || over == Over::Whole || too_quiet {
                    return self.tell_missing(&deployment).await;
                }
                let late = match over {
                    Over::ButForOutputs => quiet_since + LATE,
                    Over::Not | Over::Whole => read_at + Duration::from_secs(3600),
                };
                tokio::select! {
                    more = arrived.changed() => more.map_err(|_| stopping())?,
                    more = committed.changed(), if !is_stale => {
                        more.map_err(|_| stopping())?;
                        is_stale = true;
                    }
                    () = tokio::time::sleep_until(read_at + READ_AGAIN), if is_stale => break,
                    () = tokio::time::sleep_until(late) => {}
                }
            }
        }
    }

    async fn deployment(&self) -> Result<Deployment, Status> {
        let id = self.id;
        let read = self.shared.reader.run(move |reader| reader.deployment(id)).await;
        let row = read.map_err(|error| refused::by_store(&error))?;
        row.map(|row| row.record).ok_or_else(|| status::plain(Code::DeploymentNotFound, "no such deployment"))
    }

    /// Adds the outputs of attempts that are new, in order.
    fn find(&mut self, deployment: &Deployment) {
        for attempt in &deployment.attempts {
            let known = self.open.iter().any(|open| open.stream.attempt == attempt.id);
            if known || !self.wanted.has_attempt(attempt.number) {
                continue;
            }
            for step in deployment.spec.steps.iter().filter(|step| self.wanted.has_step(&step.name)) {
                let streams = streams(&self.wanted, attempt.number, attempt.id, &step.name);
                self.open.extend(streams);
            }
        }
    }

    /// Sends what is new of each output. Whether there was anything.
    async fn send_all(&mut self) -> Result<bool, Stopped> {
        let mut any = false;
        for index in 0..self.open.len() {
            while !self.open[index].over {
                let found = self.look(&self.open[index]).await?;
                let open = &mut self.open[index];
                let (pieces, more) = match found {
                    Found::Data(data) => (vec![piece(open, data)], true),
                    Found::Gap(missing) => (vec![gap(open, missing)], true),
                    Found::End(gaps) => {
                        open.over = true;
                        (gaps.into_iter().map(|missing| gap(open, missing)).collect(), false)
                    }
                    Found::NotYet(announced) => {
                        open.announced = announced;
                        (Vec::new(), false)
                    }
                };
                for piece in pieces {
                    any = true;
                    self.send(piece).await?;
                }
                if !more {
                    break;
                }
            }
        }
        Ok(any)
    }

    async fn send(&self, piece: v1::ReadLogsResponse) -> Result<(), Stopped> {
        self.sender.send(Ok(piece)).await.map_err(|_| Stopped::NobodyListens)
    }

    async fn look(&self, open: &Open) -> Result<Found, Status> {
        let (logs, stream, offset) = (self.shared.logs.clone(), open.stream.clone(), open.offset);
        let failed = |error: &dyn std::error::Error| {
            tracing::error!(%error, "could not read an output");
            status::plain(Code::StoreFailed, "an output could not be read")
        };
        tokio::task::spawn_blocking(move || logs.read(&stream, offset))
            .await
            .map_err(|error| failed(&error))?
            .map_err(|error| failed(&error))
    }

    /// What is still on the hosts, as far as it is known. A step at work has all the time to send what it writes, while its agent is in
    /// contact.
    async fn tell_missing(&mut self, deployment: &Deployment) -> Result<(), Stopped> {
        for index in 0..self.open.len() {
            let open = &mut self.open[index];
            let run = run_of(deployment, open);
            let directory = &self.shared.directory;
            let at_work = run.is_some_and(|(attempt, run)| {
                attempt.state.is_live() && run.ended.is_none() && directory.is_in_contact(&attempt.agent)
            });
            let length = open.announced.map(|announced| announced.saturating_sub(open.offset));
            let is_missing = match length {
                _ if open.over => false,
                Some(length) => length > 0 || !at_work,
                None => !at_work && run.is_some_and(|(attempt, run)| has_output(deployment, attempt, run)),
            };
            if is_missing {
                let missing = Gap { from: open.offset, length, reason: GapReason::NotArrived };
                let told = gap(open, missing);
                self.send(told).await?;
            }
        }
        Ok(())
    }

    fn is_over(&self, deployment: &Deployment) -> Over {
        if !self.is_settled(deployment) {
            return Over::Not;
        }
        let waits = |open: &Open| {
            !open.over && run_of(deployment, open).is_some_and(|(attempt, run)| has_output(deployment, attempt, run))
        };
        if self.open.iter().any(waits) { Over::ButForOutputs } else { Over::Whole }
    }

    /// Whether no more steps will begin among those that are wanted.
    fn is_settled(&self, deployment: &Deployment) -> bool {
        if deployment.ended.is_some() {
            return true;
        }
        let chosen = deployment.attempts.iter().find(|attempt| attempt.number == self.wanted.attempt);
        if chosen.is_some_and(|attempt| !attempt.state.is_live()) {
            return true;
        }
        let last = deployment.attempts.iter().rfind(|attempt| self.wanted.has_attempt(attempt.number));
        let run = self.wanted.step.as_ref().and_then(|step| last?.step(step));
        run.is_some_and(|run| matches!(run.state, StepState::Ended(StepEnd::Applied)))
    }
}

/// How far everything that is wanted has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Not,
    /// Nothing will run any more, and not all of it has arrived.
    ButForOutputs,
    Whole,
}

fn run_of<'a>(deployment: &'a Deployment, open: &Open) -> Option<(&'a Attempt, &'a StepRun)> {
    let attempt = deployment.attempts.iter().find(|attempt| attempt.id == open.stream.attempt)?;
    Some((attempt, attempt.step(&open.stream.step)?))
}

/// Whether the step had a process under this attempt, which may have written something.
fn has_output(deployment: &Deployment, attempt: &Attempt, run: &StepRun) -> bool {
    let had_process = match run.state {
        StepState::Started => true,
        StepState::Ended(_) => run.started.is_some() && run.exit != Some(Exit::NotSpawned),
        StepState::Pending | StepState::Permitted | StepState::Carried { .. } => false,
    };
    had_process && !began_before(deployment, attempt, &run.name)
}

/// Whether the attempt goes on with a process of that step that began under an earlier attempt: its output is that one's.
fn began_before(deployment: &Deployment, attempt: &Attempt, step: &StepName) -> bool {
    let earlier = |id: AttemptId| deployment.attempts.iter().find(|attempt| attempt.id == id);
    let chain = std::iter::successors(attempt.readmits.and_then(earlier), |attempt| attempt.readmits.and_then(earlier));
    chain.filter_map(|attempt| attempt.step(step)).any(|run| match run.state {
        StepState::Permitted | StepState::Started | StepState::Ended(StepEnd::Unknown) => true,
        StepState::Pending
        | StepState::Carried { .. }
        | StepState::Ended(
            StepEnd::Applied | StepEnd::Failed { .. } | StepEnd::Stopped { .. } | StepEnd::NotStarted,
        ) => false,
    })
}

fn streams(wanted: &Wanted, attempt: u32, id: AttemptId, step: &StepName) -> Vec<Open> {
    let channels = Channel::ALL.into_iter().filter(|channel| wanted.channel.is_none_or(|wanted| wanted == *channel));
    channels
        .map(|channel| Open {
            attempt,
            stream: Stream { attempt: id, step: step.clone(), channel },
            offset: wanted.begin(attempt, step, channel),
            over: false,
            announced: None,
        })
        .collect()
}

fn stopping() -> Stopped {
    Stopped::Failed(status::plain(Code::NotServing, "the coordinator is stopping"))
}

fn piece(open: &mut Open, data: Vec<u8>) -> v1::ReadLogsResponse {
    let offset = open.offset;
    open.offset += data.len() as u64;
    v1::ReadLogsResponse { data, ..answer(open, offset) }
}

fn gap(open: &mut Open, gap: Gap) -> v1::ReadLogsResponse {
    if gap.reason != GapReason::NotArrived {
        open.offset = gap.from.saturating_add(gap.length.unwrap_or_default());
    }
    let (reason, removed_at) = match gap.reason {
        GapReason::CutOnHost => (v1::LogGapReason::CutOnHost, None),
        GapReason::NoRoomOnHost => (v1::LogGapReason::NoRoomOnHost, None),
        GapReason::LostOnHost => (v1::LogGapReason::LostOnHost, None),
        GapReason::CutByCoordinator => (v1::LogGapReason::CutByCoordinator, None),
        GapReason::LostByCoordinator => (v1::LogGapReason::LostByCoordinator, None),
        GapReason::Removed { at } => (v1::LogGapReason::Removed, Some(wall_to_wire(at))),
        GapReason::NotArrived => (v1::LogGapReason::NotArrived, None),
    };
    let gap = v1::LogGap { from: gap.from, length: gap.length, reason: reason as i32, removed_at };
    v1::ReadLogsResponse { gap: Some(gap), ..answer(open, gap.from) }
}

fn answer(open: &Open, offset: u64) -> v1::ReadLogsResponse {
    v1::ReadLogsResponse {
        attempt: open.attempt,
        step: open.stream.step.to_string(),
        stream: channel_to_wire(open.stream.channel) as i32,
        offset,
        data: Vec::new(),
        gap: None,
    }
}

fn channel_to_wire(channel: Channel) -> v1::LogChannel {
    match channel {
        Channel::Stdout => v1::LogChannel::Stdout,
        Channel::Stderr => v1::LogChannel::Stderr,
    }
}

#[cfg(test)]
mod tests {
    use holdfast_common::outcome::FailureClass;

    use super::*;
    use crate::grpc::view::tests::uncertain;

    #[test]
    fn only_a_step_that_had_a_process_has_an_output() {
        let deployment = uncertain().current.expect("held");
        let attempt = &deployment.attempts[0];
        let failed = StepState::Ended(StepEnd::Failed { class: FailureClass::Permanent, maybe_partial: false });
        for (state, exit, output) in [
            (StepState::Started, None, true),
            (failed, Some(Exit::Exited(1)), true),
            (failed, Some(Exit::Unknown), true),
            (failed, Some(Exit::NotSpawned), false),
            (StepState::Permitted, None, false),
        ] {
            let run = StepRun { state, exit, ..attempt.steps[0].clone() };
            assert_eq!(has_output(&deployment, attempt, &run), output, "{state:?} {exit:?}");
        }
        let run = StepRun { state: StepState::Ended(StepEnd::NotStarted), started: None, ..attempt.steps[0].clone() };
        assert!(!has_output(&deployment, attempt, &run), "it never began");
    }
}
