//! Archives on their way: from the operator's machine through the coordinator, and from https, to the host.

use std::path::Path;
use std::process::Output;
use std::time::Duration;

use holdfast_common::fence::Fence;
use holdfast_proto::v1::agent_service_client::AgentServiceClient;
use holdfast_proto::v1::{Claim, Contact, DeploymentState, FetchArchiveRequest};
use holdfast_tests::api::{code_of, id_of, state_of};
use holdfast_tests::cluster::{Cluster, LONG, Plan};
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::https::Https;
use holdfast_tests::{site, wait};
use rand::RngCore as _;
use tonic::{Code, Status};

use crate::PROGRAM;
use crate::support::{SHOP, last_attempt};

/// Bytes that do not pack.
fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    rand::rng().fill_bytes(&mut bytes);
    bytes
}

/// A deployment's file of one step, in the test's folder.
fn file(cluster: &Cluster, archive: &str, sha256: &str) -> String {
    let keys = format!("retry = \"idempotent\"\nwith = {{ archive = {archive:?}, {sha256} revision = \"v1\" }}\n");
    let text = DeploymentFile::new(SHOP, LONG).step("switch", &keys);
    let path = cluster.folder().write("shop.deploy.toml", text.text());
    path.to_str().expect("a test's paths are plain text").to_owned()
}

fn digest(sha256: &str) -> String {
    format!("sha256 = \"{sha256}\",")
}

async fn with_shop() -> Cluster {
    let cluster = Plan::new(PROGRAM).start().await;
    let root = cluster.folder().join("shop");
    cluster.operator().apply_target(&files::release_target(SHOP, &root, "shared")).await;
    cluster
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map(|about| about.len()).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_goes_on_over_a_cut_and_a_restart_and_is_deployed() {
    let mut cluster = with_shop().await;
    let archive = site::archive_with(cluster.folder(), "v1", &noise(24 << 20));
    let file = file(&cluster, "upload:site-v1.tar.gz", &digest(&archive.sha256));
    let kept = cluster.folder().join("coordinator/archives");
    let partial = kept.join("partial").join(&archive.sha256);
    cluster.operators_line().delay(Duration::from_millis(40));
    let deploy = cluster.cli().command(&["deploy", &file]).spawn().expect("the program can be started");
    wait::until_true("a part of the upload", wait::SOON, || length(&partial) > 3 << 20).await;
    cluster.operators_line().reset();
    let before = length(&partial);
    wait::until_true("more of it", wait::SOON, || length(&partial) > before + (4 << 20)).await;
    cluster.coordinator().kill();
    let before = length(&partial);
    assert!(before < length(&archive.path), "it was in its middle");
    cluster.operators_line().heal().await;
    cluster.start_coordinator().await;
    let Output { status, stderr, .. } =
        wait::within("the deployment", wait::SOON * 2, deploy.wait_with_output()).await.expect("it is read");
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success() && stderr.contains("is uploaded"), "{status}: {stderr}");
    let index = std::fs::read_to_string(cluster.folder().join("shop/current/index.html")).expect("it is there");
    assert_eq!(index, site::index("v1"));
    assert_eq!((length(&kept.join(&archive.sha256)), partial.exists()), (length(&archive.path), false));

    // The same again uploads nothing, and the agent has it.
    let again = cluster.cli().run(&["deploy", &file]).await;
    again.expect(0);
    assert!(again.stderr.contains("was at the coordinator already"), "{}", again.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_of_another_digest_is_refused_before_anything_changes_and_the_digest_is_told() {
    let cluster = with_shop().await;
    let (cli, archive) = (cluster.cli(), site::archive(cluster.folder(), "v1"));
    let told = format!("sha256 of site-v1.tar.gz is {}", archive.sha256);
    let wrong = file(&cluster, "upload:site-v1.tar.gz", &digest(&"0".repeat(64)));
    for command in ["check", "deploy"] {
        let ran = cli.run(&[command, &wrong]).await;
        ran.expect(16);
        assert!(ran.stderr.contains("HF-2071") && ran.stderr.contains(&told), "{}", ran.stderr);
    }
    let missing = file(&cluster, "upload:site-v1.tar.gz", "");
    for command in ["check", "deploy"] {
        let ran = cli.run(&[command, &missing]).await;
        ran.expect(2);
        assert!(ran.stderr.contains("HF-1005") && ran.stderr.contains(&told), "{}", ran.stderr);
    }
    let nowhere = file(&cluster, "upload:nowhere.tar.gz", &digest(&archive.sha256));
    let ran = cli.run(&["check", &nowhere]).await;
    assert!(ran.expect(0).stderr.contains("nowhere.tar.gz is not there"), "{}", ran.stderr);
    let ran = cli.run(&["deploy", &nowhere]).await;
    ran.expect(16);
    assert!(ran.stderr.contains("HF-2070") && ran.stderr.contains("nowhere.tar.gz"), "{}", ran.stderr);
    // Who submits without an upload, by the API.
    let right = file(&cluster, "upload:site-v1.tar.gz", &digest(&archive.sha256));
    let text = std::fs::read_to_string(right).expect("it is there");
    let refused = cluster.operator().try_submit(&text, uuid::Uuid::now_v7()).await.expect_err("it was never uploaded");
    assert_eq!((refused.code(), code_of(&refused).as_str()), (Code::FailedPrecondition, "HF-2070"));
    assert!(cli.run(&["list", "-o", "name"]).await.expect(0).stdout.is_empty(), "nothing was recorded");
    assert!(!cluster.folder().join("shop").exists(), "nothing was changed");
}

async fn fetch(cluster: &Cluster, agent: &str, claim: &Claim, step: &str) -> Result<Vec<u8>, Status> {
    let address = cluster.address();
    let limits = holdfast_net::channel::Limits::default();
    let channel = holdfast_net::channel::connect(&address, &cluster.agent_tls(agent), &limits).await.expect("reached");
    let mut client = AgentServiceClient::new(channel);
    let request = FetchArchiveRequest { claim: Some(claim.clone()), step: step.to_owned(), offset: 0 };
    let mut pieces = client.fetch_archive(request).await?.into_inner();
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.message().await? {
        bytes.extend(piece.data);
    }
    Ok(bytes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_gets_the_archives_of_its_own_attempts_and_no_others() {
    let cluster = with_shop().await;
    let archive = site::archive(cluster.folder(), "v1");
    let file = file(&cluster, "upload:site-v1.tar.gz", &digest(&archive.sha256));
    cluster.cli().run(&["deploy", &file]).await.expect(0);
    let deployment = cluster.operator().deployment(&format!("{SHOP}#1")).await;
    let attempt = last_attempt(&deployment);
    let claim = Claim { deployment: id_of(&deployment), attempt: attempt.id.clone(), fence: attempt.fence };
    let own = fetch(&cluster, &attempt.agent, &claim, "switch").await.expect("its own");
    assert_eq!(own, std::fs::read(&archive.path).expect("it is there"));
    let fence = Fence::from_u64(claim.fence).expect("a fence").as_u64() + 1;
    let other = crate::support::other(&attempt.agent);
    let mut told = Vec::new();
    for (agent, claim, step) in [
        (other, claim.clone(), "switch"),
        (other, Claim { attempt: uuid::Uuid::now_v7().to_string(), ..claim.clone() }, "switch"),
        (attempt.agent.as_str(), Claim { fence, ..claim.clone() }, "switch"),
        (attempt.agent.as_str(), claim.clone(), "another"),
    ] {
        let refused = fetch(&cluster, agent, &claim, step).await.expect_err("not its own");
        told.push((refused.code(), refused.message().to_owned()));
    }
    told.dedup();
    assert_eq!(told.len(), 1, "one answer, that of what does not exist: {told:?}");
    assert_eq!(told[0].0, Code::NotFound);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_archive_is_fetched_from_https_over_cuts_and_checked_before_the_permit() {
    let mut cluster = with_shop().await;
    let archive = site::archive_with(cluster.folder(), "v1", &noise(600_000));
    let bytes = std::fs::read(&archive.path).expect("it is there");
    let server = Https::start(&cluster.server_pair("files"), bytes, 250_000).await;
    let ca = cluster.ca().to_str().expect("a test's paths are plain text").to_owned();
    let operator = cluster.operator();
    for name in ["web-01", "web-02"] {
        cluster.agent(name).kill();
        operator.until_contact(name, Contact::Silent).await;
        let environment = &mut cluster.agent(name).settings().environment;
        environment.insert("HOLDFAST_FETCH_CA".to_owned(), ca.clone());
        environment.insert("HOLDFAST_FETCH_TIMEOUT".to_owned(), "20s".to_owned());
        cluster.agent(name).start();
        operator.until_contact(name, Contact::Connected).await;
    }
    let good = file(&cluster, &server.url("/moved"), &digest(&archive.sha256));
    cluster.cli().run(&["deploy", &good]).await.expect(0);
    let index = std::fs::read_to_string(cluster.folder().join("shop/current/index.html")).expect("it is there");
    assert_eq!(index, site::index("v1"));
    // Each try is led on once and brings a part: 250,000 bytes of about 600,000.
    assert_eq!(server.requests(), 6);

    for (path, sha256, why) in [
        ("/nowhere", "1".repeat(64), "404"),
        ("/down", "2".repeat(64), "https"),
        ("/file", "3".repeat(64), "its SHA-256 is"),
    ] {
        let bad = file(&cluster, &server.url(path), &digest(&sha256));
        let ran = cluster.cli().run(&["deploy", &bad]).await;
        ran.expect(10);
        let listed = cluster.cli().run(&["list", "-o", "name"]).await;
        let label = listed.stdout.lines().next().expect("the newest").to_owned();
        let failed = operator.until_ended(&label).await;
        assert_eq!((state_of(&failed), failed.attempts.len()), (DeploymentState::Failed, 1), "{failed:#?}");
        assert!(failed.never_mutated, "refused before the permit");
        let detail = &last_attempt(&failed).steps[0].detail;
        assert!(detail.contains(why), "{path}: {detail}");
    }
    let plain = file(&cluster, "http://localhost:1/a.tgz", &digest(&archive.sha256));
    cluster.cli().run(&["check", &plain]).await.expect(2);
}
