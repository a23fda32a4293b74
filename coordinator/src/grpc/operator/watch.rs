//! A deployment's events, from any one on, and then as they are committed.
//!
//! What was committed before is read from the store; what comes after that is heard from the driver, which tells it after
//! its commit. Each event has its place, and only those after the last one go on: so none is lost and none comes twice. A
//! client that reads too slowly to listen is served from the store again.

use holdfast_common::id::DeploymentId;
use holdfast_coordinator_core::state::DeploymentState;
use holdfast_proto::v1;
use tokio::sync::mpsc;
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
    // What is under way and may be viewed is found without the store.
    let live = asked.deployment.parse().ok().and_then(|id| Some((id, shared.driver.live_on(id)?)));
    let (deployment, target) = match live.filter(|(_, target)| by.scope.may(Permission::View, target)) {
        Some(live) => live,
        None => {
            let row = find::deployment(shared, &by, &asked.deployment, Permission::View).await?;
            (row.record.id, row.target)
        }
    };
    let (sender, stream) = mpsc::channel(16);
    let watch = Watch {
        shared: shared.clone(),
        deployment,
        from: asked.from_sequence,
        follow: asked.follow,
        after: GlobalOrder(0),
        state: None,
    };
    tokio::spawn(watch.run(sender));
    Ok(Told::new(ReceiverStream::new(stream), shared, by, target))
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
        let stop = self.shared.stop.clone();
        loop {
            // Listened to before the read: what is committed during it is heard.
            let mut news = self.shared.driver.news_of(self.deployment);
            match self.catch_up(&sender).await {
                Ok(Sent::All) if self.follow => {}
                Ok(Sent::All | Sent::NobodyListens) => return,
                Err(error) => {
                    let _gone = sender.send(Err(error)).await;
                    return;
                }
            }
            loop {
                let event = tokio::select! {
                    () = stop.cancelled() => {
                        let _gone = sender.send(Err(stopping())).await;
                        return;
                    }
                    () = sender.closed() => return,
                    event = news.next() => event,
                };
                let Some(event) = event else { break };
                if event.order > self.after
                    && let Some(shown) = self.advance(&event)
                    && sender.send(Ok(v1::WatchEventsResponse { event: Some(shown) })).await.is_err()
                {
                    return;
                }
            }
        }
    }

    async fn catch_up(&mut self, sender: &Sender<v1::WatchEventsResponse>) -> Result<Sent, Status> {
        while !sender.is_closed() {
            let filter =
                EventFilter { after: self.after, target: None, deployment: Some(self.deployment), limit: BATCH };
            let read = self.shared.reader.run(move |reader| reader.events(&filter)).await;
            let events = read.map_err(|error| refused::by_store(&error))?;
            for event in &events {
                if let Some(shown) = self.advance(event)
                    && sender.send(Ok(v1::WatchEventsResponse { event: Some(shown) })).await.is_err()
                {
                    return Ok(Sent::NobodyListens);
                }
            }
            if events.len() < BATCH as usize {
                return Ok(Sent::All);
            }
        }
        Ok(Sent::NobodyListens)
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

fn stopping() -> Status {
    status::plain(holdfast_common::code::Code::NotServing, "the coordinator is stopping")
}
