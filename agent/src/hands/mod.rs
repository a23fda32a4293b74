//! The driver's hands: threads that wait for shims and look at resources, and tell the driver what came of it.
//!
//! ```text
//!   launch ─▶ shim starts ─▶ Started ─▶ watch ─▶ exit record, or nobody saw it ─▶ look at the resource ─▶ Ended
//!                └─ refused ─▶ tombstone ─▶ Tombstoned
//! ```
//!
//! Nothing here decides: what an ending means is told by the outcome table in the core.

mod bury;
mod desk;
mod ending;
mod examine;
mod job;
mod launch;
mod look;
mod prune;
mod stop;
mod system;
mod watch;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use holdfast_agent_core::work::{Assignment, Boot};
use holdfast_common::id::{AttemptId, StepName};
use holdfast_common::spec::StepSpec;

use crate::config;
use crate::crash::{self, CrashPoint};
use crate::driver::{Event, HandEvent, Hands, Sender};
use crate::fetch::Fetcher;
use crate::logs::Uploader;
use crate::places::Places;
use crate::policy::Host;
use crate::room::HostRoom;
use crate::session::Inquiry;
use crate::supervisor::{Cgroups, Supervisor};
use job::Job;

pub(crate) use desk::Desk;
pub(crate) use launch::OUTPUT_BYTES;
pub(crate) use look::{outside_leases, read_command};
pub use prune::prune;
pub(crate) use system::{About, Failed, environment as call_environment, shown};

/// Between two tries of what nothing goes on without.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The real hands.
#[derive(Debug)]
pub struct Workshop {
    bench: Arc<Bench>,
    /// Steps that a stop was asked for: it is asked once.
    stopping: BTreeSet<(AttemptId, StepName)>,
}

/// What every thread of the workshop uses.
#[derive(Debug)]
struct Bench {
    places: Places,
    supervisor: Supervisor,
    events: Sender,
    logs: Uploader,
    fetcher: Fetcher,
    room: Arc<HostRoom>,
    host: Host,
    surroundings: Surroundings,
}

/// What this host puts around each step.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Where its cgroup is.
    pub cgroups: Cgroups,
    /// What a command or a check may use.
    pub limits: config::Limits,
    /// The machine's fingerprint; empty where it can't be told.
    pub machine: String,
    /// How long its folder stays.
    pub keep: config::Keep,
}

impl Workshop {
    /// In that state folder, which the journal has locked.
    pub fn new(
        places: Places,
        events: Sender,
        logs: Uploader,
        fetcher: Fetcher,
        room: Arc<HostRoom>,
        host: Host,
        surroundings: Surroundings,
    ) -> io::Result<Self> {
        places.prepare()?;
        let supervisor = Supervisor::default().on_machine(&surroundings.machine);
        let bench = Bench { places, supervisor, events, logs, fetcher, room, host, surroundings };
        Ok(Self { bench: Arc::new(bench), stopping: BTreeSet::new() })
    }

    fn spawn(&self, name: &str, work: impl FnOnce(&Bench) + Send + 'static) {
        let bench = Arc::clone(&self.bench);
        let spawned = std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&bench));
        if let Err(error) = spawned {
            // Without a thread nothing of the step can be known: only a restart can find out.
            tracing::error!(%error, "could not make a thread: stopping");
            std::process::abort();
        }
    }
}

impl Hands for Workshop {
    fn examine(&mut self, assignment: &Assignment, step: &StepSpec) {
        let job = Job::of(assignment, step);
        self.spawn("archive", move |bench| bench.examine(&job));
    }

    fn reread(&mut self, assignment: &Assignment, step: &StepSpec) {
        let job = Job::of(assignment, step);
        self.spawn("reread", move |bench| {
            let found = look::again(&job, bench);
            bench.tell(HandEvent::Reread(job.attempt(), job.step.name.clone(), found));
        });
    }

    fn launch(&mut self, assignment: &Assignment, step: &StepSpec, not_after: Option<Boot>) {
        let job = Job::of(assignment, step);
        self.spawn("step", move |bench| bench.launch(&job, not_after));
    }

    fn stop(&mut self, assignment: &Assignment, step: &StepSpec) {
        let attempt = assignment.folder();
        if self.stopping.insert((attempt, step.name.clone())) {
            let (grace, step) = (assignment.grace, step.name.clone());
            self.spawn("stop", move |bench| bench.stop(attempt, &step, grace));
        }
    }

    fn tombstone(&mut self, assignment: &Assignment, step: &StepSpec) {
        let job = Job::of(assignment, step);
        self.spawn("tombstone", move |bench| bench.bury(&job, "its permit was not used"));
    }

    fn survey(&mut self, assignment: &Assignment, step: &StepSpec) {
        let job = Job::of(assignment, step);
        self.spawn("survey", move |bench| bench.survey(&job));
    }

    fn unsent(&self) -> usize {
        // Notes that can't be read are waited for by nobody: the next agent looks again.
        self.bench.logs.unsent().map_or(0, |attempts| attempts.len())
    }

    fn prune(&mut self, needed: BTreeSet<AttemptId>) {
        self.spawn("prune", move |bench| bench.prune(needed));
    }

    fn inquire(&mut self, inquiry: Inquiry) {
        self.spawn("inquiry", move |bench| {
            crash::point(CrashPoint::BeforeInquiry);
            let finding = look::answer(&inquiry, bench);
            crash::point(CrashPoint::AfterInquiry);
            bench.tell(HandEvent::Inquired(inquiry.id, finding));
        });
    }
}

impl Bench {
    fn tell(&self, event: HandEvent) {
        let _driver_stopped = self.events.send(Event::Hand(event));
    }

    /// Does what nothing goes on without, out of the reserve if need be, again and again: a full disk or missing descriptors
    /// pass.
    fn until_done<T>(&self, doing: &str, step: &StepName, mut act: impl FnMut() -> io::Result<T>) -> T {
        let mut told = false;
        loop {
            match self.room.with(&mut act) {
                Ok(done) => return done,
                Err(error) if !told => tracing::error!(%error, %step, "could not {doing}: trying until it can be done"),
                Err(_) => {}
            }
            told = true;
            std::thread::sleep(AGAIN_AFTER);
        }
    }
}
