//! What a deployment's steps wrote.

use std::time::Duration;

use holdfast_common::code::Code;
use holdfast_common::id::{AttemptId, DeploymentId, StepName};
use holdfast_coordinator_core::state::Deployment;
use holdfast_proto::convert::parsed_or_none;
use holdfast_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::lapse::Told;
use super::{Call, Sender, find};
use crate::auth::Permission;
use crate::grpc::shared::Shared;
use crate::grpc::{refused, status};
use crate::logs::{Channel, Stored, Stream};

/// How often outputs that grow are looked at. They are files, and files give no hint.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How long after a deployment's end its outputs may still arrive.
const LATE: Duration = Duration::from_secs(2);

pub(super) async fn read(call: Call<'_, v1::ReadLogsRequest>) -> Result<Told<v1::ReadLogsResponse>, Status> {
    let Call { shared, by, asked } = call;
    let step: Option<StepName> = parsed_or_none("step", &asked.step).map_err(|why| status::invalid(&why))?;
    let row = find::deployment(shared, &by, &asked.deployment, Permission::View).await?;
    let (sender, stream) = mpsc::channel(4);
    let wanted = Wanted { step, attempt: asked.attempt };
    let reading = Reading { shared: shared.clone(), id: row.record.id, wanted, open: Vec::new() };
    tokio::spawn(reading.run(asked.follow, sender));
    Ok(Told::new(ReceiverStream::new(stream), shared, by, row.target))
}

struct Wanted {
    step: Option<StepName>,
    /// 0 is every one.
    attempt: u32,
}

/// One output, and how far it was read.
struct Open {
    attempt: u32,
    stream: Stream,
    offset: u64,
    over: bool,
}

struct Reading {
    shared: Shared,
    id: DeploymentId,
    wanted: Wanted,
    open: Vec<Open>,
}

impl Reading {
    async fn run(mut self, follow: bool, sender: Sender<v1::ReadLogsResponse>) {
        let stop = self.shared.stop.clone();
        let mut ended_since: Option<tokio::time::Instant> = None;
        loop {
            let deployment = match self.deployment().await {
                Ok(deployment) => deployment,
                Err(error) => {
                    let _gone = sender.send(Err(error)).await;
                    return;
                }
            };
            self.find(&deployment);
            match self.send_all(&sender).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    let _gone = sender.send(Err(error)).await;
                    return;
                }
            }
            if deployment.ended.is_some() {
                ended_since.get_or_insert_with(tokio::time::Instant::now);
            }
            let all_over = self.open.iter().all(|open| open.over);
            let settled = ended_since.is_some_and(|since| all_over || since.elapsed() >= LATE);
            if !follow || settled {
                return;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = sender.closed() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
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
            let unwanted = self.wanted.attempt != 0 && self.wanted.attempt != attempt.number;
            if unwanted || self.open.iter().any(|open| open.stream.attempt == attempt.id) {
                continue;
            }
            for step in &deployment.spec.steps {
                if self.wanted.step.as_ref().is_none_or(|wanted| *wanted == step.name) {
                    self.open.extend(streams(attempt.number, attempt.id, &step.name));
                }
            }
        }
    }

    /// Sends what is new of each output. False once nobody listens.
    async fn send_all(&mut self, sender: &Sender<v1::ReadLogsResponse>) -> Result<bool, Status> {
        for open in &mut self.open {
            while !open.over {
                let Some(stored) = next(&self.shared, open).await? else { break };
                let (length, ended) = (stored.data.len() as u64, stored.ended);
                let is_news = length > 0 || (ended && stored.cut > 0);
                if is_news && sender.send(Ok(chunk(open, stored))).await.is_err() {
                    return Ok(false);
                }
                open.offset += length;
                open.over = ended;
                if length == 0 {
                    break;
                }
            }
        }
        Ok(true)
    }
}

fn streams(attempt: u32, id: AttemptId, step: &StepName) -> impl Iterator<Item = Open> {
    Channel::ALL.into_iter().map(move |channel| Open {
        attempt,
        stream: Stream { attempt: id, step: step.clone(), channel },
        offset: 0,
        over: false,
    })
}

async fn next(shared: &Shared, open: &Open) -> Result<Option<Stored>, Status> {
    let (logs, stream, offset) = (shared.logs.clone(), open.stream.clone(), open.offset);
    let failed = |error: &dyn std::error::Error| {
        tracing::error!(%error, "could not read an output");
        status::plain(Code::StoreFailed, "an output could not be read")
    };
    tokio::task::spawn_blocking(move || logs.read(&stream, offset))
        .await
        .map_err(|error| failed(&error))?
        .map_err(|error| failed(&error))
}

fn chunk(open: &Open, stored: Stored) -> v1::ReadLogsResponse {
    let channel = match open.stream.channel {
        Channel::Stdout => v1::LogChannel::Stdout,
        Channel::Stderr => v1::LogChannel::Stderr,
    };
    v1::ReadLogsResponse {
        attempt: open.attempt,
        step: open.stream.step.to_string(),
        stream: channel as i32,
        offset: stored.offset,
        data: stored.data,
        cut: if stored.ended { stored.cut } else { 0 },
    }
}
