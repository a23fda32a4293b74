//! A folder of a Git repository behind a server of its own, for the suite.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::Ordering;

use holdfast_agent::adapters::system::{Call, Operation};
use holdfast_common::adapter::{Capability, Enforce};
use holdfast_common::fence::Fence;
use holdfast_common::id::Revision;
use holdfast_common::system::System;

use super::{Named, Subject};
use crate::git::remote::{Bare, Resource, change, git};
use crate::git::server::Server;

/// Served over HTTP, so that it can be down and lose answers.
pub(crate) struct Repository {
    bare: Bare,
    resource: Resource,
    /// `None`: it is down.
    server: Option<Server>,
    address: std::net::SocketAddr,
    backup: PathBuf,
}

impl Repository {
    /// A fresh one with a branch, and a commit of somebody's on it.
    pub(crate) fn new() -> Self {
        let bare = Bare::new(&["main"]);
        let server = Server::of(&bare.folder.0);
        let mut resource = Resource::of(&bare, &["main"], "apps/shop");
        resource.declared.url = server.url("remote.git");
        let (address, backup) = (server.address(), bare.folder.0.join("backup.git"));
        Self { bare, resource, server: Some(server), address, backup }
    }

    fn operation(named: &Named) -> Operation {
        let mut operation = change(0);
        operation.id = named.operation.clone();
        operation.revision = Some(named.revision.clone());
        operation.expected_revision.clone_from(&named.expected);
        operation.change = crate::git::remote::files(0, &[("index.html", named.revision.as_str())]).change;
        operation
    }

    /// Copies a repository with everything in it.
    fn copy(&self, from: &std::path::Path, to: &std::path::Path) {
        if to.exists() {
            std::fs::remove_dir_all(to).unwrap();
        }
        let (from, to) = (from.to_str().unwrap(), to.to_str().unwrap());
        git(&self.bare.folder.0, &["clone", "--quiet", "--mirror", from, to]);
        git(std::path::Path::new(to), &["config", "http.receivepack", "true"]);
    }
}

impl Subject for Repository {
    fn capability(&self) -> Capability {
        let change = change(0).change.unwrap();
        System::Git(self.resource.declared.clone()).capability(&change).unwrap()
    }

    fn calls(&self) -> Vec<&'static str> {
        vec!["fetch", "read", "commit", "push", "pushed"]
    }

    fn apply(&self, named: &Named, fence: Fence) -> Command {
        self.resource.apply(Self::operation(named), fence)
    }

    fn inspect(&self, named: &Named) -> Command {
        self.resource.command(Self::operation(named), Call::Inspect)
    }

    fn raise(&self, named: &Named, fence: Fence) -> Option<Command> {
        Some(self.resource.command(Self::operation(named), Call::Raise { fence }))
    }

    fn underwent(&self) -> Vec<String> {
        self.bare.underwent("main")
    }

    fn back_up(&mut self) {
        self.copy(&self.bare.path, &self.backup);
    }

    fn restore(&mut self) {
        self.copy(&self.backup, &self.bare.path);
    }

    fn down(&mut self) {
        self.server = None;
    }

    fn up(&mut self) {
        self.server = Some(Server::at(&self.bare.folder.0, self.address));
    }

    fn replace(&mut self) {
        let other = Self::new();
        let named = Named {
            operation: crate::support::operation(77),
            revision: Revision::new("other").unwrap(),
            expected: None,
        };
        let output = other.raise(&named, crate::support::fence(1)).unwrap().output().unwrap();
        assert!(output.status.success());
        self.copy(&other.bare.path, &self.bare.path);
    }

    fn lose_answer(&mut self, named: &Named, fence: Fence) -> Option<Command> {
        let server = self.server.as_ref().expect("it is up");
        server.ways.cuts_answers.store(true, Ordering::SeqCst);
        Some(self.apply(named, fence))
    }
}

#[test]
fn a_repository_that_is_down_loses_answers_or_was_put_back_is_what_the_suite_takes_it_for() {
    let named = |number: u128| Named {
        operation: crate::support::operation(number),
        revision: Revision::new(format!("v{number}")).unwrap(),
        expected: None,
    };
    let fence = crate::support::fence;
    let reading = |subject: &Repository, number| {
        let output = subject.inspect(&named(number)).output().unwrap();
        output
            .status
            .success()
            .then(|| serde_json::from_slice::<holdfast_common::outcome::Reading>(&output.stdout).unwrap())
    };
    let mut subject = Repository::new();
    assert_eq!(subject.capability().enforce, Enforce::Fence);
    for call in subject.calls().into_iter().filter(|call| *call != "pushed") {
        let halt = format!("apply.{call}=abort");
        let output = subject.apply(&named(1), fence(1)).env("HOLDFAST_HALT", halt).output().unwrap();
        assert_eq!((output.status.code(), subject.underwent()), (None, Vec::new()), "{call}");
    }
    assert!(subject.apply(&named(1), fence(1)).output().unwrap().status.success());
    subject.back_up();
    subject.down();
    assert!(!subject.apply(&named(2), fence(2)).output().unwrap().status.success());
    assert!(reading(&subject, 1).is_none());
    subject.up();
    let identity = reading(&subject, 1).unwrap().resource_identity;
    let lost = subject.lose_answer(&named(2), fence(2)).unwrap().output().unwrap();
    assert_eq!(lost.status.code(), Some(71));
    assert_eq!(subject.underwent(), ["v1", "v2"]);
    assert_eq!(reading(&subject, 2).unwrap().highest_fence, Some(fence(2)));
    subject.restore();
    assert_eq!(subject.underwent(), ["v1"]);
    let back = reading(&subject, 2).unwrap();
    assert_eq!((back.highest_fence, &back.resource_identity), (Some(fence(1)), &identity));
    subject.replace();
    assert_ne!(reading(&subject, 1).unwrap().resource_identity, identity);
}
