//! Uploaded archives, to the agents whose attempts need them. Which archive it is, the deployment says, not the agent.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use holdfast_common::code::Code;
use holdfast_common::id::{AgentName, StepName};
use holdfast_common::problem::Problem;
use holdfast_proto::convert::{claim_from_wire, parsed};
use holdfast_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::own;
use crate::archives::retention::uploaded;
use crate::auth::{ShownCertificate, guard};
use crate::grpc::shared::Shared;
use crate::grpc::status;

/// Bytes in one message.
const PIECE: u64 = 256 * 1024;

type Pieces = mpsc::Sender<Result<v1::FetchArchiveResponse, Status>>;

pub(super) async fn fetch(
    shared: &Shared,
    agent: AgentName,
    certificate: ShownCertificate,
    asked: v1::FetchArchiveRequest,
) -> Result<ReceiverStream<Result<v1::FetchArchiveResponse, Status>>, Status> {
    let claim = claim_from_wire(asked.claim).map_err(|why| status::invalid(&why))?;
    let step: StepName = parsed("step", &asked.step).map_err(|why| status::invalid(&why))?;
    let spec = own::step(shared, &agent, claim, &step, "archive").await?;
    let sha256 = uploaded(&spec.body).ok_or_else(|| missing("the step needs no uploaded archive"))?;
    let archives = shared.archives.clone();
    let found = tokio::task::spawn_blocking(move || archives.open_whole(&sha256)).await.map_err(|e| failed(&e))?;
    let (file, size) = found.map_err(|e| failed(&e))?.ok_or_else(|| missing("the coordinator does not have it"))?;
    let (sender, stream) = mpsc::channel(2);
    let revocations = shared.revocations.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = revocations.barred(&agent, &certificate) => {
                let _nobody_reads = sender.send(Err(guard::revoked(&agent))).await;
            }
            () = send(file, asked.offset.min(size), size, sender.clone()) => {}
        }
    });
    Ok(ReceiverStream::new(stream))
}

/// At least one piece, so that the size is told of an archive that the agent has whole.
async fn send(file: File, mut offset: u64, size: u64, pieces: Pieces) {
    let mut file = Some(file);
    while let Some(open) = file.take() {
        let read = tokio::task::spawn_blocking(move || read(open, offset)).await;
        let piece = match read {
            Ok(Ok((_, data))) if data.is_empty() && offset < size => {
                Err(status::plain(Code::StoreFailed, "the archive is shorter than it was"))
            }
            Ok(Ok((open, data))) => {
                let at = offset;
                offset += data.len() as u64;
                file = (offset < size).then_some(open);
                Ok(v1::FetchArchiveResponse { offset: at, data, size })
            }
            Ok(Err(error)) => Err(failed(&error)),
            Err(error) => Err(failed(&error)),
        };
        if pieces.send(piece).await.is_err() {
            return;
        }
    }
}

fn read(mut file: File, offset: u64) -> std::io::Result<(File, Vec<u8>)> {
    file.seek(SeekFrom::Start(offset))?;
    let mut data = Vec::new();
    file.by_ref().take(PIECE).read_to_end(&mut data)?;
    Ok((file, data))
}

fn missing(why: &str) -> Status {
    status::of(&Problem::new(Code::ArchiveMissing, why))
}

fn failed(error: &dyn std::error::Error) -> Status {
    tracing::error!(%error, "could not read an archive");
    status::plain(Code::StoreFailed, "the archive could not be read")
}
