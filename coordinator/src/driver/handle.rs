//! How everything else in the coordinator reaches the driver.

use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};

use holdfast_common::claim::Claim;
use holdfast_common::id::{AgentName, DeploymentId, OperatorName, TargetName};
use holdfast_common::report::{Disposition, Report};
use holdfast_common::time::Wall;
use holdfast_coordinator_core::TargetState;
use holdfast_coordinator_core::identity::Identity;
use holdfast_coordinator_core::input::Speaker;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

use super::fleet::{Change, Enrolment, Settled};
use super::identities::{Judged, Judging};
use super::inbox::{Body, Message, OrphanReport, Published, Reply, WAITING};
use super::watchers::News;
use super::{Asked, Error, Told};
use crate::joining;
use crate::store::{AgentRow, CertificateRow, DrainRow, JoinTokenRow, TokenRow};

/// Cheap to clone.
///
/// A call whose future is dropped may have been taken all the same.
#[derive(Clone)]
pub struct Handle {
    sender: mpsc::Sender<Message>,
    room: Arc<Semaphore>,
    published: Arc<Published>,
}

impl Handle {
    pub(super) fn new(sender: mpsc::Sender<Message>, room: Arc<Semaphore>, published: Arc<Published>) -> Self {
        Self { sender, room, published }
    }

    /// Decides, and answers once what was decided is on disk.
    pub async fn ask(&self, target: TargetName, asked: Asked) -> Result<Told, Error> {
        self.call(|reply| Body::Ask { target, asked: Box::new(asked), reply }).await
    }

    /// Like [`Handle::ask`] for one of several that go together by [`Handle::send`]. What is told goes to `then`, on the
    /// driver's thread, which must not be blocked; where nothing can be told any more, `then` is dropped.
    ///
    /// What is gathered is decided in order. Sends what was gathered before where it has to wait for room.
    pub async fn gather(
        &self,
        gathered: &mut Vec<Message>,
        target: TargetName,
        asked: Asked,
        then: impl FnOnce(Result<Told, Error>) + Send + 'static,
    ) -> Result<(), Error> {
        let room = match self.room.clone().try_acquire_owned() {
            Ok(room) => room,
            Err(_) => {
                self.send(gathered)?;
                self.room.clone().acquire_owned().await.map_err(|_| Error::Stopped)?
            }
        };
        let body = Body::Ask { target, asked: Box::new(asked), reply: Reply::to(then) };
        gathered.push(Message { body, _room: Some(room) });
        Ok(())
    }

    /// Gives the driver what was gathered, as one piece: it is decided in one batch and shares a commit.
    pub fn send(&self, gathered: &mut Vec<Message>) -> Result<(), Error> {
        if gathered.is_empty() {
            return Ok(());
        }
        let body = Body::Several(std::mem::take(gathered));
        self.sender.send(Message { body, _room: None }).map_err(|_| Error::Stopped)
    }

    /// The committed state, with the last signs of life. `None` if the target was never declared, can't be read, or the
    /// driver has stopped.
    pub async fn state(&self, target: TargetName) -> Option<Arc<TargetState>> {
        let (reply, answer) = Reply::new();
        self.put(Body::State { target, reply }).await.ok()?;
        answer.await.ok().flatten()
    }

    /// The target of a deployment that has not ended.
    #[must_use]
    pub fn live_on(&self, deployment: DeploymentId) -> Option<TargetName> {
        self.published.target_of(deployment)
    }

    /// The target of a deployment; `None` if the store does not know it.
    pub async fn target_of(&self, deployment: DeploymentId) -> Option<TargetName> {
        if let Some(target) = self.published.target_of(deployment) {
            return Some(target);
        }
        let (reply, answer) = Reply::new();
        self.put(Body::TargetOf { deployment, reply }).await.ok()?;
        answer.await.ok().flatten()
    }

    /// Keeps a report on a deployment that the store does not know, under its agent. Answers `Filed(UnknownAttempt)`, or
    /// `Duplicate` if the same was kept before.
    pub async fn file_orphan(&self, speaker: Speaker, claim: Claim, report: Report) -> Result<Disposition, Error> {
        let report = Box::new(OrphanReport { speaker, claim, report });
        self.call(|reply| Body::Orphan { report, reply }).await
    }

    /// What is committed about the deployment from now on.
    #[must_use]
    pub fn news_of(&self, deployment: DeploymentId) -> News {
        News::new(&self.published, deployment)
    }

    /// Writes what is known of an agent.
    pub async fn put_agent(&self, row: AgentRow) -> Result<(), Error> {
        self.call(|reply| Body::Agent { row: Box::new(row), reply }).await
    }

    /// Reads who the agent is, judges, and writes it, in one transaction with what is to be kept of it. Answers once it is on
    /// disk. `judge` may be called again from the start, when it could not be written.
    pub async fn identify<T: Send + 'static>(
        &self,
        agent: AgentName,
        judge: impl Fn(&mut Identity, Wall) -> Judged<T> + Send + Sync + 'static,
    ) -> Result<T, Error> {
        self.call(|reply| Body::Identify { agent, judge: Arc::new(Judging { judge, reply }) }).await
    }

    /// Writes a new token. False, and nothing is written, if a valid one of that name is there.
    pub async fn make_token(&self, row: TokenRow) -> Result<bool, Error> {
        self.call(|reply| Body::MakeToken { row: Box::new(row), reply }).await
    }

    /// Takes that token back. False if it is not there any more, or another one has its name by now.
    pub async fn revoke_token(&self, row: TokenRow, by: OperatorName) -> Result<bool, Error> {
        self.call(|reply| Body::RevokeToken { row: Box::new(row), by, reply }).await
    }

    /// Writes a new join token.
    pub async fn make_join_token(&self, row: JoinTokenRow) -> Result<(), Error> {
        self.change(Change::MakeToken(row)).await.map(drop)
    }

    /// Takes the join token back that is listed so; `None` if there is none, or it was taken back before.
    pub async fn revoke_join_token(&self, id: String, by: OperatorName) -> Result<Option<JoinTokenRow>, Error> {
        match self.change(Change::RevokeToken { id, by }).await? {
            Settled::Token(row) => Ok(Some(row)),
            Settled::Done | Settled::Nothing | Settled::Joined(_) | Settled::Revoked(_) => Ok(None),
        }
    }

    /// Takes a host in, or says why not. `certificate` counts only if it is.
    pub async fn join(
        &self,
        asked: joining::Asked,
        certificate: CertificateRow,
    ) -> Result<Result<Enrolment, joining::Refusal>, Error> {
        match self.change(Change::Join { asked, certificate }).await? {
            Settled::Joined(joined) => Ok(joined),
            Settled::Done | Settled::Nothing | Settled::Token(_) | Settled::Revoked(_) => {
                Ok(Err(joining::Refusal::Unknown))
            }
        }
    }

    /// Writes one more certificate of an agent that showed the one with that fingerprint. False if it may not any more.
    pub async fn renew(&self, agent: AgentName, shown: String, certificate: CertificateRow) -> Result<bool, Error> {
        self.change(Change::Renew { agent, shown, certificate }).await.map(|settled| settled.wrote())
    }

    /// Nothing that the agent shows opens anything any more. False if that is so already.
    pub async fn remove_agent(&self, agent: AgentName, by: OperatorName, reason: String) -> Result<bool, Error> {
        self.change(Change::Remove { agent, by, reason }).await.map(|settled| settled.wrote())
    }

    /// The certificate opens nothing any more. Answers whose it is, where that is known.
    pub async fn revoke_certificate(
        &self,
        fingerprint: String,
        by: OperatorName,
        reason: String,
    ) -> Result<Option<AgentName>, Error> {
        match self.change(Change::Revoke { fingerprint, by, reason }).await? {
            Settled::Revoked(agent) => Ok(agent),
            Settled::Done | Settled::Nothing | Settled::Token(_) | Settled::Joined(_) => Ok(None),
        }
    }

    async fn change(&self, change: Change) -> Result<Settled, Error> {
        self.call(|reply| Body::Fleet { change: Box::new(change), reply }).await
    }

    /// Writes that an agent gets nothing new. Answers since when that is so.
    pub async fn drain(&self, row: DrainRow) -> Result<Wall, Error> {
        self.call(|reply| Body::Drain { row: Box::new(row), reply }).await
    }

    /// Writes that an agent gets new work again. False if that was so.
    pub async fn resume(&self, agent: AgentName, by: OperatorName) -> Result<bool, Error> {
        self.call(|reply| Body::Resume { agent, by, reply }).await
    }

    /// Keeps that `who` was refused `what`, and why. Dropped when the driver has more to do than it can.
    pub fn refused(&self, who: String, what: String, why: String) {
        if let Ok(room) = self.room.clone().try_acquire_owned() {
            self.note(Body::Refused { who, what, why }, Some(room));
        }
    }

    /// An agent's session has started: everything due for it is handed out again, and what waits for an agent is
    /// assigned anew.
    pub async fn session_started(&self, speaker: Speaker) {
        let _the_driver_has_stopped = self.put(Body::SessionStarted(speaker)).await;
    }

    /// Agents came, went or changed: what waits for an agent is assigned anew.
    pub fn agents_changed(&self) {
        if !self.published.changed.swap(true, Ordering::SeqCst) {
            self.note(Body::AgentsChanged, None);
        }
    }

    /// How many messages wait for the driver.
    #[must_use]
    pub fn waiting(&self) -> usize {
        WAITING - self.room.available_permits().min(WAITING)
    }

    /// Whether more messages may wait; without room, callers do.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.room.available_permits() > 0
    }

    /// The global order of the last committed event.
    #[must_use]
    pub fn committed(&self) -> watch::Receiver<u64> {
        self.published.committed.subscribe()
    }

    /// Everything that was asked before is decided and committed, the store is closed, and the thread ends.
    pub async fn stop(self) {
        let (reply, stopped) = oneshot::channel();
        if self.put(Body::Stop(reply)).await.is_ok() {
            let _closed = stopped.await;
        }
    }

    async fn call<T: Send + 'static>(&self, body: impl FnOnce(Reply<Result<T, Error>>) -> Body) -> Result<T, Error> {
        let (reply, answer) = Reply::new();
        self.put(body(reply)).await?;
        answer.await.unwrap_or(Err(Error::Stopped))
    }

    async fn put(&self, body: Body) -> Result<(), Error> {
        let room = self.room.clone().acquire_owned().await.map_err(|_| Error::Stopped)?;
        self.sender.send(Message { body, _room: Some(room) }).map_err(|_| Error::Stopped)
    }

    fn note(&self, body: Body, room: Option<OwnedSemaphorePermit>) {
        if self.sender.send(Message { body, _room: room }).is_err() {
            tracing::debug!("the driver has stopped");
        }
    }
}
