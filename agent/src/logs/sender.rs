//! The sending task.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_common::id::{AttemptId, StepName};
use holdfast_net::backoff::Backoff;
use holdfast_net::channel::{self, Addresses, Limits};
use holdfast_net::tls::ClientTls;
use holdfast_proto::MAX_MESSAGE_BYTES;
use holdfast_proto::convert::claim_to_wire;
use holdfast_proto::v1::agent_service_client::AgentServiceClient;
use holdfast_proto::v1::{LogStream, UploadLogRequest, UploadLogResponse};
use tokio::sync::{Notify, mpsc};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use super::piece::{self, Piece};
use super::{Output, note};
use crate::metrics::Metrics;
use crate::places::Places;
use crate::supervisor::Supervisor;

/// How often the files of running steps are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How long to wait when the coordinator has no room.
const NO_ROOM: Duration = Duration::from_secs(5);
/// Between two tries while the agent itself is refused.
const REFUSED: Duration = Duration::from_secs(60);

type Key = (AttemptId, StepName, i32);

/// One stream of one step.
#[derive(Clone, Debug)]
struct Following {
    output: Output,
    stream: LogStream,
    /// Where the coordinator stands; `None` before it was asked on this connection.
    offset: Option<u64>,
    /// The coordinator takes only its end any more.
    limit_reached: bool,
}

pub(super) struct Sender {
    addresses: Addresses,
    tls: ClientTls,
    places: Places,
    supervisor: Arc<Supervisor>,
    streams: BTreeMap<Key, Following>,
    metrics: Arc<Metrics>,
}

/// The open upload.
struct Upload {
    requests: mpsc::Sender<UploadLogRequest>,
    answers: Streaming<UploadLogResponse>,
}

/// What came of a look at a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sent {
    /// There was nothing new.
    Nothing,
    /// Something was taken, and there may be more.
    Some,
    /// The coordinator has no room.
    NoRoom,
    /// Nothing of it is wanted any more.
    Done,
}

impl Sender {
    pub(super) fn new(addresses: &Addresses, tls: &ClientTls, places: Places, metrics: Arc<Metrics>) -> Self {
        let supervisor = Arc::new(Supervisor::default());
        let (addresses, tls) = (addresses.clone(), tls.clone());
        Self { addresses, tls, places, supervisor, streams: BTreeMap::new(), metrics }
    }

    pub(super) async fn run(mut self, mut outputs: mpsc::UnboundedReceiver<Output>, look: &Notify) {
        let mut backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(30), rand::random());
        let mut upload = None;
        loop {
            while let Ok(output) = outputs.try_recv() {
                self.note(&output);
            }
            if self.streams.is_empty() {
                upload = None;
                match outputs.recv().await {
                    Some(output) => self.note(&output),
                    None => return,
                }
            }
            let round = self.round(&mut upload).await;
            self.metrics.buffered(self.buffered().await);
            let pause = match round {
                Ok(Sent::Some | Sent::Done) => {
                    backoff.reset();
                    continue;
                }
                Ok(Sent::Nothing) => LOOK,
                Ok(Sent::NoRoom) => NO_ROOM,
                Err(status) => {
                    tracing::debug!(%status, "could not send output; it stays in its files");
                    upload = None;
                    self.streams.values_mut().for_each(|following| following.offset = None);
                    // Only to this wait: a step's end must not shorten it.
                    tokio::time::sleep(if is_refused(&status) { REFUSED } else { backoff.next() }).await;
                    continue;
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = look.notified() => {}
                output = outputs.recv() => match output {
                    Some(output) => self.note(&output),
                    None => return,
                },
            }
        }
    }

    fn note(&mut self, output: &Output) {
        for stream in [LogStream::Stdout, LogStream::Stderr] {
            let key = (output.folder, output.step.clone(), stream as i32);
            let fresh = Following { output: output.clone(), stream, offset: None, limit_reached: false };
            self.streams.entry(key).or_insert(fresh);
        }
    }

    /// One piece of every stream that has something new, so that none waits for another's end.
    async fn round(&mut self, upload: &mut Option<Upload>) -> Result<Sent, Status> {
        let mut most = Sent::Nothing;
        for key in self.streams.keys().cloned().collect::<Vec<_>>() {
            let Some(following) = self.streams.get(&key).cloned() else { continue };
            let sent = match self.send_one(following, upload).await {
                Ok(sent) => sent,
                Err(status) if is_final(&status) => {
                    tracing::warn!(%status, step = %key.1, attempt = %key.0, "the coordinator does not take an output");
                    *upload = None;
                    self.streams.values_mut().for_each(|following| following.offset = None);
                    Sent::Done
                }
                Err(status) => return Err(status),
            };
            if sent == Sent::Done {
                self.done(&key);
            }
            most = most.max(sent);
        }
        Ok(most)
    }

    async fn send_one(&mut self, following: Following, upload: &mut Option<Upload>) -> Result<Sent, Status> {
        let asks = following.offset.is_none();
        let Some(piece) = self.look(&following).await? else { return Ok(Sent::Done) };
        if !asks && piece.data.is_empty() && piece.end.is_none() {
            return Ok(Sent::Nothing);
        }
        let key = (following.output.folder, following.output.step.clone(), following.stream as i32);
        let request = request(&following, piece);
        let cut = request.cut;
        let open = match upload.take() {
            Some(open) => open,
            None => self.open().await?,
        };
        let answer = upload.insert(open).exchange(request).await?;
        if answer.stored {
            self.metrics.cut(cut);
            return Ok(Sent::Done);
        }
        if let Some(following) = self.streams.get_mut(&key) {
            following.offset = Some(answer.next_offset);
            following.limit_reached = answer.limit_reached;
        }
        // A coordinator that does not move is not asked without a pause.
        let moved = following.offset != Some(answer.next_offset) || following.limit_reached != answer.limit_reached;
        Ok(match (answer.full, moved) {
            (true, _) => Sent::NoRoom,
            (false, true) => Sent::Some,
            (false, false) => Sent::Nothing,
        })
    }

    /// What the coordinator does not have yet, in bytes.
    async fn buffered(&self) -> u64 {
        let mut bytes = 0;
        for following in self.streams.values() {
            let folder = self.places.step(following.output.folder, &following.output.step);
            let path = match following.stream {
                LogStream::Stderr => folder.stderr(),
                LogStream::Stdout | LogStream::Unspecified => folder.stdout(),
            };
            let length = tokio::fs::metadata(path).await.map_or(0, |metadata| metadata.len());
            bytes += length.saturating_sub(following.offset.unwrap_or(0));
        }
        bytes
    }

    /// What there is to send. Before the coordinator was asked where it stands, only how much there is.
    async fn look(&self, following: &Following) -> Result<Option<Piece>, Status> {
        let folder = self.places.step(following.output.folder, &following.output.step);
        let (supervisor, stream) = (Arc::clone(&self.supervisor), following.stream);
        let (offset, only_end) = (following.offset.unwrap_or(0), following.offset.is_none() || following.limit_reached);
        let looked = tokio::task::spawn_blocking(move || piece::next(&supervisor, &folder, stream, offset, only_end));
        match looked.await {
            Ok(Ok(piece)) => Ok(piece),
            Ok(Err(error)) => {
                tracing::warn!(%error, step = %following.output.step, "could not read an output");
                Ok(Some(Piece::default()))
            }
            Err(error) => Err(Status::internal(error.to_string())),
        }
    }

    /// The note goes with the last stream of its step.
    fn done(&mut self, key: &Key) {
        let Some(Following { output, .. }) = self.streams.remove(key) else { return };
        let other = self.streams.range((key.0, key.1.clone(), i32::MIN)..=(key.0, key.1.clone(), i32::MAX)).next();
        if other.is_none()
            && let Err(error) = note::remove(&self.places, &output)
        {
            tracing::warn!(%error, "could not remove the note of an output that was sent");
        }
    }

    async fn open(&self) -> Result<Upload, Status> {
        let channel = channel::connect_any(&self.addresses, &self.tls, &Limits::default())
            .await
            .map_err(|error| Status::unavailable(error.to_string()))?;
        let (requests, outgoing) = mpsc::channel(1);
        let mut client = AgentServiceClient::new(channel).max_encoding_message_size(MAX_MESSAGE_BYTES);
        let answers = client.upload_log(ReceiverStream::new(outgoing)).await?.into_inner();
        Ok(Upload { requests, answers })
    }
}

impl Upload {
    /// Sends one chunk and waits for the answer: what is under way is bounded by one chunk.
    async fn exchange(&mut self, request: UploadLogRequest) -> Result<UploadLogResponse, Status> {
        // The coordinator answers a refusal and closes: the answer tells why.
        let _closed = self.requests.send(request).await;
        self.answers.next().await.ok_or_else(|| Status::unavailable("the upload ended"))?
    }
}

fn request(following: &Following, piece: Piece) -> UploadLogRequest {
    let asked = following.offset;
    let end = piece.end.filter(|_| asked.is_some());
    UploadLogRequest {
        claim: Some(claim_to_wire(following.output.claim)),
        step: following.output.step.to_string(),
        stream: following.stream as i32,
        offset: asked.unwrap_or(0),
        data: piece.data,
        cut: end.map_or(0, |end| end.cut),
        last: end.is_some(),
        kept: piece.kept,
        lost: end.map_or(0, |end| end.lost),
        end_unknown: end.is_some_and(|end| end.unknown),
        cut_for_room: end.is_some_and(|end| end.cut_for_room),
    }
}

/// Another try would hear the same.
fn is_final(status: &Status) -> bool {
    matches!(status.code(), Code::NotFound | Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange)
}

/// It is the agent that is refused, not the output: once it may come back, so may that.
fn is_refused(status: &Status) -> bool {
    status.code() == Code::PermissionDenied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_of_an_agent_whose_certificate_was_revoked_waits_until_it_may_come_back() {
        let revoked = Status::permission_denied("the certificate was revoked");
        assert!(is_refused(&revoked) && !is_final(&revoked));
        let unknown = Status::not_found("no such attempt");
        assert!(is_final(&unknown) && !is_refused(&unknown));
    }
}
