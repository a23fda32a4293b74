//! One deployment of a site and its schema: what is fenced off, looked at and proven is the resource of the open step, and nothing
//! else.

use holdfast_proto::v1::{DecisionKind, DeploymentState, OperationState, RunnerState};
use holdfast_tests::api::{code_of, state_of};
use holdfast_tests::cluster::{LONG, Plan, SHORT};
use holdfast_tests::database::Database;
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::{process, site};

use crate::PROGRAM;
use crate::support::{SHOP, lost_before, submit};

/// Where its agent stands still.
#[derive(Clone, Copy)]
enum Open {
    Schema,
    Site,
}

async fn is_recovered_by_the_open_step_alone(open: Open) {
    let database = Database::start(SHOP);
    let release = "{ target = \"shop@test\", name = \"site\", adapter = \"release\" }";
    let rules = format!("[{}, {release}]", database.rule(SHOP));
    let mut cluster = Plan::new(PROGRAM).agent_environment("HOLDFAST_RESOURCE", &rules).start().await;
    let operator = cluster.operator();
    let root = cluster.folder().join("site");
    let target = format!("{}\n{}", files::release_target(SHOP, &root, "shared"), database.resource());
    operator.apply_target(&target).await;
    let file = |number: u32, ttl| {
        let (version, to) = (format!("v{number}"), format!("000{number}"));
        let archive = site::archive(cluster.folder(), &version);
        let file = DeploymentFile::new(SHOP, ttl).migrates("migrate", &database.migrations(), &to);
        file.release("switch", &archive, &version)
            .text()
            .replace("name = \"switch\"", "name = \"switch\"\nresource = \"site\"")
    };
    let (first, second) = (file(1, LONG), file(2, SHORT));
    let served = || std::fs::read_to_string(root.join("current/index.html")).unwrap_or_default();
    let done = operator.until_ended(&submit(&operator, &first).await).await;
    assert_eq!(state_of(&done), DeploymentState::Succeeded, "{done:#?}");

    let call = match open {
        Open::Schema => "migrate",
        Open::Site => "flip",
    };
    let (label, still) = lost_before(&mut cluster, &operator, call, &second).await;

    let raised = operator.fence_off(&label, SHOP).await.expect("the other agent raises the fence");
    let (step, resource) = match open {
        Open::Schema => ("migrate", "db"),
        Open::Site => ("switch", "site"),
    };
    assert!(raised.body_json.contains(&format!("\"resource\":\"{resource}\"")), "{}", raised.body_json);
    let list = operator.checklist(&label).await;
    assert_eq!(list.runner(), RunnerState::FencedOff, "{}", list.runner_because);
    let read: Vec<_> = list.open_steps.iter().map(|one| (one.step.as_str(), one.state())).collect();
    assert_eq!(read, [(step, OperationState::NotApplied)], "{list:#?}");
    operator.decide(&label, SHOP, DecisionKind::Retry).await.expect("proven");
    let done = operator.until_ended(&label).await;
    assert_eq!((state_of(&done), done.attempts.len()), (DeploymentState::Succeeded, 2), "{done:#?}");
    assert_eq!((database.underwent(), served()), (vec!["r1".to_owned(), "r2".to_owned()], site::index("v2")));

    process::resume(still);
    cluster.line("web-01").heal().await;
    let late = operator
        .until_evidence(&label, "the refusal", |evidence| {
            evidence.kind == "late_report"
                && evidence.body_json.contains("step_ended")
                && evidence.body_json.contains(step)
        })
        .await;
    assert!(late.body_json.contains("\"exit\":{\"exited\":73}"), "{}", late.body_json);
    assert_eq!((database.underwent(), served()), (vec!["r1".to_owned(), "r2".to_owned()], site::index("v2")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_migration_is_recovered_by_its_database_alone() {
    is_recovered_by_the_open_step_alone(Open::Schema).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_switch_is_recovered_by_its_folder_alone_and_the_migration_before_it_is_carried() {
    is_recovered_by_the_open_step_alone(Open::Site).await;
}

/// By what the two declare, and by what the resource itself has on record where the declarations do not show it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_resource_in_two_targets_is_refused() {
    const OTHER: &str = "other@test";
    let database = Database::start(SHOP);
    let rules = format!("[{}, {}]", database.rule(SHOP), database.rule(OTHER));
    let cluster = Plan::new(PROGRAM).agents(&["web-01"]).agent_environment("HOLDFAST_RESOURCE", &rules).start().await;
    let operator = cluster.operator();
    operator.apply_target(&database.target_file(SHOP)).await;
    let refused = operator.try_apply_target(&database.target_file(OTHER)).await.expect_err("the same place");
    assert_eq!(code_of(&refused), "HF-2041", "{refused:?}");

    let elsewhere = database.target_file(OTHER).replace(", database = \"shop\"", "");
    operator.apply_target(&elsewhere).await;
    let file = DeploymentFile::new(OTHER, LONG).migrates("migrate", &database.migrations(), "0001");
    let done = operator.until_ended(&submit(&operator, file.text()).await).await;
    assert_eq!(state_of(&done), DeploymentState::Failed, "{done:#?}");
    assert!(format!("{done:?}").contains("belongs to"), "the database knows whose it is: {done:#?}");
    assert_eq!(database.underwent(), Vec::<String>::new());
}
