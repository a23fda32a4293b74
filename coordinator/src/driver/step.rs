//! One step: a batch of messages, one commit, then the answers and effects.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use holdfast_common::id::{AgentName, DeploymentId, OperatorName, TargetName};
use holdfast_common::report::{Disposition, FiledReason};
use holdfast_common::time::{Millis, Wall};
use holdfast_coordinator_core::event::Event;
use holdfast_coordinator_core::input::Speaker;
use holdfast_coordinator_core::state::DeploymentState;
use holdfast_coordinator_core::{Answer, Effect, Input, Now};
use holdfast_net::room::Room;
use rand::RngCore;

use super::batch::Batch;
use super::decide::{Beside, Failure, Inner};
use super::fleet::{self, Settled};
use super::full::Full;
use super::inbox::{Body, OrphanReport, Reply};
use super::input::{Draw, Prepared};
use super::serving::ServingClock;
use super::targets::Targets;
use super::watchers::Entry;
use super::{Asked, Error, Fatal, Inbox, Message, Moment, Sessions, Settings, Told, tell};
use crate::bugs::{self, Bug};
use crate::crash::{CrashPoint, reached};
use crate::metrics::Metrics;
use crate::room::{Endless, Space};
use crate::store::rows::EventFilter;
use crate::store::{self, Act, DrainRow, Reader, RefusalRow, Store, TokenRow, Transaction};
use crate::tokens;
use crate::verify::Verdict;

/// Targets that one step wakes at most.
const WOKEN: usize = 256;
/// Assignments of one target that one step tries at most.
const ASSIGNMENTS: usize = 4;
/// A target that wants to be woken at once again waits at least so long.
const PAUSE: Millis = Millis(10);

/// How a transaction begins.
type Begin<S> = for<'a> fn(&'a mut S) -> Result<<S as Store>::Transaction<'a>, store::Error>;

/// Owns the store. See the module.
pub struct Driver<S: Store> {
    pub(super) store: S,
    pub(super) inner: Inner,
    pub(super) full: Full,
    /// Of the current step.
    pub(super) monotonic: Duration,
    /// Targets whose effects were not looked at since they were loaded.
    pub(super) unseen: BTreeSet<TargetName>,
    lease_margin: Millis,
    broken: bool,
}

impl<S: Store> Driver<S> {
    /// Begins a new run on the store and loads every target on which something is current or waits.
    ///
    /// `random` gives identities and jitter. A target that can't be read is left out and logged: it answers with its
    /// error when it is asked.
    pub fn open(
        mut store: S,
        sessions: Arc<dyn Sessions>,
        random: Box<dyn RngCore + Send>,
        settings: Settings,
        inbox: &Inbox,
        now: Moment,
    ) -> Result<Self, store::Error> {
        let mut tx = store.begin()?;
        let start = tx.start_run(now.wall)?;
        tx.commit()?;
        let clock = ServingClock::new(start, now);
        let core_now = core_now(&store, &clock, now, settings.lease_margin);
        let inner = Inner {
            targets: Targets::default(),
            sessions,
            draw: Draw::new(random),
            clock,
            now: core_now,
            published: inbox.published.clone(),
            metrics: Arc::default(),
            gate: Room::Plenty,
            absence: settings.absence,
            verdict: Verdict::default(),
            suspected: false,
        };
        #[cfg(feature = "bugs")]
        bugs::forward(|name| holdfast_coordinator_core::bugs::set(holdfast_coordinator_core::bugs::Bug::parse(name)));
        let mut driver = Self {
            store,
            inner,
            full: Full::new(Box::new(Endless)),
            monotonic: now.monotonic,
            unseen: BTreeSet::new(),
            lease_margin: settings.lease_margin,
            broken: false,
        };
        driver.load_busy()?;
        let newest = driver.store.reader().newest()?;
        driver.inner.published.committed.send_replace(newest.0);
        Ok(driver)
    }

    /// Measures into these instead of its own.
    pub fn measured(mut self, metrics: Arc<Metrics>) -> Result<Self, store::Error> {
        self.inner.metrics = metrics;
        let reader = self.store.reader();
        for name in self.inner.targets.names() {
            let Some(target) = self.inner.targets.get(name) else { continue };
            let held = target.state.current.as_ref();
            if let Some(held) = held.filter(|held| held.state == DeploymentState::Uncertain)
                && let Some(since) = uncertain_since(&reader, held.id)?
            {
                self.inner.metrics.uncertain_since(held.id, since);
            }
            self.inner.metrics.stands(name, &target.state, self.inner.now.wall);
        }
        Ok(self)
    }

    /// Grants nothing while something stands against it.
    #[must_use]
    pub fn audited(mut self, verdict: Verdict) -> Self {
        self.inner.verdict = verdict;
        self
    }

    /// On a disk that can fill up.
    #[must_use]
    pub fn on(mut self, space: Box<dyn Space>) -> Self {
        self.full = Full::new(space);
        self
    }

    fn load_busy(&mut self) -> Result<(), store::Error> {
        let Self { store, inner, unseen, .. } = self;
        let mut tx = store.begin()?;
        for name in tx.busy_targets()? {
            match inner.targets.load(&mut tx, &name, inner.now) {
                Ok(_) => {}
                Err(error) if error.is_contained() => {
                    tracing::error!(target = %name, %error, "a target can't be read: nothing is granted on it");
                }
                Err(error) => return Err(error),
            }
        }
        unseen.extend(inner.targets.names().cloned());
        let mut live = inner.published.live.write().unwrap_or_else(PoisonError::into_inner);
        for name in inner.targets.names() {
            let Some(target) = inner.targets.get(name) else { continue };
            let deployments = target.state.current.iter().chain(&target.state.queue);
            live.extend(deployments.map(|deployment| (deployment.id, name.clone())));
        }
        Ok(())
    }

    /// Does what the messages ask and what time asks, commits it, then answers and hands out what is due.
    ///
    /// After an error nothing is known of what is on disk: every later step fails too, and the process should stop.
    pub fn step(&mut self, messages: Vec<Message>, now: Moment) -> Result<(), Fatal> {
        if self.broken {
            let source = "an earlier step failed".into();
            return Err(Fatal(store::Error::Failed { doing: "go on", source }));
        }
        self.monotonic = now.monotonic;
        self.look();
        self.hear_verdict();
        self.hear_suspicion();
        if self.full.stuck {
            self.inner.clock.stand_still(now);
        } else {
            self.inner.clock.advance(now);
        }
        self.inner.now = core_now(&self.store, &self.inner.clock, now, self.lease_margin);
        let result = self.run(messages.into_iter().flat_map(Message::each).collect());
        self.broken = result.is_err();
        result
    }

    fn look(&mut self) {
        if self.full.space.wait(self.monotonic) != Some(Duration::ZERO) {
            return;
        }
        let under_way = self.under_way();
        if self.full.space.look(self.monotonic, under_way) && self.full.space.room().takes_new_work() {
            // What could not be assigned meanwhile is.
            self.unseen.extend(self.inner.targets.names().cloned());
        }
        self.inner.gate = self.full.space.room();
    }

    fn hear_verdict(&mut self) {
        let unsound = self.inner.verdict.against();
        if self.full.unsound.is_some() && unsound.is_none() {
            // What could not be assigned meanwhile is.
            self.unseen.extend(self.inner.targets.names().cloned());
        }
        self.full.unsound = unsound;
    }

    fn hear_suspicion(&mut self) {
        let suspected = std::mem::replace(&mut self.inner.suspected, self.inner.sessions.suspects_itself());
        if suspected && !self.inner.suspected {
            // What could not be assigned meanwhile is.
            self.unseen.extend(self.inner.targets.names().cloned());
        }
    }

    fn run(&mut self, messages: Vec<Message>) -> Result<(), Fatal> {
        let mut messages = self.full.sort(messages);
        self.inner.metrics.took(messages.len());
        if !self.full.stuck {
            match self.attempt(&messages, true) {
                Err(Fatal(error @ store::Error::NoRoom { .. })) => self.no_room(&error),
                Ok(_wrote) => return Ok(()),
                Err(fatal) => return Err(fatal),
            }
            messages = self.full.sort(messages);
        }
        self.one_by_one(messages)
    }

    /// One transaction. `whole` does what time asks, too. Answers whether anything was to be written; after an error the
    /// messages can be tried again.
    ///
    /// No write is expected to be refused. Where one is, all is done again, with each write apart: it is answered with its error,
    /// and the others are done.
    pub(super) fn attempt(&mut self, messages: &[Message], whole: bool) -> Result<bool, Fatal> {
        match self.transact(messages, whole, S::begin_together) {
            Err(Fatal(store::Error::Spoiled { .. })) => self.transact(messages, whole, S::begin),
            done => done,
        }
    }

    fn transact(&mut self, messages: &[Message], whole: bool, begin: Begin<S>) -> Result<bool, Fatal> {
        let mut batch = Batch::touching(if whole { std::mem::take(&mut self.unseen) } else { BTreeSet::new() });
        if let Err(error) = self.decide_and_commit(&mut batch, messages, whole, begin) {
            self.take_back(batch);
            return Err(error);
        }
        self.inner.measure(&batch);
        self.inner.publish(&mut batch);
        batch.say_all(&self.inner.targets);
        self.inner.hand_out(&batch);
        Ok(batch.wrote)
    }

    fn decide_and_commit(
        &mut self,
        batch: &mut Batch,
        messages: &[Message],
        whole: bool,
        begin: Begin<S>,
    ) -> Result<(), Fatal> {
        let Self { store, inner, .. } = self;
        let mut tx = begin(store).map_err(Fatal)?;
        for message in messages {
            inner.take(&mut tx, batch, &message.body)?;
        }
        inner.forget_sent(batch);
        if whole {
            inner.wake(&mut tx, batch)?;
        }
        inner.assign(&mut tx, batch)?;
        if bugs::on(Bug::ReplyBeforeCommit) {
            batch.say_all(&inner.targets);
        }
        if bugs::on(Bug::SendBeforeCommit) {
            inner.hand_out(batch);
        }
        inner.finish(tx, batch, whole)
    }

    /// How long the next step can wait for messages. `None` for ever.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        let disk = self.full.patience(self.monotonic);
        if self.full.stuck {
            return disk;
        }
        if !self.unseen.is_empty() {
            return Some(Duration::ZERO);
        }
        let next = self.inner.targets.next_wakeup().map(|next| {
            let until = Duration::from(next.since(self.inner.clock.now()));
            until.min(self.inner.clock.write_in())
        });
        next.into_iter().chain(disk).min()
    }

    /// Writes how long this run has served. To be called before the driver is dropped in order.
    pub fn close(&mut self, now: Moment) -> Result<(), Fatal> {
        self.inner.clock.advance(now);
        let (run, served) = (self.inner.clock.run(), self.inner.clock.served());
        let written = self.store.begin().and_then(|mut tx| {
            tx.serve(run, served)?;
            tx.commit()
        });
        match written {
            // Leases live a little longer for it.
            Err(error @ store::Error::NoRoom { .. }) => {
                tracing::warn!(%error, "how long this run has served is not written");
                Ok(())
            }
            written => written.map_err(Fatal),
        }
    }
}

fn core_now(store: &impl Store, clock: &ServingClock, now: Moment, lease_margin: Millis) -> Now {
    Now { wall: now.wall, serving: clock.now(), run: clock.run(), epoch: store.identity().epoch, lease_margin }
}

impl Inner {
    fn take(&mut self, tx: &mut impl Transaction, batch: &mut Batch, body: &Body) -> Result<(), Fatal> {
        match body {
            Body::Ask { target, asked, reply } => self.ask(tx, batch, target, Asked::clone(asked), reply.clone())?,
            Body::State { target, reply } => {
                let reply = reply.clone();
                let loaded = self.targets.load(tx, target, self.now).map(|target| target.map(|it| it.state.clone()));
                let state = Failure::contain(loaded.map_err(Failure::from))?.ok().flatten();
                batch.answer(move |_| reply.say(state));
            }
            Body::TargetOf { deployment, reply } => {
                let reply = reply.clone();
                let target = Failure::contain(tx.target_of(*deployment).map_err(Failure::from))?.ok().flatten();
                batch.answer(move |_| reply.say(target));
            }
            Body::Orphan { report, reply } => {
                self.orphan(tx, batch, OrphanReport::clone(report), reply.clone())?;
            }
            Body::Agent { row, reply } => {
                let reply = reply.clone();
                let result = Failure::contain(tx.put_agent(row).map_err(Failure::from))?;
                batch.wrote |= result.is_ok();
                batch.answer(move |_| reply.say(result));
            }
            Body::Identify { agent, judge } => self.identify(tx, batch, agent, judge.as_ref())?,
            Body::MakeToken { row, reply } => {
                let reply = reply.clone();
                let result = Failure::contain(make_token(tx, row, self.now.wall).map_err(Failure::from))?;
                batch.wrote |= matches!(result, Ok(true));
                batch.answer(move |_| reply.say(result));
            }
            Body::RevokeToken { row, by, reply } => {
                let reply = reply.clone();
                let revoked = revoke_token(tx, TokenRow::clone(row), by, self.now.wall);
                let result = Failure::contain(revoked.map_err(Failure::from))?;
                batch.wrote |= matches!(result, Ok(true));
                batch.answer(move |_| reply.say(result));
            }
            Body::Fleet { change, reply } => {
                let reply = reply.clone();
                let settled = fleet::settle(tx, change, self.now.wall);
                let result = Failure::contain(settled.map_err(Failure::from))?;
                batch.wrote |= result.as_ref().is_ok_and(Settled::wrote);
                batch.answer(move |_| reply.say(result));
            }
            Body::Drain { row, reply } => {
                let reply = reply.clone();
                let result = Failure::contain(drain(tx, row).map_err(Failure::from))?;
                batch.wrote |= result.is_ok();
                batch.answer(move |_| reply.say(result));
            }
            Body::Resume { agent, by, reply } => {
                let reply = reply.clone();
                let result = Failure::contain(resume(tx, agent, by, self.now.wall).map_err(Failure::from))?;
                batch.wrote |= matches!(result, Ok(true));
                batch.answer(move |_| reply.say(result));
            }
            // The reserve is for results.
            Body::Refused { .. } if !self.gate.can_promise() => {}
            Body::Refused { who, what, why } => {
                self.refused(tx, batch, who.clone(), what.clone(), why.clone())?;
            }
            Body::SessionStarted(speaker) => {
                self.sessions.stands(&speaker.agent);
                batch.agents_changed = true;
                batch.started.insert(speaker.agent.clone());
            }
            Body::AgentsChanged => batch.agents_changed = true,
            Body::Several(several) => several.iter().try_for_each(|message| self.take(tx, batch, &message.body))?,
            Body::Stop(_) => {}
        }
        Ok(())
    }

    fn ask(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        target: &TargetName,
        asked: Asked,
        reply: Reply<Result<Told, Error>>,
    ) -> Result<(), Fatal> {
        let operator = asked.by_operator().map(|(what, by)| (what, by.to_string()));
        let result = Failure::contain(self.ask_or_fail(tx, batch, target, asked))?;
        if let (Some((what, by)), Err(error)) = (operator, &result)
            && !matches!(error, Error::NoRoom(_))
        {
            self.refused(tx, batch, by, format!("{what} {target}"), error.to_string())?;
        }
        let target = target.clone();
        batch.answer(move |targets| {
            reply.say(result.map(|told| {
                let shown = told.submitted().and_then(|_| targets.get(&target)).map(|target| target.state.clone());
                Told { after: shown, ..told }
            }));
        });
        Ok(())
    }

    fn ask_or_fail(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        target: &TargetName,
        asked: Asked,
    ) -> Result<Told, Failure> {
        let about = asked.deployment();
        match self.prepare(tx, target, asked)? {
            Prepared::Told(told) => Ok(told),
            Prepared::Decide(prepared) => {
                let (input, beside) = *prepared;
                let answer = self.decide(tx, batch, target, &input, &beside)?;
                let answer = self.keep_unknown(tx, batch, answer, &beside)?;
                if matches!(input, Input::InquiryAnswered { .. }) {
                    self.contradicted(tx, batch, target)?;
                }
                let deployment = beside.submission.map(|(deployment, _)| deployment).or(about);
                Ok(Told { answer, deployment, existed: false, after: None })
            }
        }
    }

    /// A report on an attempt that is not the speaker's is kept with no deployment, but kept.
    fn keep_unknown(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        answer: Answer,
        beside: &Beside,
    ) -> Result<Answer, Failure> {
        let unknown = answer == Answer::Answered(Disposition::Filed(FiledReason::UnknownAttempt));
        let Some((speaker, claim, report)) = beside.report.as_ref().filter(|_| unknown) else { return Ok(answer) };
        let report = OrphanReport { speaker: speaker.clone(), claim: *claim, report: report.clone() };
        self.keep_orphan(tx, batch, report).map(Answer::Answered)
    }

    fn keep_orphan(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        report: OrphanReport,
    ) -> Result<Disposition, Failure> {
        let OrphanReport { speaker: Speaker { agent, incarnation }, claim, report } = report;
        let new = tx.keep_orphan(&store::orphan(agent, incarnation, claim, report, self.now.wall))?;
        batch.wrote |= new;
        Ok(if new { Disposition::Filed(FiledReason::UnknownAttempt) } else { Disposition::Duplicate })
    }

    fn orphan(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        report: OrphanReport,
        reply: Reply<Result<Disposition, Error>>,
    ) -> Result<(), Fatal> {
        let answer = Failure::contain(self.keep_orphan(tx, batch, report))?;
        batch.answer(move |_| reply.say(answer));
        Ok(())
    }

    fn refused(
        &mut self,
        tx: &mut impl Transaction,
        batch: &mut Batch,
        who: String,
        what: String,
        why: String,
    ) -> Result<(), Fatal> {
        let row = RefusalRow { who, what, why, at: self.now.wall };
        let kept: Result<(), Error> = Failure::contain(tx.keep_refusal(&row).map_err(Failure::from))?;
        batch.wrote |= kept.is_ok();
        Ok(())
    }

    /// Nothing that was handed to an earlier session of an agent counts any more, and what waits for an agent is assigned
    /// anew. Once for all sessions of a batch: when many agents come back at once, each target is looked at for each commit,
    /// not for each agent.
    fn forget_sent(&mut self, batch: &mut Batch) {
        if !batch.agents_changed {
            return;
        }
        let again = |effect: &Effect| match addressee(effect) {
            None => true,
            Some(agent) => batch.started.contains(agent) && !bugs::on(Bug::SendOnlyOnce),
        };
        for (name, target) in self.targets.all_mut() {
            let before = target.sent.len();
            target.sent.retain(|effect| !again(effect));
            if target.sent.len() != before {
                batch.touched.insert(name.clone());
            }
        }
    }

    /// Time has passed for some targets.
    fn wake(&mut self, tx: &mut impl Transaction, batch: &mut Batch) -> Result<(), Fatal> {
        for name in self.targets.due_by(self.now.serving, WOKEN) {
            let input = Input::Tick { jitter: self.draw.jitter() };
            let before = self.targets.get(&name).map(|target| target.state.sequence);
            let _logged = Failure::contain(self.decide(tx, batch, &name, &input, &Beside::default()))?;
            let after = self.targets.get(&name).map(|target| target.state.sequence);
            self.targets.reschedule(&name, self.now);
            self.do_not_spin(&name, before != after);
            batch.touched.insert(name);
        }
        Ok(())
    }

    /// An instant that has passed and brought nothing will bring nothing until the state changes.
    fn do_not_spin(&mut self, name: &TargetName, moved: bool) {
        if self.targets.wakeup_of(name).is_some_and(|at| at <= self.now.serving) {
            let again = moved.then(|| self.now.serving.after(PAUSE));
            self.targets.wake_at(name, again);
        }
    }

    /// Gives what waits for an agent to one.
    fn assign(&mut self, tx: &mut impl Transaction, batch: &mut Batch) -> Result<(), Fatal> {
        if !self.gate.takes_new_work() || !self.verdict.is_sound() || self.suspected {
            return Ok(());
        }
        for name in batch.touched.clone() {
            for _round in 0..ASSIGNMENTS {
                let Some(target) = self.targets.get_mut(&name) else { break };
                let Some(effect) = target.unsent(self.now).into_iter().find(|effect| addressee(effect).is_none())
                else {
                    break;
                };
                target.sent.insert(effect.clone());
                let Some(input) = self.own_move(tx, &name, &effect)? else { continue };
                let _logged = Failure::contain(self.decide(tx, batch, &name, &input, &Beside::default()))?;
            }
        }
        Ok(())
    }

    /// The input that an effect of the driver's own asks for.
    fn own_move(
        &mut self,
        tx: &mut impl Transaction,
        name: &TargetName,
        effect: &Effect,
    ) -> Result<Option<Input>, Fatal> {
        match effect {
            Effect::Assign { .. } => {
                let Some(target) = self.targets.get(name) else { return Ok(None) };
                let steps = target.state.current.iter().flat_map(|deployment| &deployment.spec.steps);
                let needs = steps.map(|step| step.body.adapter()).collect();
                let candidates = self.sessions.candidates(&target.state.spec, &needs);
                Ok(Some(Input::Assign { candidates, attempt: self.draw.attempt() }))
            }
            Effect::Recover { deployment } => {
                let Ok(reachable) = Failure::contain(self.reachable(tx, name, *deployment))? else { return Ok(None) };
                let (inquiry, evidence) = (self.draw.evidence(), self.draw.evidence());
                Ok(Some(Input::Recover { inquiry, evidence, attempt: self.draw.attempt(), reachable }))
            }
            Effect::Offer { .. } | Effect::Cancel { .. } | Effect::Inquire { .. } => Ok(None),
        }
    }

    /// Commits what is to be committed.
    fn finish(&mut self, mut tx: impl Transaction, batch: &Batch, whole: bool) -> Result<(), Fatal> {
        let served_is_due = whole && self.targets.next_wakeup().is_some() && self.clock.write_in().is_zero();
        if !batch.wrote && !served_is_due {
            return Ok(());
        }
        if !bugs::on(Bug::ForgetServedTime) {
            tx.serve(self.clock.run(), self.clock.served()).map_err(Fatal)?;
        }
        batch.before_commit();
        let begun = Instant::now();
        tx.commit().map_err(Fatal)?;
        self.metrics.committed(begun.elapsed());
        batch.after_commit();
        self.clock.mark_written();
        Ok(())
    }

    fn publish(&self, batch: &mut Batch) {
        if !batch.begun.is_empty() || !batch.ended.is_empty() {
            let mut live = self.published.live.write().unwrap_or_else(PoisonError::into_inner);
            live.extend(batch.begun.iter().cloned());
            for ended in &batch.ended {
                live.remove(ended);
            }
        }
        if let Some(newest) = batch.newest {
            self.published.committed.send_replace(newest.0);
        }
        self.published.watchers.tell(std::mem::take(&mut batch.written));
    }

    /// Counts and logs what is committed, before anybody is told: who has an answer finds it counted.
    fn measure(&self, batch: &Batch) {
        self.metrics.count(&batch.facts);
        for Entry { target: name, events, .. } in &batch.written {
            events.iter().for_each(|recorded| tell::tell(name, recorded));
            if let Some(target) = self.targets.get(name) {
                self.metrics.stands(name, &target.state, self.now.wall);
            }
        }
    }

    /// Hands out what is due now and was not handed out before.
    fn hand_out(&mut self, batch: &Batch) {
        for name in &batch.touched {
            let Some(target) = self.targets.get_mut(name) else { continue };
            for effect in target.unsent(self.now) {
                if addressee(&effect).is_none() {
                    continue;
                }
                reached(CrashPoint::BeforeSend);
                self.sessions.send(&target.state, &effect);
                reached(CrashPoint::AfterSend);
                target.sent.insert(effect);
            }
        }
    }
}

/// When the deployment became uncertain, by its events.
fn uncertain_since(reader: &Reader, deployment: DeploymentId) -> Result<Option<Wall>, store::Error> {
    const PAGE: u32 = 500;
    let mut filter = EventFilter { deployment: Some(deployment), limit: PAGE, ..EventFilter::default() };
    let mut since = None;
    loop {
        let page = reader.events(&filter)?;
        for stored in &page {
            if let Event::DeploymentMoved { state, .. } = &stored.recorded.event {
                since = (*state == DeploymentState::Uncertain).then_some(stored.recorded.at);
            }
        }
        match page.last() {
            Some(last) if page.len() == PAGE as usize => filter.after = last.order,
            Some(_) | None => return Ok(since),
        }
    }
}

fn make_token(tx: &mut impl Transaction, row: &TokenRow, now: Wall) -> Result<bool, store::Error> {
    let taken = tx.token(&row.name)?.is_some_and(|there| there.expires_at > Some(now));
    if !taken {
        tx.put_token(row)?;
        tx.keep_act(&tokens::made(row, now))?;
    }
    Ok(!taken)
}

fn revoke_token(tx: &mut impl Transaction, row: TokenRow, by: &OperatorName, now: Wall) -> Result<bool, store::Error> {
    let there = tx.token(&row.name)?.is_some_and(|there| there.hash == row.hash);
    if there {
        tx.keep_act(&tokens::taken_back(&row, Some(by), now))?;
        tx.put_token(&tokens::revoked(row))?;
    }
    Ok(there)
}

fn drain(tx: &mut impl Transaction, row: &DrainRow) -> Result<Wall, store::Error> {
    let DrainRow { agent, by, reason, since: at } = row;
    let since = tx.put_drain(row)?;
    let (by, about) = (by.to_string(), agent.to_string());
    tx.keep_act(&Act { at: *at, by, kind: "agent_drained", about, detail: reason.clone() })?;
    Ok(since)
}

fn resume(tx: &mut impl Transaction, agent: &AgentName, by: &OperatorName, at: Wall) -> Result<bool, store::Error> {
    let was_drained = tx.remove_drain(agent)?;
    if was_drained {
        let (by, about) = (by.to_string(), agent.to_string());
        tx.keep_act(&Act { at, by, kind: "agent_resumed", about, detail: String::new() })?;
    }
    Ok(was_drained)
}

/// The agent that an effect goes to; `None` for what the driver does itself.
fn addressee(effect: &Effect) -> Option<&AgentName> {
    match effect {
        Effect::Assign { .. } | Effect::Recover { .. } => None,
        Effect::Offer { agent, .. } | Effect::Cancel { agent, .. } | Effect::Inquire { agent, .. } => Some(agent),
    }
}
