//! Taking archives that deployments will name.

use holdfast_common::code::Code;
use holdfast_common::problem::Problem;
use holdfast_common::spec::DeploymentSpec;
use holdfast_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::Sender;
use crate::archives::retention::uploaded;
use crate::archives::{Error, Sha256, Standing};
use crate::grpc::shared::Shared;
use crate::grpc::{refused as driver_refused, status};
use crate::room::is_no_room;

pub(super) fn upload(
    shared: &Shared,
    incoming: Streaming<v1::UploadArchiveRequest>,
) -> ReceiverStream<Result<v1::UploadArchiveResponse, Status>> {
    let (sender, stream) = mpsc::channel(2);
    tokio::spawn(take_all(shared.clone(), incoming, sender));
    ReceiverStream::new(stream)
}

async fn take_all(
    shared: Shared,
    mut incoming: Streaming<v1::UploadArchiveRequest>,
    sender: Sender<v1::UploadArchiveResponse>,
) {
    let stop = shared.stop.clone();
    loop {
        let request = tokio::select! {
            () = stop.cancelled() => Err(status::plain(Code::NotServing, "the coordinator is stopping")),
            () = sender.closed() => return,
            request = incoming.message() => request,
        };
        let answer = match request {
            Ok(Some(request)) => take(&shared, request).await,
            Ok(None) => return,
            Err(status) => Err(status),
        };
        let is_over = answer.is_err();
        if sender.send(answer).await.is_err() || is_over {
            return;
        }
    }
}

async fn take(shared: &Shared, request: v1::UploadArchiveRequest) -> Result<v1::UploadArchiveResponse, Status> {
    let v1::UploadArchiveRequest { sha256, size, offset, data } = request;
    let digest = Sha256::new(&sha256)
        .ok_or_else(|| status::of(&Problem::new(Code::InvalidMessage, "sha256: no SHA-256").with("field", "sha256")))?;
    let room = *shared.room.borrow();
    // Whether it is here already is told at any time: a submission of before may be asked for again.
    if !data.is_empty() && !room.takes_new_work() {
        return Err(status::of(&driver_refused::no_room(room)));
    }
    let archives = shared.archives.clone();
    let taken = tokio::task::spawn_blocking(move || match data.as_slice() {
        // An empty archive is whole from the start; nothing asks for one.
        [] if size > 0 => archives.standing(&digest, size),
        data => archives.append(&digest, size, offset, data),
    });
    let Standing { next, stored } = taken.await.map_err(|error| failed(&error))?.map_err(|error| match &error {
        Error::Disk { source, .. } if is_no_room(source) => status::of(&driver_refused::no_room(room)),
        error => refused(error, &sha256),
    })?;
    Ok(v1::UploadArchiveResponse { next_offset: next, stored })
}

/// Refuses a deployment whose archives are not all here. What is here counts as used, so that it stays.
pub(super) async fn present(shared: &Shared, spec: &DeploymentSpec) -> Result<(), Status> {
    let wanted: Vec<(String, Sha256)> =
        spec.steps_both_ways().filter_map(|step| Some((step.name.to_string(), uploaded(&step.body)?))).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let archives = shared.archives.clone();
    let looked = tokio::task::spawn_blocking(move || {
        for (step, sha256) in wanted {
            if !archives.has(&sha256)? {
                return Ok(Some((step, sha256)));
            }
        }
        Ok::<_, Error>(None)
    });
    let missing = looked.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
    let Some((step, sha256)) = missing else { return Ok(()) };
    let sha256 = sha256.as_str();
    Err(status::of(
        &Problem::new(Code::ArchiveMissing, format!("the archive of step {step} was not uploaded"))
            .known(format!("its SHA-256 is {sha256}"))
            .so("nothing was recorded and nothing was started")
            .next("holdfast deploy FILE uploads it first")
            .with("sha256", sha256),
    ))
}

fn refused(error: &Error, sha256: &str) -> Status {
    let code = match error {
        Error::TooLarge { .. } | Error::NoRoom { .. } => Code::ArchiveTooLarge,
        Error::Differs { .. } => Code::ArchiveDiffers,
        Error::Disk { .. } => return failed(error),
    };
    status::of(
        &Problem::new(code, error.to_string())
            .known(format!("asked for was {sha256}"))
            .so("nothing was recorded and nothing was started"),
    )
}

fn failed(error: &dyn std::error::Error) -> Status {
    tracing::error!(%error, "could not keep an archive");
    status::plain(Code::StoreFailed, "the archive could not be stored")
}
