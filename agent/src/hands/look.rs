//! Looking at resources: after a step ended, and when the coordinator asks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_agent_core::outcome::{Ending, Look};
use holdfast_common::adapter::Inspect;
use holdfast_common::claim::Claim;
use holdfast_common::fence::{Epoch, Fence};
use holdfast_common::id::{AttemptId, OperationId, ResourceName, Revision, TargetName};
use holdfast_common::outcome::{Exit, OperationState, Reading};
use holdfast_common::report::Reread;
use holdfast_common::spec::{ResourceAdapter, StepBody, StepSpec};

use super::system::{About, show, shown_to};
use super::{Bench, Desk, Job};
use crate::adapters::command::{self, Inspection};
use crate::adapters::{exit, release};
use crate::driver::Finding;
use crate::internal::with_causes;
use crate::policy::{Grant, of_user};
use crate::secrets;
use crate::session::{Inquiry, Question};

/// How long a resource's inspection command may take.
const INSPECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The look at a step's resource after it ended, and the revision that was read.
///
/// A folder that no release was ever put into can't be read. Where the adapter itself refused, before it changed anything,
/// its word is enough.
pub(super) fn after(job: &Job, ending: Ending, bench: &Bench) -> (Look, Option<Revision>) {
    let Some(resource) = job.resource() else { return (Look::CannotInspect, None) };
    let grant = match bench.host.look(&job.assignment, resource) {
        Ok(grant) => grant,
        Err(refusal) => return (Look::NotRead { why: refusal.to_string() }, None),
    };
    match (job.capability().inspect, &resource.adapter) {
        (Inspect::Operation, ResourceAdapter::Release { root, .. }) => {
            by_operation(job, ending, Ok(release::inspect(&PathBuf::from(root), &job.operation())))
        }
        (Inspect::Operation | Inspect::Revision, ResourceAdapter::System(_)) => {
            let operation = job.operation();
            let about = job.about(resource, &operation).expect("its adapter is a system");
            by_operation(job, ending, bench.desk().and_then(|desk| about.inspect(&desk, &grant)))
        }
        (Inspect::Revision, ResourceAdapter::Command { inspect: Some(argv), .. }) => {
            let folder = bench.places.work(job.attempt());
            match bench.desk().and_then(|desk| read_command(&desk, argv, job.environment(), folder, &grant)) {
                Ok(observed) => (by_revision(&job.step, &observed), Some(observed)),
                Err(why) => (Look::NotRead { why }, None),
            }
        }
        (Inspect::None | Inspect::Revision | Inspect::Operation, _) => (Look::CannotInspect, None),
    }
}

fn by_operation(job: &Job, ending: Ending, read: Result<Reading, String>) -> (Look, Option<Revision>) {
    match read {
        Ok(Reading { state: OperationState::Unknown, .. }) | Err(_) if is_refusal(job, ending) => {
            (Look::Read(OperationState::NotApplied), None)
        }
        Ok(Reading { state: OperationState::Unknown, detail: why, revision, .. }) => (Look::NotRead { why }, revision),
        Ok(reading) => (Look::Read(reading.state_of(job.step.revision.as_ref())), reading.revision),
        Err(why) => (Look::NotRead { why }, None),
    }
}

fn is_refusal(job: &Job, ending: Ending) -> bool {
    let refused = matches!(ending.exit, Exit::Exited(status) if exit::is_refusal(status));
    refused && matches!(job.step.body, StepBody::Release { .. } | StepBody::Restore | StepBody::System(_))
}

/// What the revision says of the operation follows from what the step wanted.
fn by_revision(step: &StepSpec, observed: &Revision) -> Look {
    match &step.revision {
        Some(wanted) => Look::by_revision(observed, wanted, step.expected_revision.as_ref()),
        None => Look::CannotInspect,
    }
}

/// The revision that a resource's inspection command prints.
pub(crate) fn read_command(
    desk: &Desk<'_>,
    argv: &[String],
    mut environment: BTreeMap<String, String>,
    folder: PathBuf,
    grant: &Grant,
) -> Result<Revision, String> {
    let credentials = secrets::sources(&grant.credentials.inspect)?.read().map_err(|error| error.to_string())?;
    let user = grant.user.as_ref();
    if let Some(user) = user {
        of_user(&mut environment, user);
    }
    let shown = shown_to(desk.places, &credentials, user)
        .map_err(|error| format!("could not put the inspection's credentials in place: {error}"))?;
    show(&mut environment, &credentials, shown.as_ref());
    let inspection = Inspection {
        argv,
        program: grant.program.as_deref(),
        user,
        redactor: &desk.redactor,
        environment: &environment,
        // The work folder is another user's, and the state folder nobody's but the agent's.
        folder: if user.is_some() { Path::new("/") } else { &folder },
        timeout: INSPECT_TIMEOUT,
    };
    command::inspect(&inspection).map_err(|error| desk.redactor.text(&with_causes(&error)))
}

/// Reads again what a carried step had left.
pub(super) fn again(job: &Job, bench: &Bench) -> Reread {
    let failed = |detail: &str| Reread::Failed { detail: detail.to_owned() };
    let Some(resource) = job.resource() else { return failed("the step's resource is not part of the offer") };
    let grant = match bench.host.look(&job.assignment, resource) {
        Ok(grant) => grant,
        Err(refusal) => return failed(&refusal.to_string()),
    };
    match (job.capability().inspect, &resource.adapter) {
        (Inspect::Operation, ResourceAdapter::Release { root, .. }) => {
            let root = PathBuf::from(root);
            let reading = release::inspect(&root, &job.operation());
            match release::revision(&root) {
                // Nothing says what is there; that nothing of ours is there would be said.
                Err(error) => failed(&with_causes(&error)),
                Ok(_) => Reread::Read { reading },
            }
        }
        (Inspect::Operation | Inspect::Revision, ResourceAdapter::System(_)) => {
            let operation = job.operation();
            let about = job.about(resource, &operation).expect("its adapter is a system");
            let read = bench.desk().and_then(|desk| about.inspect(&desk, &grant));
            read.map_or_else(|why| failed(&why), |reading| Reread::Read { reading })
        }
        (Inspect::Revision, ResourceAdapter::Command { inspect: Some(argv), .. }) => {
            let folder = bench.places.state().to_owned();
            match bench.desk().and_then(|desk| read_command(&desk, argv, job.environment(), folder, &grant)) {
                Ok(observed) => {
                    Reread::Read { reading: told(&job.assignment.target, &resource.name, &job.step, observed) }
                }
                Err(why) => failed(&why),
            }
        }
        (Inspect::None | Inspect::Revision | Inspect::Operation, _) => {
            failed("the resource declares no way to read it")
        }
    }
}

/// What a resource's inspection command told: the revision alone.
fn told(target: &TargetName, resource: &ResourceName, step: &StepSpec, observed: Revision) -> Reading {
    Reading {
        resource_identity: format!("{target}/{resource}"),
        state: match by_revision(step, &observed) {
            Look::Read(state) => state,
            Look::CannotInspect | Look::NotRead { .. } => OperationState::Unknown,
        },
        revision: Some(observed),
        active: None,
        highest_fence: None,
        retained: Vec::new(),
        detail: "told by the resource's inspection command".to_owned(),
    }
}

/// Answers the coordinator's question about a resource.
pub(super) fn answer(inquiry: &Inquiry, bench: &Bench) -> Finding {
    let grant = match bench.host.inquiry(inquiry) {
        Ok(grant) => grant,
        Err(refusal) => return Finding::Failed(refusal.to_string()),
    };
    match (&inquiry.resource.adapter, inquiry.question) {
        (ResourceAdapter::Release { root, .. }, Question::Inspect) => {
            Finding::Read(release::inspect(&PathBuf::from(root), &inquiry.operation))
        }
        (ResourceAdapter::Release { root, .. }, Question::FenceOff(fence)) => raise(inquiry, root, fence),
        (ResourceAdapter::System(system), question) => {
            let about = About {
                target: &inquiry.target,
                resource: &inquiry.resource.name,
                system,
                operation: &inquiry.operation,
                step: &inquiry.step,
            };
            let desk = match bench.desk() {
                Ok(desk) => desk,
                Err(why) => return Finding::Failed(why),
            };
            match question {
                Question::Inspect => about.inspect(&desk, &grant).map_or_else(Finding::Failed, Finding::Read),
                Question::FenceOff(fence) => {
                    about.raise(&desk, &grant, fence).map_or_else(Finding::Failed, Finding::Raised)
                }
            }
        }
        (ResourceAdapter::Command { inspect: Some(argv), .. }, Question::Inspect) => {
            ask_command(inquiry, argv, bench, &grant)
        }
        (ResourceAdapter::Command { inspect: None, .. }, Question::Inspect) => {
            Finding::Failed("the resource declares no way to read it".to_owned())
        }
        (ResourceAdapter::Command { .. }, Question::FenceOff(_)) => {
            Finding::Failed("a command's resource keeps no fence".to_owned())
        }
    }
}

fn raise(inquiry: &Inquiry, root: &str, fence: Fence) -> Finding {
    let root = PathBuf::from(root);
    match release::raise(&root, fence) {
        Ok(_) => Finding::Raised(release::inspect(&root, &inquiry.operation)),
        Err(error) => Finding::Failed(with_causes(&error)),
    }
}

fn ask_command(inquiry: &Inquiry, argv: &[String], bench: &Bench, grant: &Grant) -> Finding {
    let environment = outside_leases(&inquiry.target, &inquiry.operation, inquiry.step.expected_revision.as_ref());
    let folder = bench.places.state().to_owned();
    match bench.desk().and_then(|desk| read_command(&desk, argv, environment, folder, grant)) {
        Ok(observed) => Finding::Read(told(&inquiry.target, &inquiry.resource.name, &inquiry.step, observed)),
        Err(why) => Finding::Failed(why),
    }
}

/// What an inspection command gets to know that acts under no lease: attempt and fence are not its own to show.
pub(crate) fn outside_leases(
    target: &TargetName,
    operation: &OperationId,
    expected_revision: Option<&Revision>,
) -> BTreeMap<String, String> {
    let claim = Claim {
        deployment: operation.deployment,
        attempt: AttemptId(uuid::Uuid::nil()),
        fence: Fence::first(Epoch(1)).expect("the first epoch has a first fence"),
    };
    let context = command::Context { claim, target, step: &operation.step, expected_revision };
    let mut environment = command::environment(&context, |name| std::env::var(name).ok());
    environment.remove("HOLDFAST_ATTEMPT");
    environment.remove("HOLDFAST_FENCE");
    environment
}
