//! A release folder.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::folder::Folder;
use holdfast_tests::site;

use super::rig::{Rig, THING};

struct Release {
    folder: Folder,
    /// What was served whenever somebody looked, without repetitions.
    seen: RefCell<Vec<String>>,
}

impl Release {
    fn root(&self) -> PathBuf {
        self.folder.path().join("site")
    }
}

impl Rig for Release {
    fn target_file(&self) -> String {
        files::release_target(THING, &self.root(), "shared")
    }

    fn deployment(&self, revision: &str, ttl: Duration) -> String {
        let _looked = self.underwent();
        let archive = site::archive(&self.folder, revision);
        DeploymentFile::new(THING, ttl).release("switch", &archive, revision).text().to_owned()
    }

    fn effect(&self) -> &'static str {
        "flip"
    }

    fn underwent(&self) -> Vec<String> {
        let index = std::fs::read_to_string(self.root().join("current/index.html")).unwrap_or_default();
        let served = ["r1", "r2", "r3"].into_iter().find(|version| index == site::index(version));
        let mut seen = self.seen.borrow_mut();
        if let Some(served) = served.filter(|served| seen.last().is_none_or(|last| last != served)) {
            seen.push(served.to_owned());
        }
        seen.clone()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_folder_refuses_what_a_paused_agent_does_late() {
    let rig = Release { folder: Folder::new(), seen: RefCell::default() };
    super::the_resource_refuses_the_stale_effect(rig).await;
}
