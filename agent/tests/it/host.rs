//! A host's state folder with a supervisor, and steps to run there.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_agent::config::Limits;
use holdfast_agent::places::{Places, StepFolder};
use holdfast_agent::secrets::Sources;
use holdfast_agent::supervisor::{Body, ExitRecord, Known, Launch, Supervisor};
use holdfast_common::id::{AttemptId, StepName, TargetName};
use holdfast_common::spec::StepEffect;
use holdfast_common::time::Millis;
use rustix::process::{Pid, Signal, kill_process};
use uuid::Uuid;

use crate::support::{AGENT, Folder, eventually};

pub(crate) const BOUND: Duration = Duration::from_secs(20);

pub(crate) struct Host {
    _folder: Folder,
    pub(crate) places: Places,
    pub(crate) supervisor: Supervisor,
}

impl Host {
    pub(crate) fn new() -> Self {
        let folder = Folder::new();
        let places = Places::below(&folder.0.join("state"));
        places.prepare().unwrap();
        Self { _folder: folder, places, supervisor: Supervisor::running(AGENT.as_ref()) }
    }

    pub(crate) fn armed(variable: &str, value: &str) -> Self {
        let mut host = Self::new();
        host.supervisor.arm(variable, value);
        host
    }

    pub(crate) fn step(&self, number: u128) -> StepFolder {
        self.places.make_step(AttemptId(Uuid::from_u128(number)), &StepName::new("step").unwrap()).unwrap()
    }

    pub(crate) fn step_is_there(&self, number: u128) -> bool {
        self.places.step(AttemptId(Uuid::from_u128(number)), &StepName::new("step").unwrap()).path().exists()
    }

    pub(crate) fn launch(&self, argv: &[&str]) -> Launch {
        self.places.make_attempt(AttemptId(Uuid::from_u128(1))).unwrap();
        Launch {
            effect: StepEffect::Mutates,
            target_lock: self.places.target_lock(&TargetName::new("shop@prod").unwrap()),
            lock_wait: Millis(0),
            not_after: None,
            body: Body::Command { argv: argv.iter().map(|part| (*part).to_owned()).collect() },
            environment: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            program: None,
            user: None,
            credentials: Sources::default(),
            credentials_folder: self.places.credentials(AttemptId(Uuid::from_u128(1))),
            secrets: Vec::new(),
            cgroup: None,
            limits: Limits::default(),
            machine: String::new(),
            work: self.places.work(AttemptId(Uuid::from_u128(1))),
            output_bytes: 1 << 20,
            drain: Millis(5_000),
        }
    }

    pub(crate) fn shell(&self, script: &str) -> Launch {
        self.launch(&["sh", "-c", script])
    }

    pub(crate) fn ended(&self, step: &StepFolder) -> ExitRecord {
        let known = self.supervisor.wait(step, BOUND).unwrap();
        let Known::Ended(record) = known else { panic!("not ended: {known:?}") };
        record
    }

    pub(crate) fn run(&self, launch: &Launch) -> ExitRecord {
        let step = self.step(1);
        self.supervisor.start(&step, launch).unwrap();
        self.ended(&step)
    }

    pub(crate) fn shim_of(&self, step: &StepFolder) -> Pid {
        let text = std::fs::read_to_string(step.path().join("start.json")).unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        Pid::from_raw(i32::try_from(record["shim"]["pid"].as_i64().unwrap()).unwrap()).unwrap()
    }

    pub(crate) fn wrote(&self, name: &str) -> Option<String> {
        let work = self.places.work(AttemptId(Uuid::from_u128(1)));
        std::fs::read_to_string(work.join(name)).ok().filter(|text| text.ends_with('\n'))
    }

    /// The process whose id the body wrote there.
    pub(crate) fn process(&self, name: &str) -> Process {
        Process(eventually(name, || self.wrote(name)).trim().parse().unwrap())
    }
}

pub(crate) struct Process(pub(crate) i32);

impl Process {
    pub(crate) fn is_alive(&self) -> bool {
        std::fs::read_to_string(format!("/proc/{}/stat", self.0)).is_ok_and(|stat| !stat.contains(") Z"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_raw(self.0).unwrap(), Signal::KILL);
    }
}
