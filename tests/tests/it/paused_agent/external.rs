//! What a program of the host changes: the one of the examples.

use std::path::Path;
use std::time::Duration;

use holdfast_tests::files::DeploymentFile;
use holdfast_tests::flags;
use holdfast_tests::folder::Folder;

use super::rig::{Rig, THING};

struct Flags {
    folder: Folder,
    program: &'static Path,
}

impl Rig for Flags {
    fn target_file(&self) -> String {
        flags::target(THING, self.folder.path(), "shared")
            .replace("[[resource]]", "[reconcile]\npolicy = \"manual\"\n\n[[resource]]")
    }

    fn deployment(&self, revision: &str, ttl: Duration) -> String {
        let with = format!("revision = \"{revision}\", settings = {{ checkout = \"on\" }}");
        DeploymentFile::new(THING, ttl).with("flip", &with).text().to_owned()
    }

    fn agent_environment(&self) -> Vec<(&'static str, String)> {
        vec![("HOLDFAST_EXTERNAL", format!("{{ flags = {:?} }}", self.program))]
    }

    fn effect(&self) -> &'static str {
        flags::EFFECT
    }

    fn underwent(&self) -> Vec<String> {
        flags::underwent(self.folder.path())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_of_the_host_refuses_what_a_paused_agent_does_late() {
    let rig = Flags { folder: Folder::new(), program: flags::program() };
    super::the_resource_refuses_the_stale_effect(rig).await;
}
