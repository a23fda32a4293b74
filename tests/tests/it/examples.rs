//! The examples, as they stand in `examples/`, deployed to the real thing. Only labels and places are the test's own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdfast_proto::v1::{DeploymentState, SubmitRequest};
use holdfast_tests::api::{Operator, label_of, state_of};
use holdfast_tests::cluster::{Cluster, Plan};
use holdfast_tests::database::Database;
use holdfast_tests::deploy_api::DeployApi;
use holdfast_tests::folder::Folder;
use holdfast_tests::{flags, site};
use uuid::Uuid;

use crate::PROGRAM;

fn example(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

async fn with(target: &str, environment: &[(&str, String)]) -> (Cluster, Operator) {
    let plan = Plan::new(PROGRAM).agents(&["web-01"]);
    let plan = environment.iter().fold(plan, |plan, (name, value)| plan.agent_environment(name, value));
    let cluster = plan.start().await;
    let operator = cluster.operator();
    operator.apply_target(target).await;
    (cluster, operator)
}

async fn deploys(operator: &Operator, file: &str, inputs: &[(&str, &str)]) {
    let inputs: BTreeMap<_, _> = inputs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let request = SubmitRequest {
        file: example(file),
        inputs: inputs.into_iter().collect(),
        request_id: Uuid::new_v4().to_string(),
        ..SubmitRequest::default()
    };
    let answer = operator.client.clone().submit(request).await.unwrap_or_else(|status| panic!("{file}: {status}"));
    let deployment = answer.into_inner().deployment.expect("the answer shows it");
    let done = operator.until_ended(&label_of(&deployment)).await;
    assert_eq!(state_of(&done), DeploymentState::Succeeded, "{file}: {done:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_example_expands_indexes_and_contracts_a_real_schema() {
    const TARGET: &str = "orders-db@prod";
    let database = Database::of(TARGET, "orders", "orders");
    let target = example("postgres/target.toml").replace(":5432", &format!(":{}", database.port()));
    let (_cluster, operator) = with(&target, &[("HOLDFAST_RESOURCE", format!("[{}]", database.rule(TARGET)))]).await;
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples/postgres/migrations");
    let folder = folder.canonicalize().expect("the examples are here");
    let inputs = [("migrations", folder.to_str().expect("plain text"))];
    for file in ["postgres/expand.deploy.toml", "postgres/index.deploy.toml", "postgres/contract.deploy.toml"] {
        deploys(&operator, file, &inputs).await;
    }
    let columns = "SELECT string_agg(column_name, ' ' ORDER BY column_name) FROM information_schema.columns \
                   WHERE table_schema = 'orders' AND table_name = 'purchase'";
    assert_eq!(database.sql(columns), "customer email id");
}

fn git(folder: &Path, words: &[&str]) -> String {
    let output = Command::new("git").arg("-C").arg(folder).args(words).output().expect("git is installed");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_git_example_writes_a_file_and_an_archive_to_both_branches_of_a_real_repository() {
    let folder = Folder::new();
    let repository = folder.join("cluster.git");
    git(folder.path(), &["init", "--quiet", "--bare", "cluster.git"]);
    let target = example("git/cluster.target.toml")
        .replace("\"/srv/git/cluster.git\"", &format!("{repository:?}"))
        .replace("role = \"deployer\"", "role = \"shop\"");
    let (_cluster, operator) = with(&target, &[]).await;
    let image = [("image", "registry.example/shop:1.4.2"), ("revision", "1.4.2")];
    deploys(&operator, "git/image.deploy.toml", &image).await;
    for branch in ["main", "live"] {
        let shown = git(&repository, &["show", &format!("{branch}:apps/shop/image.yaml")]);
        assert_eq!(shown, "image: registry.example/shop:1.4.2");
    }
    let archive = site::archive(&folder, "v2");
    let path = archive.path.to_str().expect("plain text");
    let inputs = [("archive", path), ("sha256", archive.sha256.as_str()), ("revision", "1.4.3")];
    deploys(&operator, "git/manifests.deploy.toml", &inputs).await;
    for branch in ["main", "live"] {
        assert_eq!(
            git(&repository, &["ls-tree", "-r", "--name-only", branch]),
            "apps/shop/css/site.css\napps/shop/index.html"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_http_example_is_rolled_out_by_the_example_api() {
    const TARGET: &str = "app@prod";
    let api = DeployApi::start(PROGRAM.as_ref(), "app@prod/service").await;
    let (_cluster, operator) = with(&api.target(TARGET, "manual"), &[("HOLDFAST_RESOURCE", api.rules(TARGET))]).await;
    deploys(&operator, "http/service.deploy.toml", &[("revision", "v2"), ("work_ms", "100")]).await;
    assert_eq!(api.underwent(), ["v2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_external_example_flips_a_flag() {
    let folder = Folder::new();
    let target = flags::target("flags@prod", folder.path(), "host");
    let external = format!("{{ flags = {:?} }}", flags::program());
    let (_cluster, operator) = with(&target, &[("HOLDFAST_EXTERNAL", external)]).await;
    deploys(&operator, "external/flags.deploy.toml", &[("revision", "2026-12-01")]).await;
    assert_eq!(flags::underwent(folder.path()), ["2026-12-01"]);
}
