//! Sends what steps print to the coordinator, on a connection of its own so that it can never delay a heartbeat.
//!
//! The files that the shim writes are the buffer: nothing is held in memory but the chunk under way. The coordinator says
//! up to where it has each stream, and the upload goes on from there; so a cut or a restart loses nothing and repeats nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_common::claim::Claim;
use holdfast_common::id::{AttemptId, StepName};
use holdfast_net::backoff::Backoff;
use holdfast_net::channel::{self, Limits};
use holdfast_net::tls::ClientTls;
use holdfast_proto::MAX_MESSAGE_BYTES;
use holdfast_proto::convert::claim_to_wire;
use holdfast_proto::v1::agent_service_client::AgentServiceClient;
use holdfast_proto::v1::{LogStream, UploadLogRequest, UploadLogResponse};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use crate::metrics::Metrics;

/// Largest piece of a stream in one message.
const CHUNK: usize = 64 * 1024;
/// How often a running step's files are looked at.
const LOOK: Duration = Duration::from_millis(200);

/// One step's output files.
#[derive(Clone, Debug)]
pub struct Output {
    /// Of which attempt.
    pub claim: Claim,
    /// Of which step.
    pub step: StepName,
    /// What it printed to standard output.
    pub stdout: PathBuf,
    /// What it printed to standard error.
    pub stderr: PathBuf,
}

/// How many bytes of a step's output were not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Of standard output.
    pub stdout: u64,
    /// Of standard error.
    pub stderr: u64,
}

#[derive(Debug)]
enum Told {
    Follow(Output),
    Ended(AttemptId, StepName, Cut),
}

/// Takes note of outputs; the sending goes on beside it.
#[derive(Clone, Debug)]
pub struct Uploader(mpsc::UnboundedSender<Told>);

impl Uploader {
    /// Starts the sending task.
    #[must_use]
    pub fn start(address: &str, tls: &ClientTls, stop: CancellationToken, metrics: Arc<Metrics>) -> Self {
        let (told, notes) = mpsc::unbounded_channel();
        let sender = Sender { address: address.to_owned(), tls: tls.clone(), streams: BTreeMap::new(), metrics };
        tokio::spawn(async move { stop.run_until_cancelled(sender.run(notes)).await });
        Self(told)
    }

    /// Sends a step's output as it grows.
    pub fn follow(&self, output: Output) {
        let _stopped = self.0.send(Told::Follow(output));
    }

    /// The step's files grow no more.
    pub fn ended(&self, attempt: AttemptId, step: StepName, cut: Cut) {
        let _stopped = self.0.send(Told::Ended(attempt, step, cut));
    }
}

type Key = (AttemptId, StepName, i32);

/// One stream of one step.
#[derive(Debug)]
struct Following {
    claim: Claim,
    path: PathBuf,
    offset: u64,
    /// What was cut, once it ended.
    ended: Option<u64>,
}

struct Sender {
    address: String,
    tls: ClientTls,
    streams: BTreeMap<Key, Following>,
    metrics: Arc<Metrics>,
}

/// The open upload.
struct Upload {
    requests: mpsc::Sender<UploadLogRequest>,
    answers: Streaming<UploadLogResponse>,
}

impl Sender {
    async fn run(mut self, mut notes: mpsc::UnboundedReceiver<Told>) {
        let mut backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(30), rand::random());
        let mut upload = None;
        loop {
            while let Ok(told) = notes.try_recv() {
                self.note(told);
            }
            if self.streams.is_empty() {
                upload = None;
                match notes.recv().await {
                    Some(told) => self.note(told),
                    None => return,
                }
            }
            let sent = self.round(&mut upload).await;
            self.metrics.buffered(self.buffered().await);
            match sent {
                Ok(()) => {
                    backoff.reset();
                    tokio::time::sleep(LOOK).await;
                }
                Err(status) => {
                    tracing::debug!(%status, "could not send output; it stays in its files");
                    upload = None;
                    tokio::time::sleep(backoff.next()).await;
                }
            }
        }
    }

    fn note(&mut self, told: Told) {
        match told {
            Told::Follow(Output { claim, step, stdout, stderr }) => {
                for (stream, path) in [(LogStream::Stdout, stdout), (LogStream::Stderr, stderr)] {
                    let key = (claim.attempt, step.clone(), stream as i32);
                    self.streams.entry(key).or_insert(Following { claim, path, offset: 0, ended: None });
                }
            }
            Told::Ended(attempt, step, cut) => {
                self.metrics.cut(cut.stdout + cut.stderr);
                for (stream, cut) in [(LogStream::Stdout, cut.stdout), (LogStream::Stderr, cut.stderr)] {
                    if let Some(following) = self.streams.get_mut(&(attempt, step.clone(), stream as i32)) {
                        following.ended = Some(cut);
                    }
                }
            }
        }
    }

    /// What the coordinator does not have yet.
    async fn buffered(&self) -> u64 {
        let mut bytes = 0;
        for following in self.streams.values() {
            let length = tokio::fs::metadata(&following.path).await.map_or(0, |metadata| metadata.len());
            bytes += length.saturating_sub(following.offset);
        }
        bytes
    }

    /// Sends what every stream has grown by.
    async fn round(&mut self, upload: &mut Option<Upload>) -> Result<(), Status> {
        for key in self.streams.keys().cloned().collect::<Vec<_>>() {
            while let Some(request) = self.next_chunk(&key).await {
                let (last, whole) = (request.last, request.offset + request.data.len() as u64);
                let open = match upload.take() {
                    Some(open) => open,
                    None => self.open().await?,
                };
                let stored = upload.insert(open).exchange(request).await?;
                if last && stored >= whole {
                    self.streams.remove(&key);
                    break;
                }
                if let Some(following) = self.streams.get_mut(&key) {
                    following.offset = stored;
                }
                // Less than was sent: the coordinator wants it from there, in the next round.
                if stored < whole {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn next_chunk(&self, key: &Key) -> Option<UploadLogRequest> {
        let following = self.streams.get(key)?;
        let data = read(&following.path, following.offset).await.unwrap_or_default();
        let at_end = data.len() < CHUNK;
        let last = at_end && following.ended.is_some();
        if data.is_empty() && !last {
            return None;
        }
        Some(UploadLogRequest {
            claim: Some(claim_to_wire(following.claim)),
            step: key.1.to_string(),
            stream: key.2,
            offset: following.offset,
            cut: if last { following.ended.unwrap_or_default() } else { 0 },
            data,
            last,
        })
    }

    async fn open(&self) -> Result<Upload, Status> {
        let channel = channel::connect(&self.address, &self.tls, &Limits::default())
            .await
            .map_err(|error| Status::unavailable(error.to_string()))?;
        let (requests, outgoing) = mpsc::channel(1);
        let mut client = AgentServiceClient::new(channel).max_encoding_message_size(MAX_MESSAGE_BYTES);
        let answers = client.upload_log(ReceiverStream::new(outgoing)).await?.into_inner();
        Ok(Upload { requests, answers })
    }
}

impl Upload {
    /// Sends one chunk and gives the offset up to which the coordinator has the stream.
    async fn exchange(&mut self, request: UploadLogRequest) -> Result<u64, Status> {
        let gone = || Status::unavailable("the upload ended");
        self.requests.send(request).await.map_err(|_| gone())?;
        Ok(self.answers.next().await.ok_or_else(gone)??.next_offset)
    }
}

async fn read(path: &PathBuf, offset: u64) -> std::io::Result<Vec<u8>> {
    let mut file = tokio::fs::File::open(path).await?;
    file.seek(std::io::SeekFrom::Start(offset)).await?;
    let mut data = Vec::new();
    file.take(CHUNK as u64).read_to_end(&mut data).await?;
    Ok(data)
}
