//! Sends what steps print to the coordinator, on a connection of its own so that it can never delay a heartbeat.
//!
//! ```text
//!   shim ─▶ stdout, stderr (bounded files) ─▶ one chunk at a time ─▶ coordinator
//!             uploads/<attempt>.<step>.json: not there whole yet        └─ "I have it up to here", "I have it all"
//! ```
//!
//! The files that the shim writes are the buffer: nothing is held in memory but the chunk under way, however much is
//! printed and however long the coordinator is away. On each connection the agent asks first where every stream stands and
//! goes on from there; so a cut, or a restart of either side, loses nothing and repeats nothing. A note on disk remembers
//! each output until the coordinator says that it has all of it on its own disk.

mod note;
mod piece;
mod sender;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use holdfast_common::claim::Claim;
use holdfast_common::id::{AttemptId, StepName};
use holdfast_net::channel::Addresses;
use holdfast_net::tls::ClientTls;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::metrics::Metrics;
use crate::places::Places;
use sender::Sender;

/// One step's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Of which attempt: the one that the step began under, whoever goes on with its process.
    pub claim: Claim,
    /// Of which step.
    pub step: StepName,
    /// The attempt whose folder holds the step's files.
    pub folder: AttemptId,
}

/// Takes note of outputs; the sending goes on beside it.
#[derive(Clone, Debug)]
pub struct Uploader {
    /// Grows with the steps whose outputs wait in their files, each of which is noted on disk, and with nothing that is printed.
    follow: mpsc::UnboundedSender<Output>,
    look: Arc<Notify>,
    places: Places,
}

impl Uploader {
    /// Starts the sending task on that runtime, which first takes up what an earlier agent on this state folder did not send to its end.
    pub fn start(
        addresses: &Addresses,
        tls: &ClientTls,
        state: &Path,
        stop: CancellationToken,
        metrics: Arc<Metrics>,
        runtime: &Handle,
    ) -> io::Result<Self> {
        let places = Places::below(state);
        places.prepare()?;
        let (follow, outputs) = mpsc::unbounded_channel();
        let look = Arc::new(Notify::new());
        for output in note::all(&places)? {
            let _its_receiver_is_here = follow.send(output);
        }
        let sender = Sender::new(addresses, tls, places.clone(), metrics);
        let looks = Arc::clone(&look);
        runtime.spawn(async move { stop.run_until_cancelled(sender.run(outputs, &looks)).await });
        Ok(Self { follow, look, places })
    }

    /// Sends a step's output as it grows, until all of it is stored, also after a restart.
    pub fn follow(&self, output: Output) {
        if let Err(error) = note::write(&self.places, &output) {
            tracing::warn!(%error, step = %output.step, "an output is not noted: after a restart it would not be sent");
        }
        let _stopped = self.follow.send(output);
    }

    /// The attempts whose folders hold outputs that the coordinator does not have whole.
    pub fn unsent(&self) -> io::Result<BTreeSet<AttemptId>> {
        Ok(note::all(&self.places)?.into_iter().map(|output| output.folder).collect())
    }

    /// Something has ended: look now.
    pub fn look(&self) {
        self.look.notify_one();
    }
}
