//! Files that agents are to fetch.

use std::time::Duration;

use holdfast_net::backoff::Backoff;
use holdfast_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::{Client, DEADLINE, RETRY_FIRST, RETRY_MAX, once};
use crate::failure::Failure;
use crate::refusal::{self, Call};
use crate::upload::Upload;

/// Tries of an upload, before the first byte that is new.
const UPLOAD_TRIES: u32 = 20;
/// Bytes of one part of an upload.
const UPLOAD_PIECE: u64 = 1024 * 1024;
/// How long the answer to one part may take. With the last one the whole is read again and synced.
const UPLOAD_DEADLINE: Duration = Duration::from_secs(120);

impl Client {
    /// Puts a file where agents can fetch it, and goes on after cuts. `told` hears how much is there. True if all of it was
    /// there before.
    pub async fn upload(&self, upload: &mut Upload, mut told: impl FnMut(u64)) -> Result<bool, Failure> {
        let mut backoff = Backoff::new(RETRY_FIRST, RETRY_MAX, rand::random());
        let (mut tries, mut furthest) = (1, 0);
        loop {
            let before = furthest;
            match self.upload_once(upload, &mut furthest, &mut told).await {
                Err(failure) if failure.is_no_answer() && tries < UPLOAD_TRIES => {
                    if furthest > before {
                        tries = 0;
                        backoff.reset();
                    }
                    tries += 1;
                    tokio::time::sleep(backoff.next()).await;
                }
                other => return other,
            }
        }
    }

    async fn upload_once(
        &self,
        upload: &mut Upload,
        furthest: &mut u64,
        told: &mut impl FnMut(u64),
    ) -> Result<bool, Failure> {
        let refused = |status: Status| refusal::of(&status, &Call::Reads);
        let unreadable = |error: std::io::Error| {
            Failure::Unexpected(anyhow::Error::new(error).context("could not read the file to upload"))
        };
        let (requests, outgoing) = mpsc::channel(1);
        let mut api = self.api.clone();
        let call = api.upload_archive(ReceiverStream::new(outgoing));
        let mut answers = once(DEADLINE, call).await.map_err(refused)?;
        let mut offset = 0;
        let mut was_there = true;
        let mut data = Vec::new();
        loop {
            let request = v1::UploadArchiveRequest { sha256: upload.sha256.clone(), size: upload.size, offset, data };
            // Where the coordinator has ended the stream, its answer tells why.
            let _ended = requests.send(request).await;
            let answer = match tokio::time::timeout(UPLOAD_DEADLINE, answers.message()).await {
                Ok(answer) => answer.map_err(refused)?,
                Err(_) => return Err(refused(Status::deadline_exceeded("no answer to a part of the upload"))),
            };
            let answer = answer.ok_or_else(|| refused(Status::unavailable("the upload ended in the middle")))?;
            if answer.stored {
                return Ok(was_there);
            }
            was_there = false;
            offset = answer.next_offset;
            *furthest = (*furthest).max(offset);
            told(offset);
            data = upload.read(offset, UPLOAD_PIECE).map_err(unreadable)?;
            if data.is_empty() && upload.size > 0 {
                return Err(unreadable(std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }
}
