//! `holdfast-agent adapter test`: what can be shown of a resource, and that trying it changes nothing.

mod systems;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::conformance::{ExternalSubject, Run, Subject, named};
use crate::support::{AGENT, Folder, Paused, Site, apply, everything, fence, resume, wait_for_pause};

/// A host with a policy, and a target's file.
pub(crate) struct Host {
    pub(crate) folder: Folder,
}

impl Host {
    pub(crate) fn of(policy: &str, resource: &str) -> Self {
        let host = Self { folder: Folder::new() };
        let state = host.folder.0.join("state");
        std::fs::create_dir(&state).unwrap();
        let config = format!(
            "state_dir = {state:?}\n{policy}\n[coordinator]\naddress = \"127.0.0.1:1\"\n[identity]\ndir = \"/nowhere\"\n"
        );
        std::fs::write(host.path("agent.toml"), config).unwrap();
        let target = format!(
            "schema = \"holdfast/v1\"\nname = \"shop@prod\"\nagents = {{ role = \"shop\" }}\n[[resource]]\nreach = \"host\"\n{resource}\n"
        );
        std::fs::write(host.path("target.toml"), target).unwrap();
        host
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    pub(crate) fn test(&self, resource: &str, more: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(AGENT);
        command.args(["adapter", "test", resource, "--config"]).arg(self.path("agent.toml"));
        let output = command.arg("--target").arg(self.path("target.toml")).args(more).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// Its verdicts, by what was tried.
    pub(crate) fn verdicts(&self, resource: &str) -> (Option<i32>, Vec<(String, String)>) {
        let (status, stdout, stderr) = self.test(resource, &["--json"]);
        let trial: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout} {stderr}"));
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        let found = trial["found"].as_array().unwrap();
        (status, found.iter().map(|one| (word(&one["what"]), word(&one["verdict"]))).collect())
    }
}

#[track_caller]
pub(crate) fn says(found: &[(String, String)], what: &str, verdict: &str) {
    let said = found.iter().find(|(one, _)| one == what);
    assert_eq!(said.map(|(_, verdict)| verdict.as_str()), Some(verdict), "{what}: {found:?}");
}

fn release(root: &Path) -> Host {
    Host::of("", &format!("name = \"site\"\nadapter = \"release\"\nwith = {{ root = {root:?} }}"))
}

#[test]
fn a_release_folder_is_shown_and_stays_as_it_is() {
    let site = Site::new();
    for number in [1, 2] {
        assert!(apply(&site.spec(u128::from(number), fence(number))).output().unwrap().status.success());
    }
    let before = everything(&site.root);
    let host = release(&site.root);
    let (status, found) = host.verdicts("site");
    assert_eq!(status, Some(0), "{found:?}");
    for what in [
        "this host allows it",
        "it can be read",
        "it has an identity",
        "its revision is read",
        "an operation that never was is not applied",
        "it tells the highest fence that it has seen",
        "a raise that changes nothing goes well, twice",
    ] {
        says(&found, what, "shown");
    }
    says(&found, "a stale fence is refused", "not_tried");
    assert_eq!(everything(&site.root), before);
}

#[test]
fn an_attempt_that_is_at_work_on_a_release_folder_is_not_disturbed() {
    let site = Site::new();
    assert!(apply(&site.spec(1, fence(1))).output().unwrap().status.success());
    let attempt = apply(&site.spec(2, fence(2))).env("HOLDFAST_HALT", "apply.flip=stop").spawn().unwrap();
    assert_eq!(wait_for_pause(&attempt), Paused::Stopped);
    let (status, found) = release(&site.root).verdicts("site");
    resume(&attempt);
    assert_eq!(status, Some(0), "{found:?}");
    says(&found, "a raise that changes nothing goes well, twice", "shown");
    assert!(attempt.wait_with_output().unwrap().status.success());
    assert_eq!(site.served().as_deref(), Some("v2"));
}

#[test]
fn a_release_folder_that_nothing_was_put_into_is_not_made() {
    let folder = Folder::new();
    let root = folder.0.join("site");
    let (status, found) = release(&root).verdicts("site");
    assert_eq!(status, Some(0), "{found:?}");
    says(&found, "it has an identity", "not_tried");
    assert!(!root.exists());
    let (status, found) = release(&folder.0.join("no/such/site")).verdicts("site");
    assert_eq!(status, Some(1), "{found:?}");
    says(&found, "it can be read", "false");
}

#[test]
fn a_command_is_shown_with_its_gap() {
    let resource = |inspect: &str| format!("name = \"db\"\nadapter = \"command\"\nwith = {{ inspect = {inspect} }}");
    let host = Host::of("", &resource("[\"echo\", \"v7\"]"));
    let (status, stdout, stderr) = host.test("db", &[]);
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines[0], "shop@prod/db by command: declares inspect = revision, enforce = none, outlives = true");
    assert!(lines.iter().any(|line| line.starts_with("shown") && line.ends_with("its revision is v7")), "{stdout}");
    assert!(lines.iter().any(|line| line.starts_with("gap") && line.contains("a stale fence is refused")), "{stdout}");
    let (status, stdout, stderr) = Host::of("", &resource("[\"false\"]")).test("db", &[]);
    assert_eq!(status, Some(1), "{stdout}");
    assert!(stdout.contains("FALSE") && stderr.contains("1 of these can't be relied on"), "{stdout} {stderr}");
}

#[test]
fn a_program_is_asked_what_it_can_prove_and_its_resource_stays_as_it_is() {
    let subject = ExternalSubject::new();
    assert!(Run::whole(subject.apply(&named(1), fence(3))).is_good());
    let place = subject.place();
    let before = everything(&place);
    let with = |enforce: &str, program: &str| {
        format!(
            "name = \"flags\"\nadapter = \"external\"\nwith = {{ program = {program:?}, inspect = \"operation\", enforce = {enforce:?}, outlives = false, settings = {{ folder = {place:?} }} }}"
        )
    };
    let policy = format!("[external]\nflags = {:?}\n", holdfast_tests_flags::program());
    let host = Host::of(&policy, &with("fence", "flags"));
    let (status, found) = host.verdicts("flags");
    assert_eq!(status, Some(0), "{found:?}");
    for what in [
        "the program can prove what is declared",
        "it can be read",
        "an operation that never was is not applied",
        "another target is not let in",
        "a raise that changes nothing goes well, twice",
    ] {
        says(&found, what, "shown");
    }
    says(&found, "the inspect credentials can't raise the fence", "gap");
    assert_eq!(everything(&place), before);
    let (status, found) = Host::of(&policy, &with("fence", "other")).verdicts("flags");
    assert_eq!(status, Some(1));
    says(&found, "this host allows it", "false");
}

#[test]
fn a_program_that_proves_less_than_is_declared_is_found() {
    let folder = Folder::new();
    let program = folder.0.join("program");
    let answer = r#"{"protocol": "holdfast.adapter/1", "outcome": "described", "capability": {"inspect": "none", "enforce": "none", "outlives": true}}"#;
    std::fs::write(&program, format!("#!/bin/sh\necho '{answer}'\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let resource = "name = \"flags\"\nadapter = \"external\"\nwith = { program = \"flags\", inspect = \"operation\" }";
    let host = Host::of(&format!("[external]\nflags = {program:?}\n"), resource);
    let (status, found) = host.verdicts("flags");
    assert_eq!(status, Some(1));
    says(&found, "the program can prove what is declared", "false");
    says(&found, "it can be read", "false");
}

#[test]
fn credentials_that_are_not_there_are_named() {
    let host = Host::of(
        "[[resource]]\ntarget = \"shop@prod\"\nname = \"db\"\nadapter = \"command\"\n[resource.credentials.deploy]\nfiles = { password = \"/nowhere/secret\" }\n",
        "name = \"db\"\nadapter = \"command\"\nwith = { inspect = [\"echo\", \"v7\"] }",
    );
    let (status, found) = host.verdicts("db");
    assert_eq!(status, Some(1));
    says(&found, "the deploy credentials can be read", "false");
    says(&found, "the inspect credentials can be read", "shown");
}

#[test]
fn what_is_not_there_to_be_tried_is_an_error() {
    let host = release(Path::new("/srv/shop"));
    let (status, stdout, stderr) = host.test("sight", &[]);
    assert_eq!((status, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("shop@prod has no resource sight"), "{stderr}");
}
