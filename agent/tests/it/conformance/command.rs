//! A command that changes something, with an inspection command: nothing is enforced, and the suite shows that gap.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use holdfast_agent::adapters::command::{Context, Inspection, environment, inspect};
use holdfast_agent::secrets::Redactor;
use holdfast_agent_core::outcome::Look;
use holdfast_common::adapter::{Capability, Enforce, Inspect};
use holdfast_common::claim::Claim;
use holdfast_common::fence::Fence;
use holdfast_common::id::{AttemptId, Revision, TargetName};
use holdfast_common::outcome::{OperationState, Reading};
use uuid::Uuid;

use super::folder::FolderSubject;
use super::{Named, Subject};

/// A deployment's own command: it looks, then acts. `$1` is the resource's folder, `$2` the revision.
const SCRIPT: &str = r#"
halt() {
    case "$HOLDFAST_HALT" in
        "apply.$1=stop") kill -STOP $$ ;;
        "apply.$1=abort") kill -ABRT $$ ;;
    esac
}
halt look
cd "$1" || exit 1
floor=0
[ ! -e floor ] || floor=$(cat floor)
[ "$HOLDFAST_FENCE" -ge "$floor" ] || exit 73
if grep -qsx "$HOLDFAST_OPERATION_ID" operations && [ -e knows-operations ]; then
    echo "applied before" >&2
    exit 0
fi
halt write
act() {
    echo "$2" >> log
    echo "$HOLDFAST_OPERATION_ID" >> operations
    echo "$2" > revision
}
if [ -e hold ]; then
    (while [ -e hold ]; do sleep 0.02; done; act "$@") > /dev/null 2>&1 &
else
    act "$@"
fi
halt end
"#;

/// A folder that commands change.
pub(crate) struct CommandSubject {
    disk: FolderSubject,
}

impl CommandSubject {
    pub(crate) fn new() -> Self {
        Self { disk: FolderSubject::new() }
    }

    pub(crate) fn place(&self) -> PathBuf {
        self.disk.place()
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.place().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// By the agent's own way of asking an inspection command.
    fn revision(&self) -> Option<Revision> {
        let argv = ["cat".to_owned(), self.place().join("revision").to_str().unwrap().to_owned()];
        let environment = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
        let inspection = Inspection {
            argv: &argv,
            program: None,
            user: None,
            redactor: &Redactor::of([]),
            environment: &environment,
            folder: Path::new("/"),
            timeout: Duration::from_secs(20),
        };
        inspect(&inspection).ok()
    }

    pub(crate) fn knows(&self, named: &Named) -> bool {
        self.lines("operations").contains(&named.operation.to_string())
    }
}

/// A process that says it.
pub(crate) fn says(reading: Option<&Reading>) -> Command {
    let mut command = Command::new(if reading.is_some() { "printf" } else { "false" });
    command
        .args(reading.map(|reading| ["%s".to_owned(), serde_json::to_string(reading).unwrap()]).into_iter().flatten());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Subject for CommandSubject {
    fn capability(&self) -> Capability {
        Capability { inspect: Inspect::Revision, enforce: Enforce::None, outlives: false }
    }

    fn calls(&self) -> Vec<&'static str> {
        vec!["look", "write", "end"]
    }

    fn apply(&self, named: &Named, fence: Fence) -> Command {
        let claim = Claim { deployment: named.operation.deployment, attempt: AttemptId(Uuid::from_u128(1)), fence };
        let target = TargetName::new("cache@prod").unwrap();
        let context =
            Context { claim, target: &target, step: &named.operation.step, expected_revision: named.expected.as_ref() };
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "change", self.place().to_str().unwrap(), named.revision.as_str()]);
        command.env_clear().envs(environment(&context, |name| std::env::var(name).ok()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn inspect(&self, named: &Named) -> Command {
        let reading = self.revision().map(|observed| Reading {
            resource_identity: "cache@prod/cache".to_owned(),
            state: match Look::by_revision(&observed, &named.revision, named.expected.as_ref()) {
                Look::Read(state) => state,
                Look::CannotInspect | Look::NotRead { .. } => OperationState::Unknown,
            },
            revision: Some(observed),
            active: None,
            highest_fence: None,
            retained: Vec::new(),
            detail: String::new(),
        });
        says(reading.as_ref())
    }

    fn raise(&self, _: &Named, _: Fence) -> Option<Command> {
        None
    }

    fn underwent(&self) -> Vec<String> {
        self.lines("log")
    }

    fn back_up(&mut self) {
        self.disk.back_up();
    }

    fn restore(&mut self) {
        self.disk.restore();
    }

    fn down(&mut self) {
        self.disk.down();
    }

    fn up(&mut self) {
        self.disk.up();
    }

    fn replace(&mut self) {
        self.disk.replace();
        std::fs::write(self.place().join("revision"), "other\n").unwrap();
    }

    fn lose_answer(&mut self, named: &Named, fence: Fence) -> Option<Command> {
        let mut command = self.apply(named, fence);
        command.env("HOLDFAST_HALT", "apply.end=abort");
        Some(command)
    }
}
