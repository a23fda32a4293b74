//! A deployment's events, from any one on, and then as they are committed.
//!
//! The hint that something was committed is only a hint: what is sent is read from the store, after the last event that
//! was sent. So none is lost and none comes twice, however slowly the client reads.

use holdfast_common::id::DeploymentId;
use holdfast_coordinator_core::state::DeploymentState;
use holdfast_proto::v1;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::lapse::Told;
use super::{Call, Sender, find};
use crate::auth::Permission;
use crate::grpc::shared::Shared;
use crate::grpc::{refused, status, view};
use crate::store::GlobalOrder;
use crate::store::rows::{EventFilter, StoredEvent};

/// Events that are read at once.
const BATCH: u32 = 256;

pub(super) async fn events(call: Call<'_, v1::WatchEventsRequest>) -> Result<Told<v1::WatchEventsResponse>, Status> {
    let Call { shared, by, asked } = call;
    let row = find::deployment(shared, &by, &asked.deployment, Permission::View).await?;
    let (sender, stream) = mpsc::channel(16);
    let watch = Watch {
        shared: shared.clone(),
        deployment: row.record.id,
        from: asked.from_sequence,
        follow: asked.follow,
        after: GlobalOrder(0),
        state: None,
    };
    tokio::spawn(watch.run(sender));
    Ok(Told::new(ReceiverStream::new(stream), shared, by, row.target))
}

struct Watch {
    shared: Shared,
    deployment: DeploymentId,
    from: u64,
    follow: bool,
    /// The last event that was read.
    after: GlobalOrder,
    /// Where the deployment stands after it.
    state: Option<DeploymentState>,
}

impl Watch {
    async fn run(mut self, sender: Sender<v1::WatchEventsResponse>) {
        let mut committed = self.shared.driver.committed();
        let stop = self.shared.stop.clone();
        loop {
            // Marked as seen before the read: what is committed during it wakes the next round.
            committed.borrow_and_update();
            match self.catch_up(&sender).await {
                Ok(Sent::All) if self.follow => {}
                Ok(Sent::All | Sent::NobodyListens) => return,
                Err(error) => {
                    let _gone = sender.send(Err(error)).await;
                    return;
                }
            }
            tokio::select! {
                () = stop.cancelled() => {
                    let _gone = sender.send(Err(stopping())).await;
                    return;
                }
                () = sender.closed() => return,
                more = changed(&mut committed) => if !more {
                    let _gone = sender.send(Err(stopping())).await;
                    return;
                },
            }
        }
    }

    async fn catch_up(&mut self, sender: &Sender<v1::WatchEventsResponse>) -> Result<Sent, Status> {
        loop {
            let filter =
                EventFilter { after: self.after, target: None, deployment: Some(self.deployment), limit: BATCH };
            let read = self.shared.reader.run(move |reader| reader.events(&filter)).await;
            let events = read.map_err(|error| refused::by_store(&error))?;
            if events.is_empty() {
                return Ok(Sent::All);
            }
            for event in &events {
                if let Some(shown) = self.advance(event)
                    && sender.send(Ok(v1::WatchEventsResponse { event: Some(shown) })).await.is_err()
                {
                    return Ok(Sent::NobodyListens);
                }
            }
        }
    }

    /// Takes note of one more event, and shows it if it was asked for.
    fn advance(&mut self, event: &StoredEvent) -> Option<v1::Event> {
        self.after = event.order;
        self.state = view::event::state_after(self.state, &event.recorded.event);
        (event.recorded.sequence.0 >= self.from)
            .then(|| view::event::event(&event.target, &event.recorded, &event.hash, self.state))
    }
}

enum Sent {
    All,
    NobodyListens,
}

/// Whether there may be more; false once the driver is gone.
async fn changed(committed: &mut watch::Receiver<u64>) -> bool {
    committed.changed().await.is_ok()
}

fn stopping() -> Status {
    status::plain(holdfast_common::code::Code::NotServing, "the coordinator is stopping")
}
