//! A real bare repository, reached as a path or through git's own HTTP backend, and calls of the adapter on it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use holdfast_agent::adapters::system::{Call, Operation, Order};
use holdfast_agent::internal::{INTERNAL, name};
use holdfast_common::fence::Fence;
use holdfast_common::id::{ResourceName, Revision, TargetName};
use holdfast_common::outcome::Reading;
use holdfast_common::system::{Change, Commit, Git, System};
use uuid::Uuid;

use crate::support::{AGENT, Folder, operation};

/// A bare repository on this machine, with a commit on each of its branches.
pub(crate) struct Bare {
    pub(crate) folder: Folder,
    pub(crate) path: PathBuf,
}

/// Git, as a person on this machine would use it.
pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = git_command(folder, arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

pub(crate) fn git_command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
    for (key, value) in [("CONFIG_NOSYSTEM", "1"), ("CONFIG_GLOBAL", "/dev/null")] {
        command.env(format!("GIT_{key}"), value);
    }
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "anna").env(format!("GIT_{who}_EMAIL"), "anna@example.com");
    }
    command
}

impl Bare {
    pub(crate) fn new(branches: &[&str]) -> Self {
        let bare = Self::empty();
        for branch in branches {
            bare.commit(branch, &[("README", "by hand\n"), ("apps/shop/old.txt", "old\n")]);
        }
        bare
    }

    pub(crate) fn empty() -> Self {
        Self::of_format("sha1")
    }

    pub(crate) fn of_format(format: &str) -> Self {
        let folder = Folder::new();
        let path = folder.0.join("remote.git");
        let format = format!("--object-format={format}");
        git(&folder.0, &["init", "--quiet", "--bare", "--initial-branch=main", &format, path.to_str().unwrap()]);
        git(&path, &["config", "http.receivepack", "true"]);
        Self { folder, path }
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(&self.path, arguments)
    }

    /// Commits files as a person would, from a clone, and pushes.
    pub(crate) fn commit(&self, branch: &str, files: &[(&str, &str)]) {
        let clone = self.folder.0.join(format!("clone-{}", Uuid::new_v4().simple()));
        git(&self.folder.0, &["clone", "--quiet", self.path.to_str().unwrap(), clone.to_str().unwrap()]);
        let known = git_command(&clone, &["checkout", "--quiet", branch]).stderr(Stdio::null()).status().unwrap();
        if !known.success() {
            git(&clone, &["checkout", "--quiet", "--orphan", branch]);
        }
        for (path, text) in files {
            let path = clone.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        git(&clone, &["add", "--all"]);
        git(&clone, &["commit", "--quiet", "--allow-empty", "--message", "by hand"]);
        git(&clone, &["push", "--quiet", "origin", branch]);
        std::fs::remove_dir_all(clone).unwrap();
    }

    /// So many commits that change nothing, as many people's work would be.
    pub(crate) fn history(&self, branch: &str, commits: usize) {
        let mut tip = self.git(&["rev-parse", branch]);
        for _ in 0..commits {
            tip = self.git(&["commit-tree", &format!("{tip}^{{tree}}"), "-p", &tip, "-m", "by hand"]);
        }
        self.git(&["update-ref", &format!("refs/heads/{branch}"), &tip]);
    }

    /// A hook of the remote.
    pub(crate) fn hook(&self, name: &str, script: &str) {
        let path = self.path.join("hooks").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
    }

    /// Everything that a push could move.
    pub(crate) fn refs(&self) -> String {
        self.git(&["for-each-ref"])
    }

    /// A file on a branch, as it is now.
    pub(crate) fn file(&self, branch: &str, path: &str) -> Option<String> {
        let output = git_command(&self.path, &["cat-file", "blob", &format!("{branch}:{path}")]).output().unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// Revisions in the order in which they took effect, by the commits of a branch alone.
    pub(crate) fn underwent(&self, branch: &str) -> Vec<String> {
        let format = "--format=%(trailers:key=Holdfast-Revision,valueonly,separator=)";
        let text = self.git(&["log", "--reverse", "--first-parent", format, branch, "--"]);
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }
}

/// A resource in a repository, as one host reaches it.
#[derive(Clone)]
pub(crate) struct Resource {
    pub(crate) target: &'static str,
    pub(crate) declared: Git,
    pub(crate) cache: PathBuf,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) place: PathBuf,
}

impl Resource {
    pub(crate) fn of(bare: &Bare, branches: &[&str], path: &str) -> Self {
        Self {
            target: "shop@prod",
            declared: Git {
                url: bare.path.to_str().unwrap().to_owned(),
                branches: branches.iter().map(|&name| name.to_owned()).collect(),
                path: path.to_owned(),
            },
            cache: bare.folder.0.join("cache"),
            environment: BTreeMap::new(),
            place: bare.folder.0.clone(),
        }
    }

    fn order(&self, operation: Operation, call: Call) -> Order {
        Order {
            target: TargetName::new(self.target).unwrap(),
            resource: ResourceName::new("site").unwrap(),
            system: System::Git(self.declared.clone()),
            operation,
            call,
            program: None,
            is_placed: false,
            cache: self.cache.clone(),
        }
    }

    /// The process of a call, its output piped.
    pub(crate) fn command(&self, operation: Operation, call: Call) -> Command {
        let order = self.order(operation, call);
        let input = self.place.join(format!("order-{}", Uuid::new_v4().simple()));
        std::fs::write(&input, serde_json::to_vec(&order).unwrap()).unwrap();
        let mut command = Command::new(AGENT);
        command.args([INTERNAL, name::SYSTEM]).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.envs(&self.environment).stdin(File::open(input).unwrap());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn apply(&self, operation: Operation, fence: Fence) -> Command {
        self.apply_archive(operation, fence, None)
    }

    pub(crate) fn apply_archive(&self, operation: Operation, fence: Fence, archive: Option<PathBuf>) -> Command {
        self.command(operation, Call::Apply { fence, archive, work: self.place.clone() })
    }

    pub(crate) fn examine(&self, operation: Operation) -> Command {
        self.command(operation, Call::Examine { archive: None, work: self.place.clone() })
    }

    pub(crate) fn inspect(&self, number: u128) -> Reading {
        let output = self.command(change(number), Call::Inspect).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn raise(&self, fence: Fence) -> Reading {
        let output = self.command(change(999), Call::Raise { fence }).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// An operation that brings one file and the revision `vN`.
pub(crate) fn change(number: u128) -> Operation {
    files(number, &[("index.html", &format!("v{number}"))])
}

pub(crate) fn files(number: u128, files: &[(&str, &str)]) -> Operation {
    Operation {
        id: operation(number),
        revision: Some(Revision::new(format!("v{number}")).unwrap()),
        expected_revision: None,
        change: Some(Change::Commit(Commit {
            archive: None,
            files: files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect(),
            keep: true,
            message: None,
        })),
    }
}

pub(crate) fn expecting(mut operation: Operation, revision: &str) -> Operation {
    operation.expected_revision = Some(Revision::new(revision).unwrap());
    operation
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).trim_end().to_owned()
}

/// What it exited with.
#[track_caller]
pub(crate) fn exit(command: &mut Command) -> (i32, String) {
    let output = command.output().unwrap();
    (output.status.code().expect("it ended by itself"), said(&output))
}

#[track_caller]
pub(crate) fn succeeds(command: &mut Command) -> String {
    let (status, said) = exit(command);
    assert_eq!(status, 0, "{said}");
    said
}
