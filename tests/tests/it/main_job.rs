//! The main job: a real archive into a real folder, through real processes.

use holdfast_proto::v1::DeploymentState;
use holdfast_tests::api::{label_of, state_of};
use holdfast_tests::cluster::{LONG, Plan};
use holdfast_tests::events::assert_kinds;
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::site;

use crate::PROGRAM;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_is_deployed_from_its_archive_into_its_folder() {
    let cluster = Plan::new(PROGRAM).start().await;
    let operator = cluster.operator();
    let root = cluster.folder().join("shop");
    operator.apply_target(&files::release_target("shop@test", &root, "host")).await;
    for version in ["v1", "v2"] {
        let archive = site::archive(cluster.folder(), version);
        let file = DeploymentFile::new("shop@test", LONG).release("switch", &archive, version);
        let deployment = operator.submit(file.text()).await;
        let ended = operator.until_ended(&label_of(&deployment)).await;
        let events = operator.events(&label_of(&deployment)).await;
        println!("{events:#?}");
        assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
        let index = std::fs::read_to_string(root.join("current/index.html")).expect("it is there");
        assert_eq!(index, site::index(version));
        assert_kinds(
            &events,
            &[
                "submitted",
                "reserved",
                "lease_granted",
                "offer_accepted",
                "permit_granted",
                "report_accepted",
                "report_accepted",
                "report_accepted",
                "attempt_ended",
                "revision_recorded?",
                "deployment_ended",
            ],
        );
    }
}
