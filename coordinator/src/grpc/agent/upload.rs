//! The outputs of steps, on streams of their own.

use std::collections::BTreeSet;

use holdfast_common::claim::Claim;
use holdfast_common::code::Code;
use holdfast_common::id::{AgentName, StepName};
use holdfast_coordinator_core::input::{Speaker, Via};
use holdfast_proto::convert::{Invalid, claim_from_wire, claim_to_wire, parsed};
use holdfast_proto::v1;
use tokio::sync::mpsc;
use tonic::{Status, Streaming};

use super::message::Signs;
use super::own;
use super::pace::Meter;
use crate::auth::{ShownCertificate, guard};
use crate::driver::Asked;
use crate::grpc::shared::Shared;
use crate::grpc::status;
use crate::logs::{Channel, Chunk, HostEnd, Stream};
use crate::room::is_no_room;

/// Pairs of claim and step that a stream remembers to be its agent's own.
const MAX_CHECKED: usize = 1024;

/// Bytes that no output has. Sums of such sizes never overflow.
const LARGEST: u64 = 1 << 60;

pub(super) struct Upload {
    shared: Shared,
    agent: AgentName,
    certificate: ShownCertificate,
    own: BTreeSet<(Claim, StepName)>,
    signs: Signs,
    meter: Meter,
}

impl Upload {
    pub(super) fn new(shared: Shared, agent: AgentName, certificate: ShownCertificate, meter: Meter) -> Self {
        Self { shared, agent, certificate, own: BTreeSet::new(), signs: Signs::default(), meter }
    }

    /// Until the agent has no more, or sends what can't be taken.
    pub(super) async fn run(
        mut self,
        mut incoming: Streaming<v1::UploadLogRequest>,
        answers: mpsc::Sender<Result<v1::UploadLogResponse, Status>>,
    ) {
        let stop = self.shared.stop.clone();
        let (revocations, agent, certificate) =
            (self.shared.revocations.clone(), self.agent.clone(), self.certificate.clone());
        let mut barred = std::pin::pin!(revocations.barred(&agent, &certificate));
        loop {
            let request = tokio::select! {
                biased;
                () = &mut barred => {
                    let _nobody_reads = answers.send(Err(guard::revoked(&agent))).await;
                    return;
                }
                () = stop.cancelled() => return,
                () = answers.closed() => return,
                request = incoming.message() => request,
            };
            let answer = match request {
                Ok(Some(request)) => self.take(request).await,
                Ok(None) => return,
                Err(status) => Err(status),
            };
            let over = answer.is_err();
            if answers.send(answer).await.is_err() || over {
                return;
            }
            if let Some(wait) = self.meter.take(1) {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = answers.closed() => return,
                    () = tokio::time::sleep(wait) => {}
                }
            }
        }
    }

    async fn take(&mut self, request: v1::UploadLogRequest) -> Result<v1::UploadLogResponse, Status> {
        let (claim, stream, chunk) = read(request).map_err(|why| status::invalid(&why))?;
        self.check(claim, &stream.step).await?;
        self.sign_of_life(claim).await;
        // An output stays in its files on the agent's host until there is room for it here.
        tokio::select! {
            () = self.shared.room_for_more() => {}
            () = self.shared.stop.cancelled() => return Err(status::plain(Code::NotServing, Code::NotServing.title())),
        }
        let logs = self.shared.logs.clone();
        let (kept, now) = (stream.clone(), self.shared.now());
        let taken = tokio::task::spawn_blocking(move || logs.take(claim.deployment, &kept, &chunk, now))
            .await
            .map_err(|error| failed(&error))?
            .map_err(|error| failed(&error))?;
        Ok(v1::UploadLogResponse {
            claim: Some(claim_to_wire(claim)),
            step: stream.step.to_string(),
            stream: channel_to_wire(stream.channel) as i32,
            next_offset: taken.next,
            stored: taken.stored,
            limit_reached: taken.limit_reached,
            full: taken.full,
        })
    }

    /// Only the agent that the attempt was leased to may speak of it, under its fence, of a step that it has. What was found
    /// to be so is remembered.
    async fn check(&mut self, claim: Claim, step: &StepName) -> Result<(), Status> {
        let key = (claim, step.clone());
        if self.own.contains(&key) {
            return Ok(());
        }
        own::step(&self.shared, &self.agent, claim, step, "output").await?;
        if self.own.len() >= MAX_CHECKED {
            self.own.clear();
        }
        self.own.insert(key);
        Ok(())
    }

    async fn sign_of_life(&mut self, claim: Claim) {
        let Some(incarnation) = self.shared.directory.last_incarnation(&self.agent) else { return };
        if !self.signs.due(claim.attempt) {
            return;
        }
        let Some(target) = self.shared.driver.target_of(claim.deployment).await else { return };
        let speaker = Speaker { agent: self.agent.clone(), incarnation };
        if let Err(error) = self.shared.driver.ask(target, Asked::Heard { speaker, claim, via: Via::Upload }).await {
            tracing::debug!(agent = %self.agent, %error, "a sign of life was not taken");
        }
    }
}

fn read(request: v1::UploadLogRequest) -> Result<(Claim, Stream, Chunk), Invalid> {
    let claim = claim_from_wire(request.claim)?;
    let step: StepName = parsed("step", &request.step)?;
    let channel = match v1::LogStream::try_from(request.stream).unwrap_or(v1::LogStream::Unspecified) {
        v1::LogStream::Stdout => Channel::Stdout,
        v1::LogStream::Stderr => Channel::Stderr,
        v1::LogStream::Unspecified => {
            return Err(Invalid::Enum { field: "stream", kind: "LogStream", number: request.stream });
        }
    };
    let sizes = [("offset", request.offset), ("kept", request.kept), ("lost", request.lost), ("cut", request.cut)];
    for (field, size) in sizes {
        if size > LARGEST {
            return Err(Invalid::Range { field, problem: "larger than any output" });
        }
    }
    let end = request.last.then_some(HostEnd {
        cut: request.cut,
        cut_for_room: request.cut_for_room,
        lost: request.lost,
        unknown: request.end_unknown,
    });
    let chunk = Chunk { offset: request.offset, data: request.data, kept: request.kept, end };
    Ok((claim, Stream { attempt: claim.attempt, step, channel }, chunk))
}

fn channel_to_wire(channel: Channel) -> v1::LogStream {
    match channel {
        Channel::Stdout => v1::LogStream::Stdout,
        Channel::Stderr => v1::LogStream::Stderr,
    }
}

/// No room: the stream ends, and the agent comes again with the same bytes. What was written of them is a prefix.
fn failed(error: &(dyn std::error::Error + 'static)) -> Status {
    let no_room = error.source().and_then(|source| source.downcast_ref()).is_some_and(is_no_room);
    if no_room {
        return status::plain(Code::DiskFull, Code::DiskFull.title());
    }
    tracing::error!(%error, "could not keep an output");
    status::plain(Code::StoreFailed, "the output could not be stored")
}
