//! Calls on systems: each a process of our own, with one credential set and a time of its own.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use holdfast_agent_core::decide::Refused;
use holdfast_common::fence::Fence;
use holdfast_common::id::{OperationId, ResourceName, TargetName};
use holdfast_common::outcome::{FailureClass, Reading};
use holdfast_common::spec::{ResourceSpec, StepBody, StepSpec};
use holdfast_common::system::System;
use serde::de::DeserializeOwned;

use super::{Bench, Desk, Job};
use crate::adapters::command::search_path;
use crate::adapters::exit;
use crate::adapters::system::{AfterRaise, Call, Operation, Order};
use crate::child::{self, Bounds};
use crate::config::CredentialSet;
use crate::fetch::Fetcher;
use crate::internal::{INTERNAL, name, with_causes};
use crate::places::Places;
use crate::policy::{Grant, User};
use crate::secrets::{self, Folder, Secrets, VARIABLE};

/// How long a call that is not a step may take.
const TIMEOUT: Duration = Duration::from_secs(60);
const BOUNDS: Bounds = Bounds { stdout: 1024 * 1024, stderr: 16 * 1024 };
/// What is taken over from the agent's environment beside the credentials.
const BASE: [&str; 8] = ["HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"];

/// A question about a resource, from a step or from the coordinator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub(crate) target: &'a TargetName,
    pub(crate) resource: &'a ResourceName,
    pub(crate) system: &'a System,
    pub(crate) operation: &'a OperationId,
    pub(crate) step: &'a StepSpec,
}

/// Why a call gave nothing.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    status: Option<i32>,
    pub(crate) why: String,
}

impl Failed {
    /// Whether it says that the resource refused, and would again.
    pub(crate) fn is_refusal(&self) -> bool {
        self.status.is_some_and(exit::is_refusal)
    }
}

impl About<'_> {
    pub(crate) fn order(&self, places: &Places, grant: &Grant, call: Call) -> Order {
        Order {
            target: self.target.clone(),
            resource: self.resource.clone(),
            system: self.system.clone(),
            operation: Operation {
                id: self.operation.clone(),
                revision: self.step.revision.clone(),
                expected_revision: self.step.expected_revision.clone(),
                change: match &self.step.body {
                    StepBody::System(change) => Some(change.clone()),
                    StepBody::Command { .. } | StepBody::Release { .. } | StepBody::Restore | StepBody::Check(_) => {
                        None
                    }
                },
            },
            call,
            program: grant.program.clone(),
            is_placed: grant.is_placed,
            cache: places.cache(self.target, self.resource),
        }
    }

    /// Reads it, with the set that can only read.
    pub(crate) fn inspect(&self, desk: &Desk<'_>, grant: &Grant) -> Result<Reading, String> {
        self.ask(desk, grant, Call::Inspect, &grant.credentials.inspect).map_err(|failed| failed.why)
    }

    /// Raises its fence, with the set that can only do that, then reads.
    pub(crate) fn raise(&self, desk: &Desk<'_>, grant: &Grant, fence: Fence) -> Result<Reading, String> {
        let raised = self.raise_with(desk, grant, fence, &grant.credentials.fence);
        raised.map(|after| after.reading).map_err(|failed| failed.why)
    }

    /// The same with any set, and how it came that the fence stands.
    pub(crate) fn raise_with(
        &self,
        desk: &Desk<'_>,
        grant: &Grant,
        fence: Fence,
        set: &CredentialSet,
    ) -> Result<AfterRaise, Failed> {
        self.ask(desk, grant, Call::Raise { fence }, set)
    }

    fn ask<T: DeserializeOwned>(
        &self,
        desk: &Desk<'_>,
        grant: &Grant,
        call: Call,
        set: &CredentialSet,
    ) -> Result<T, Failed> {
        let said = ask(desk, &self.order(desk.places, grant, call), set)?;
        serde_json::from_str(&said)
            .map_err(|error| Failed { status: None, why: format!("its answer can't be read: {error}") })
    }
}

impl Job {
    /// Its question, where its resource is a system.
    pub(super) fn about<'a>(&'a self, resource: &'a ResourceSpec, operation: &'a OperationId) -> Option<About<'a>> {
        let system = resource.adapter.system()?;
        Some(About { target: &self.assignment.target, resource: &resource.name, system, operation, step: &self.step })
    }

    /// The archive that it needs, once it was brought.
    pub(super) fn brought_archive(&self, bench: &Bench) -> Option<PathBuf> {
        let (archive, sha256) = self.step.body.archive()?;
        Some(Fetcher::path(&bench.places, self.attempt(), archive, sha256))
    }

    /// What its shim is to run.
    pub(super) fn system_order(&self, bench: &Bench, grant: &Grant) -> Result<Order, String> {
        let resource = self.resource().ok_or("the step's resource is not part of the offer")?;
        let operation = self.operation();
        let about = self.about(resource, &operation).ok_or("the step's resource keeps no ledger of its own")?;
        let (archive, work) = (self.brought_archive(bench), bench.places.work(self.attempt()));
        Ok(about.order(&bench.places, grant, Call::Apply { fence: self.assignment.claim.fence, archive, work }))
    }

    /// What would be refused, asked with the set that can only read.
    pub(super) fn examine_system(&self, bench: &Bench) -> Result<(), Refused> {
        let refused = |class, detail| Refused { class, detail };
        let Some(resource) = self.resource() else {
            return Err(refused(FailureClass::Permanent, "the step's resource is not part of the offer".to_owned()));
        };
        let grant = bench.host.look(&self.assignment, resource);
        let grant = grant.map_err(|refusal| refused(FailureClass::Permanent, refusal.to_string()))?;
        let operation = self.operation();
        let Some(about) = self.about(resource, &operation) else {
            return Err(refused(FailureClass::Permanent, "the step's resource keeps no ledger of its own".to_owned()));
        };
        let (archive, work) = (self.brought_archive(bench), bench.places.work(self.attempt()));
        let order = about.order(&bench.places, &grant, Call::Examine { archive, work });
        let desk = bench.desk().map_err(|why| refused(FailureClass::Infrastructure, why))?;
        let asked = ask(&desk, &order, &grant.credentials.inspect);
        asked.map(drop).map_err(|failed| {
            let class = failed.status.map_or(FailureClass::Infrastructure, exit::class_of_exit);
            refused(class, failed.why)
        })
    }
}

/// Makes a call that is not a step. Blocks until it ended or its time is up.
fn ask(desk: &Desk<'_>, order: &Order, set: &CredentialSet) -> Result<String, Failed> {
    let failed = |why: String| Failed { status: None, why };
    let credentials = secrets::sources(set).and_then(|sources| sources.read().map_err(|error| error.to_string()));
    let credentials = credentials.map_err(failed)?;
    let shown = shown(desk.places, &credentials)
        .map_err(|error| failed(format!("could not put the credentials in place: {error}")))?;
    let mut command = Command::new("/proc/self/exe");
    let stdin = order.stdin().map_err(|error| failed(format!("could not hand the order over: {error}")))?;
    command.args([INTERNAL, name::SYSTEM]).env_clear().envs(environment(&credentials, shown.as_ref()));
    command.envs(crate::supervisor::armed_here()).current_dir("/").stdin(stdin);
    let output = child::output(&mut command, BOUNDS, TIMEOUT).map_err(|error| failed(with_causes(&error)))?;
    if output.status.success() {
        return Ok(desk.redactor.text(&String::from_utf8_lossy(&output.stdout)));
    }
    let said = desk.redactor.text(&String::from_utf8_lossy(&output.stderr));
    let last = said.lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned);
    Err(Failed {
        status: output.status.code(),
        why: last.unwrap_or_else(|| format!("it ended with {}", output.status)),
    })
}

/// Its files in a folder of their own, where there are any credentials.
pub(crate) fn shown(places: &Places, credentials: &Secrets) -> io::Result<Option<Folder>> {
    shown_to(places, credentials, None)
}

/// The same for a process of that user.
pub(super) fn shown_to(places: &Places, credentials: &Secrets, user: Option<&User>) -> io::Result<Option<Folder>> {
    if credentials.is_empty() {
        return Ok(None);
    }
    let place = places.inspection(user)?;
    Folder::make(&place, credentials, user).map(Some)
}

/// The whole environment of a call: the base, and one credential set.
pub(crate) fn environment(credentials: &Secrets, shown: Option<&Folder>) -> BTreeMap<String, String> {
    let mut environment: BTreeMap<String, String> =
        BASE.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect();
    environment.insert("PATH".to_owned(), search_path(|name| std::env::var(name).ok()));
    show(&mut environment, credentials, shown);
    environment
}

/// A process finds credentials in its environment: variables as they are, files by their folder.
pub(super) fn show(environment: &mut BTreeMap<String, String>, credentials: &Secrets, shown: Option<&Folder>) {
    environment.extend(credentials.variables().map(|(key, value)| (key.clone(), value.clone())));
    environment.extend(shown.map(|shown| (VARIABLE.to_owned(), shown.path().to_string_lossy().into_owned())));
}
