//! The deployment API of the examples, through its adapter.

use std::path::{Path, PathBuf};
use std::process::Command;

use holdfast_agent::adapters::system::{Call, Operation};
use holdfast_common::adapter::{Capability, Enforce};
use holdfast_common::fence::Fence;
use holdfast_common::system::{Change, System};

use super::{Named, Subject};
use crate::http::api::{Api, FENCE, INSPECT};
use crate::http::proxy::Manner;
use crate::http::scene::{OWNER, Scene, to_revision};
use crate::support::eventually;

/// A fresh resource behind the example's API, as far as its target declares that it checks.
pub(crate) struct HttpSubject {
    scene: Scene,
    replaced: u32,
}

/// What an API that checks fences is told where its target declares none: the same each time, so that it tells old from new by none.
const ANY_FENCE: &str = "1";

impl HttpSubject {
    pub(crate) fn new() -> Self {
        Self { scene: Scene::new(), replaced: 0 }
    }

    /// It compares the revision in the step of the effect, and nothing else.
    pub(crate) fn with_revisions() -> Self {
        let mut subject = Self::new();
        let http = &mut subject.scene.http;
        (http.enforce, http.fence, http.headers.fence) = (Enforce::Revision, None, None);
        "/fence".clone_into(&mut http.pointers.fence);
        subject
    }

    /// It compares nothing: the adapter looks at the revision before, and something may come between the two.
    pub(crate) fn with_nothing() -> Self {
        let mut subject = Self::with_revisions();
        let http = &mut subject.scene.http;
        (http.enforce, http.headers.expected) = (Enforce::None, None);
        subject
    }

    fn operation(&self, named: &Named) -> Operation {
        let mut operation = to_revision(named.operation.clone(), named.revision.as_str(), 0);
        operation.expected_revision.clone_from(&named.expected);
        if let (None, Some(Change::Submit(submit))) = (&self.scene.http.headers.fence, &mut operation.change) {
            submit.headers.insert("Holdfast-Fence".to_owned(), ANY_FENCE.to_owned());
        }
        operation
    }

    fn copy(&self) -> PathBuf {
        self.scene.folder.0.join("backup.db")
    }
}

impl Subject for HttpSubject {
    fn capability(&self) -> Capability {
        let named = to_revision(crate::support::operation(1), "v1", 0);
        let change = named.change.expect("it asks for one");
        System::Http(Box::new(self.scene.http.clone())).capability(&change).expect("it is this system's")
    }

    fn compares(&self) -> Enforce {
        match self.scene.http.enforce {
            Enforce::Fence => Enforce::Fence,
            Enforce::Revision | Enforce::None => Enforce::Revision,
        }
    }

    fn calls(&self) -> Vec<&'static str> {
        vec!["read", "submit", "submitted", "poll"]
    }

    fn apply(&self, named: &Named, fence: Fence) -> Command {
        self.scene.applying(&self.operation(named), fence)
    }

    fn inspect(&self, named: &Named) -> Command {
        self.scene.command(&self.operation(named), Call::Inspect, INSPECT)
    }

    fn raise(&self, named: &Named, fence: Fence) -> Option<Command> {
        let is_kept = self.scene.http.enforce == Enforce::Fence;
        is_kept.then(|| self.scene.command(&self.operation(named), Call::Raise { fence }, FENCE))
    }

    /// It works on when nobody waits for it, so what it underwent is what it has come to at rest.
    fn underwent(&self) -> Vec<String> {
        eventually("the API is at rest", || self.scene.api.is_at_rest().then_some(()));
        self.scene.underwent()
    }

    /// Of a database that nobody has open, its file and its log are all there is.
    fn back_up(&mut self) {
        self.scene.api.kill();
        copy(&self.scene.api.data, &self.copy());
        self.scene.restart();
    }

    fn restore(&mut self) {
        self.scene.api.kill();
        copy(&self.copy(), &self.scene.api.data);
        self.scene.restart();
    }

    fn down(&mut self) {
        self.scene.api.kill();
    }

    fn up(&mut self) {
        self.scene.restart();
    }

    fn replace(&mut self) {
        self.replaced += 1;
        self.scene.api.kill();
        let api = Api::start(&self.scene.folder.0, &format!("other-{}.db", self.replaced), OWNER);
        self.scene.proxy.lead_to(api.address, api.data.clone());
        self.scene.api = api;
    }

    fn lose_answer(&mut self, named: &Named, fence: Fence) -> Option<Command> {
        self.scene.proxy.next(&[Manner::LoseAnswerAfterEffect]);
        Some(self.apply(named, fence))
    }
}

fn copy(from: &Path, to: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let with = |path: &Path| PathBuf::from(format!("{}{suffix}", path.display()));
        let _ = std::fs::remove_file(with(to));
        if with(from).exists() {
            std::fs::copy(with(from), with(to)).unwrap();
        }
    }
}

mod tests {
    use holdfast_common::id::Revision;
    use holdfast_common::outcome::{OperationState, Reading};

    use super::*;
    use crate::support::{fence, operation};

    fn named(number: u128) -> Named {
        let revision = Revision::new(format!("v{number}")).unwrap();
        Named { operation: operation(number), revision, expected: None }
    }

    fn reading(mut command: Command) -> Option<Reading> {
        let output = command.output().unwrap();
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    }

    #[test]
    fn a_restored_api_tells_a_lower_fence_and_an_older_revision_under_the_same_identity() {
        let mut http = HttpSubject::new();
        assert!(http.apply(&named(1), fence(1)).status().unwrap().success());
        http.back_up();
        assert!(http.lose_answer(&named(2), fence(2)).unwrap().status().unwrap().success());
        let raised = reading(http.raise(&named(2), fence(3)).unwrap()).unwrap();
        assert_eq!((raised.state, raised.highest_fence), (OperationState::Applied, Some(fence(3))));
        http.restore();
        let restored = reading(http.inspect(&named(2))).unwrap();
        assert_eq!((restored.state, restored.highest_fence), (OperationState::NotApplied, Some(fence(1))));
        assert_eq!((restored.resource_identity, http.underwent()), (raised.resource_identity, vec!["v1".to_owned()]));
    }

    #[test]
    fn what_is_down_is_not_read_and_what_is_replaced_is_another_resource() {
        let mut http = HttpSubject::new();
        let before = reading(http.inspect(&named(1))).unwrap();
        http.down();
        assert_eq!(reading(http.inspect(&named(1))), None);
        http.up();
        assert_eq!(reading(http.inspect(&named(1))), Some(before.clone()));
        http.replace();
        assert_ne!(reading(http.inspect(&named(1))).unwrap().resource_identity, before.resource_identity);
        let capability = http.capability();
        assert!(capability.outlives && http.calls().contains(&"submit"));
    }
}
