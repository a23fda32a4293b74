//! Hosts that become agents, as people do it: by the command lines alone.

use holdfast_proto::v1::Contact;
use holdfast_tests::cli::{Cli, Ran};
use holdfast_tests::cluster::{Cluster, Plan};
use holdfast_tests::files::{self, DeploymentFile};
use holdfast_tests::process::{Launch, Process};
use holdfast_tests::wait;

use crate::PROGRAM;
use crate::support::BOX;

/// A coordinator with an authority of its own, which signed its certificate too, and no agent.
pub(crate) async fn signing(life: &str) -> Cluster {
    let mut cluster = Plan::new(PROGRAM).agents(&[]).prepare().await;
    let environment = &mut cluster.coordinator().settings().environment;
    environment.insert("HOLDFAST_ENROL_CERTIFICATE_LIFE".to_owned(), life.to_owned());
    let made = cluster.coordinator().run(&["ca", "create"]);
    assert!(made.contains("pin   sha256:"), "{made}");
    cluster.start_coordinator().await;
    cluster
}

/// Makes a token. Answers its secret and the words of the host's command, as they were shown.
pub(crate) async fn token(cli: &Cli, more: &[&str]) -> (String, Vec<String>) {
    let words: Vec<&str> = ["agent", "token", "create", "--label", "role=shop"].iter().chain(more).copied().collect();
    let made = cli.run(&words).await;
    made.expect(0);
    let line = made.stderr.lines().find(|line| line.contains("holdfast-agent join")).expect("the host's command");
    let line = line.trim().trim_end_matches(" --token-file -");
    let words = line.split_whitespace().skip(1).map(str::to_owned).collect();
    (made.stdout.trim().to_owned(), words)
}

/// Runs the host's command with folders of the test's own.
pub(crate) async fn join(cluster: &Cluster, secret: &str, words: &[String], name: &str) -> Ran {
    let at = |file: &str| cluster.folder().join(file).to_str().expect("plain text").to_owned();
    let token = at(&format!("{name}.token"));
    std::fs::write(&token, secret).expect("written");
    let more = [
        ("--name", name.to_owned()),
        ("--config", at(&format!("{name}.joined.toml"))),
        ("--identity", at(&format!("{name}.identity"))),
        ("--state", at(name)),
        ("--token-file", token),
    ];
    let mut all: Vec<&str> = std::iter::once("agent").chain(words.iter().map(String::as_str)).collect();
    for (option, value) in &more {
        if !all.contains(option) {
            all.extend([*option, value.as_str()]);
        }
    }
    cluster.cli().run(&all).await
}

/// The service, with the configuration that the join wrote.
pub(crate) fn run(cluster: &Cluster, name: &str) -> Process {
    let config = cluster.folder().join(&format!("{name}.joined.toml"));
    let arguments = ["agent", "run", "--config", config.to_str().expect("plain text")].map(str::to_owned).into();
    Process::start(&Launch {
        name: name.to_owned(),
        wrapper: Vec::new(),
        program: cluster.program().to_owned(),
        arguments,
        environment: [("HOLDFAST_OPS_ADDRESS".to_owned(), "off".to_owned())].into(),
        folder: cluster.folder().path().to_owned(),
        log: cluster.folder().join(&format!("{name}.log")),
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_joins_by_the_command_that_was_shown_and_does_work() {
    let cluster = signing("1h").await;
    let (secret, words) = token(&cluster.cli(), &["--name", "web-07"]).await;
    assert!(words.iter().any(|word| word.starts_with("sha256:")) && !words.iter().any(|word| word.contains(&secret)));
    let joined = join(&cluster, &secret, &words, "web-07").await;
    joined.expect(0);
    assert!(joined.stdout.contains("role=shop") && joined.stdout.contains("next: holdfast-agent run"), "{joined:?}");
    let used = join(&cluster, &secret, &words, "web-07").await;
    used.expect(4);
    assert!(used.stderr.contains("HF-4013"), "another key, so another host: {used:?}");

    let mut agent = run(&cluster, "web-07");
    let operator = cluster.operator();
    operator.until_contact("web-07", Contact::Connected).await;
    operator.apply_target(&files::command_target(BOX, false)).await;
    let ledger = cluster.ledger("box");
    let file = DeploymentFile::new(BOX, holdfast_tests::cluster::LONG).mutates("change", "unsafe", &ledger.command());
    let label = holdfast_tests::api::label_of(&operator.submit(file.text()).await);
    operator.until_ended(&label).await;
    ledger.check_begun(1);
    let agents = cluster.cli().run(&["agents", "--json"]).await.expect(0).json();
    assert_eq!(agents["agents"][0]["labels"]["role"], "shop", "{agents:#}");
    assert!(agents["agents"][0]["fingerprint"].as_str().is_some_and(|text| text.len() == 64), "{agents:#}");
    agent.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn join_sends_nothing_to_who_does_not_show_the_pinned_authority() {
    let cluster = signing("1h").await;
    let (secret, words) = token(&cluster.cli(), &[]).await;
    let other: Vec<String> = words
        .iter()
        .map(|word| if word.starts_with("sha256:") { format!("sha256:{}", "0a".repeat(32)) } else { word.clone() })
        .collect();
    let refused = join(&cluster, &secret, &other, "web-07").await;
    refused.expect(4);
    assert!(refused.stderr.contains("HF-4019") && refused.stderr.contains("nothing was sent"), "{refused:?}");
    assert!(!cluster.folder().join("web-07.identity/current").exists());
    let listed = cluster.cli().run(&["agent", "token", "list", "--json"]).await.expect(0).json();
    assert_eq!(listed["tokens"][0]["standing"], "JOIN_TOKEN_STANDING_PENDING", "{listed:#}");
    join(&cluster, &secret, &words, "web-07").await.expect(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_token_is_told_with_who_makes_the_next_one() {
    let cluster = signing("1h").await;
    let (_, words) = token(&cluster.cli(), &[]).await;
    let wrong = join(&cluster, &format!("hfj_{}", "0".repeat(64)), &words, "web-07").await;
    wrong.expect(4);
    assert!(wrong.stderr.contains("HF-4011") && wrong.stderr.contains("holdfast agent token create"), "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_renewed_in_time_and_no_session_is_dropped() {
    let cluster = signing("6s").await;
    let (secret, words) = token(&cluster.cli(), &[]).await;
    join(&cluster, &secret, &words, "web-07").await.expect(0);
    let identity = cluster.folder().join("web-07.identity/current/identity.json");
    let before = std::fs::read_to_string(&identity).expect("it joined");
    let mut agent = run(&cluster, "web-07");
    cluster.operator().until_contact("web-07", Contact::Connected).await;
    wait::until_true("the renewal", wait::SOON, || std::fs::read_to_string(&identity).is_ok_and(|now| now != before))
        .await;
    let log = std::fs::read_to_string(cluster.folder().join("web-07.log")).expect("its log");
    assert_eq!(log.matches("connected session=").count(), 1, "one session all the time:\n{log}");
    agent.kill();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_that_can_not_end_well_says_so_before_it_uses_the_token_up() {
    let cluster = signing("1h").await;
    let (secret, words) = token(&cluster.cli(), &[]).await;
    let with =
        |more: &[&str]| words.iter().cloned().chain(more.iter().map(|word| (*word).to_owned())).collect::<Vec<_>>();
    // A file where a folder would have to be: not even root can write below it.
    let file = cluster.folder().write("a-file", "");
    let below = |name: &str| file.join(name).to_str().expect("plain text").to_owned();
    for option in ["--config", "--identity"] {
        let refused = join(&cluster, &secret, &with(&[option, &below("x")]), "web-07").await;
        refused.expect(2);
        assert!(refused.stderr.contains("could not") && refused.stderr.contains("a-file"), "{option}: {refused:?}");
    }
    let shown = join(&cluster, &secret, &with(&["--token-file", &secret]), "web-07").await;
    shown.expect(2);
    assert!(shown.stderr.contains("list of processes") && !shown.stderr.contains(&secret), "{shown:?}");
    let unknown = join(&cluster, &secret, &with(&["--token", "x"]), "web-07").await;
    unknown.expect(2);
    assert!(unknown.stderr.contains("--token-file"), "{unknown:?}");
    join(&cluster, &secret, &words, "web-07").await.expect(0);

    // While its agent runs, another join changes nothing.
    let mut agent = run(&cluster, "web-07");
    cluster.operator().until_contact("web-07", Contact::Connected).await;
    let identity = cluster.folder().join("web-07.identity/current/identity.json");
    let before = std::fs::read_to_string(&identity).expect("it joined");
    let (next, words) = token(&cluster.cli(), &[]).await;
    let again = join(&cluster, &next, &words, "web-07").await;
    again.expect(16);
    assert!(again.stderr.contains("HF-4014") && again.stderr.contains("still good"), "{again:?}");
    let renamed = words.iter().cloned().chain(["--name", "web-08"].map(str::to_owned)).collect::<Vec<_>>();
    let other = join(&cluster, &next, &renamed, "web-07").await;
    other.expect(2);
    assert!(other.stderr.contains("enrolled as web-07"), "{other:?}");
    assert_eq!(std::fs::read_to_string(&identity).expect("it joined"), before);
    cluster.operator().until_contact("web-07", Contact::Connected).await;
    agent.kill();
}
