//! A branch of a Git repository.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use holdfast_tests::files::DeploymentFile;
use holdfast_tests::folder::Folder;

use super::rig::{Rig, THING};

struct Repository {
    folder: Folder,
}

impl Repository {
    fn new() -> Self {
        let repository = Self { folder: Folder::new() };
        let made = Command::new("git").args(["init", "--quiet", "--bare"]).arg(repository.path()).status();
        assert!(made.expect("git is installed").success());
        repository
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("repository.git")
    }
}

impl Rig for Repository {
    fn target_file(&self) -> String {
        format!(
            "schema = \"holdfast/v1\"\nname = \"{THING}\"\nagents = {{ role = \"shop\" }}\n\n[reconcile]\npolicy = \"manual\"\n\n\
             [[resource]]\nname = \"config\"\nadapter = \"git\"\nreach = \"shared\"\n\
             with = {{ url = {:?}, branches = [\"main\"], path = \"apps/thing\" }}\n",
            self.path()
        )
    }

    fn deployment(&self, revision: &str, ttl: Duration) -> String {
        let with = format!("files = {{ \"image.txt\" = \"thing:{revision}\\n\" }}, revision = \"{revision}\"");
        DeploymentFile::new(THING, ttl).with("commit", &with).text().to_owned()
    }

    fn effect(&self) -> &'static str {
        "push"
    }

    fn underwent(&self) -> Vec<String> {
        let mut log = Command::new("git");
        log.arg("-C").arg(self.path()).args(["log", "--reverse", "main"]);
        log.arg("--format=%(trailers:key=Holdfast-Revision,valueonly,separator=%x20)");
        let output = log.output().expect("git is installed");
        String::from_utf8_lossy(&output.stdout).lines().map(|line| line.trim().to_owned()).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_refuses_what_a_paused_agent_does_late() {
    super::the_resource_refuses_the_stale_effect(Repository::new()).await;
}
