//! Bad input through the whole system: it is refused in clear words, or it is data; it never becomes a command, a path, a
//! terminal's escape or another agent's word.

use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use holdfast_common::spec::hex;
use holdfast_proto::v1::connect_request::Message as Says;
use holdfast_proto::v1::report::Body;
use holdfast_proto::v1::{
    Attempt, AttemptEnd, CancelDeploymentRequest, Claim, DeploymentState, DispositionKind, FiledReason, StepEnd,
    StepEndKind, StepEnded, SubmitRequest,
};
use holdfast_tests::api::{code_of, id_of, label_of, state_of};
use holdfast_tests::cluster::{Cluster, LONG, Plan, SHORT};
use holdfast_tests::files::{DeploymentFile, command_target, release_target};
use holdfast_tests::folder::Folder;
use holdfast_tests::peer::{applied, ended, hello, report, started};
use holdfast_tests::site::{self, Archive};
use holdfast_tests::wait;
use sha2::{Digest as _, Sha256};
use tonic::Code;
use uuid::Uuid;

use crate::PROGRAM;

const TARGET: &str = "box@test";

fn no_panic(cluster: &Cluster) {
    for name in ["coordinator.log", "web-01.log"] {
        let log = std::fs::read_to_string(cluster.folder().join(name)).unwrap_or_default();
        assert!(!log.contains("panicked"), "{name}: {log}");
    }
}

/// T9: its own attempt, and one thing of the claim wrong. Each is told apart, and none of them moves the attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_own_word_with_a_wrong_claim_is_filed_and_completes_nothing() {
    let cluster = Plan::new(PROGRAM).agents(&[]).start().await;
    let operator = cluster.operator();
    operator.apply_target(&command_target(TARGET, true)).await;
    operator.apply_target(&command_target("box@other", true)).await;
    let incarnation = Uuid::new_v4();
    let mut peer = cluster.peer("web-01", hello(incarnation)).await.expect("a session");
    let job = |target: &str| DeploymentFile::new(target, LONG).mutates("change", "unsafe", &["true".to_owned()]);
    let label = label_of(&operator.submit(job(TARGET).text()).await);
    let offer = peer.take_offer().await;
    let own = offer.claim.clone().expect("an offer has its claim");
    let _granted = peer.permit(&offer, "change").await;
    let waiting = operator.submit(job(TARGET).text()).await;
    let elsewhere = operator.submit(job("box@other").text()).await;
    let other = peer.take_offer().await.claim.expect("an offer has its claim");

    let wrong = [
        ("older fence", Claim { fence: own.fence - 1, ..own.clone() }, FiledReason::WrongFence),
        ("future fence", Claim { fence: own.fence + 1, ..own.clone() }, FiledReason::WrongFence),
        ("far fence", Claim { fence: u64::MAX >> 1, ..own.clone() }, FiledReason::WrongFence),
        ("deployment that waits", Claim { deployment: id_of(&waiting), ..own.clone() }, FiledReason::UnknownAttempt),
        ("deployment elsewhere", Claim { deployment: id_of(&elsewhere), ..own.clone() }, FiledReason::UnknownAttempt),
        ("attempt elsewhere", Claim { attempt: other.attempt, ..own.clone() }, FiledReason::UnknownAttempt),
        ("unknown attempt", Claim { attempt: Uuid::new_v4().to_string(), ..own.clone() }, FiledReason::UnknownAttempt),
        (
            "unknown deployment",
            Claim { deployment: Uuid::now_v7().to_string(), ..own.clone() },
            FiledReason::UnknownAttempt,
        ),
    ];
    let before = operator.deployment(&label).await;
    let mut sequence = 0;
    for (what, claim, reason) in &wrong {
        for body in [started("change"), applied("change"), ended(AttemptEnd::Succeeded)] {
            sequence += 1;
            let answer = peer.report(Some(claim), sequence, body).await;
            assert_eq!((answer.kind(), answer.reason()), (DispositionKind::Filed, *reason), "{what}");
        }
    }
    // The same certificate with another journal.
    let mut stranger = cluster.peer("web-01", hello(Uuid::new_v4())).await.expect("a session");
    let answer = stranger.report(Some(&own), 1, applied("change")).await;
    assert_eq!((answer.kind(), answer.reason()), (DispositionKind::Filed, FiledReason::WrongIncarnation));
    let after = operator.deployment(&label).await;
    assert_eq!(state_of(&after), DeploymentState::Active);
    assert_eq!(
        after.attempts.iter().map(without_silence).collect::<Vec<_>>(),
        before.attempts.iter().map(without_silence).collect::<Vec<_>>(),
        "a wrong claim moved the attempt"
    );
    assert_eq!(state_of(&operator.deployment(&id_of(&elsewhere)).await), DeploymentState::Active);
    // Only what was about the own attempt is its evidence.
    let reasons: Vec<FiledReason> = operator.evidence(&label).await.iter().map(|one| one.filed_as()).collect();
    assert_eq!(reasons.iter().filter(|reason| **reason == FiledReason::WrongFence).count(), 9, "{reasons:?}");
    assert!(!reasons.contains(&FiledReason::UnknownAttempt), "{reasons:?}");

    let mut peer = cluster.peer("web-01", hello(incarnation)).await.expect("a session");
    for (offset, body) in [started("change"), applied("change"), ended(AttemptEnd::Succeeded)].into_iter().enumerate() {
        let answer = peer.report(Some(&own), sequence + 1 + offset as u64, body).await;
        assert_eq!(answer.kind(), DispositionKind::Accepted);
    }
    operator.until_state(&label, DeploymentState::Succeeded).await;
    no_panic(&cluster);
}

/// How long it was silent changes by itself.
fn without_silence(attempt: &Attempt) -> Attempt {
    Attempt { silent_for: None, ..attempt.clone() }
}

/// Files with faults, through the command line: place, name and suggestion, exit code 2, nothing recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_file_is_refused_with_line_column_and_suggestion() {
    let cluster = Plan::new(PROGRAM).agents(&[]).start().await;
    let cli = cluster.cli();
    let good = DeploymentFile::new(TARGET, LONG).mutates("change", "unsafe", &["true".to_owned()]).text().to_owned();
    let target = command_target(TARGET, true);
    let operator = cluster.operator();
    operator.apply_target(&target).await;
    let deploys = [
        (good.replace("ttl =", "tll ="), ":5:1", "\"ttl\""),
        (good.replace("[cancel]", "[cancle]"), ":7:", "\"cancel\""),
        (good.replace("retry = \"unsafe\"", "retry = \"unsave\""), "", "\"unsafe\""),
        (good.replace("name = \"change\"", "name = \"a\\u001b[31mb\""), "", "name"),
        (good.replace("name = \"change\"", "name = \"../evil\""), "", "name"),
        (good.replace("holdfast/v1", "holdfast/v9"), ":1:", "holdfast/v1"),
        (good.replace("target = \"box@test\"", "target = \"box@test"), ":2:", ""),
        (format!("{good}\nrun = 1\n\0"), "", ""),
        (good.replace("schema", "\u{feff}\u{202e}schema"), "", ""),
        (format!("{good}{}", "x = [".repeat(20_000)), "", ""),
        (String::new(), "", "schema"),
    ];
    for (text, place, says) in &deploys {
        let file = cluster.folder().write("bad.toml", text);
        let path = file.to_str().expect("plain text");
        for words in [&["check", path][..], &["deploy", path, "--detach"][..]] {
            let ran = cli.run(words).await;
            // What a later version may honour is a precondition, anything else a fault of the file.
            ran.expect(if ran.stderr.starts_with("error[HF-16") { 16 } else { 2 });
            assert!(ran.stderr.starts_with("error[HF-"), "{words:?}: {}", ran.stderr);
            assert!(ran.stderr.contains(place) && ran.stderr.contains(says), "{place} {says}: {}", ran.stderr);
            assert!(ran.stdout.is_empty(), "{}", ran.stdout);
            assert_no_escapes(&ran.stderr);
        }
    }
    let targets = [
        (target.replace("adapter =", "adaptor ="), "10:1:", "\"adapter\""),
        (target.replace("name = \"box@test\"", "name = \"box\\ntest\""), ":2:", "name"),
        (target.replace("\"command\"", "\"comand\""), "", "\"command\""),
    ];
    for (text, place, says) in &targets {
        let file = cluster.folder().write("bad.target.toml", text);
        let ran = cli.run(&["target", "apply", file.to_str().expect("plain text")]).await;
        ran.expect(2);
        assert!(ran.stderr.contains(place) && ran.stderr.contains(says), "{place} {says}: {}", ran.stderr);
    }
    std::fs::write(cluster.folder().join("bytes.toml"), b"schema = \"holdfast/v1\"\n\xff\xfe").expect("a file");
    let ran = cli.run(&["check", cluster.folder().join("bytes.toml").to_str().expect("plain text")]).await;
    ran.expect(2);
    assert!(ran.stderr.contains("UTF-8"), "{}", ran.stderr);
    assert_eq!(operator.target(TARGET).await.waiting.len(), 0);
    no_panic(&cluster);
}

#[track_caller]
fn assert_no_escapes(text: &str) {
    let bad: Vec<char> =
        text.chars().filter(|c| (c.is_control() && *c != '\n' && *c != '\t') || *c == '\u{202e}').collect();
    assert!(bad.is_empty(), "{bad:?} in {text:?}");
}

/// T30: what commands print and what agents say is shown, and does nothing to a terminal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_escape_of_a_command_or_an_agent_reaches_a_terminal() {
    let cluster = Plan::new(PROGRAM).agents(&["web-01"]).start().await;
    let (operator, cli) = (cluster.operator(), cluster.cli());
    operator.apply_target(&command_target(TARGET, false)).await;
    let evil = r"\033]0;owned\007\033[31mred\033[0m\033[2J\rfake\302\233\342\200\256txet\n";
    let argv = ["printf", evil].map(str::to_owned);
    let job = DeploymentFile::new(TARGET, LONG).mutates("change", "unsafe", &argv);
    let label = label_of(&operator.submit(job.text()).await);
    operator.until_state(&label, DeploymentState::Succeeded).await;
    wait::until("the output to be there", wait::SOON, async || {
        let text = operator.logs(&label).await;
        if text.ends_with("txet\n") { Ok(()) } else { Err(text) }
    })
    .await;
    let logs = cli.run(&["logs", &label]).await;
    logs.expect(0);
    assert!(logs.stdout.contains("red") && logs.stdout.contains("fake"), "{:?}", logs.stdout);
    assert_no_escapes(&logs.stdout);

    // An agent that says it, in time and late.
    operator.apply_target(&command_target("box@peer", false).replace("role = \"shop\"", "role = \"peer\"")).await;
    let nasty = "\u{1b}[2J\u{1b}]0;owned\u{7}\r\u{202e}evil\nsecond";
    let mut greeting = hello(Uuid::new_v4());
    greeting.labels.insert("role".to_owned(), "peer".to_owned());
    greeting.version = nasty.to_owned();
    let mut peer = match cluster.peer("web-02", greeting.clone()).await {
        Ok(peer) => peer,
        Err(_refused) => {
            greeting.version = "0.1.0".to_owned();
            cluster.peer("web-02", greeting).await.expect("a session")
        }
    };
    let job = DeploymentFile::new("box@peer", SHORT).mutates("change", "unsafe", &argv);
    let label = label_of(&operator.submit(job.text()).await);
    let offer = peer.take_offer().await;
    let _granted = peer.permit(&offer, "change").await;
    operator.until_state(&label, DeploymentState::Uncertain).await;
    let end = StepEnd { kind: StepEndKind::Failed.into(), maybe_partial: true, class: 2 };
    let body =
        StepEnded { step: "change".to_owned(), end: Some(end), detail: nasty.to_owned(), ..StepEnded::default() };
    let late = peer.report(offer.claim.as_ref(), 1, Body::StepEnded(body.clone())).await;
    assert_eq!(late.kind(), DispositionKind::Filed);
    let cancel = CancelDeploymentRequest { deployment: label.clone(), reason: nasty.to_owned() };
    if let Err(status) = operator.client.clone().cancel(cancel).await {
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    }
    let mut shown = String::new();
    for words in [
        &["show", &label][..],
        &["evidence", &label],
        &["events", &label],
        &["logs", &label],
        &["list"],
        &["agents"],
        &["targets"],
        &["target", "show", "box@peer"],
        &["reconcile", "list"],
        &["reconcile", "show", &label],
        &["show", &label, "--json"],
        &["evidence", &label, "--json"],
    ] {
        let ran = cli.run(words).await;
        assert_no_escapes(&ran.stdout);
        assert_no_escapes(&ran.stderr);
        shown.push_str(&ran.stdout);
    }
    assert!(shown.contains("evil"), "the late report's words are shown nowhere: {shown}");
    // A name is no text: this is no revision at all.
    let body = StepEnded { observed_revision: nasty.to_owned(), ..body };
    peer.say(Says::Report(report(offer.claim.as_ref(), 2, Body::StepEnded(body)))).await;
    assert!(peer.over().await.is_ok_and(|code| code.starts_with("HF-500")));
    no_panic(&cluster);
}

/// F39, T40: inputs are arguments and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inputs_made_of_shell_paths_and_options_stay_arguments() {
    let cluster = Plan::new(PROGRAM).agents(&["web-01"]).start().await;
    let operator = cluster.operator();
    operator.apply_target(&command_target(TARGET, false)).await;
    let head = DeploymentFile::new(TARGET, LONG);
    let job = head.mutates("change", "unsafe", &["printf", "%s|", "${inputs.word}", "end"].map(str::to_owned));
    let job = format!("{}\n[inputs]\nword = {{ type = \"string\", required = true }}\n", job.text());
    let long = "x".repeat(4096);
    let words = [
        "$(touch pwned)",
        "`touch pwned`",
        "; touch pwned",
        "| touch pwned",
        "-rf",
        "--help",
        "@/etc/passwd",
        "../../../etc/passwd",
        "/etc/passwd",
        "${inputs.word}",
        "$HOME",
        "%s%n",
        "'\"\\",
        "",
        "a b",
        long.as_str(),
    ];
    for word in words {
        let request = SubmitRequest {
            request_id: Uuid::now_v7().to_string(),
            file: job.clone(),
            inputs: [("word".to_owned(), word.to_owned())].into(),
            ..SubmitRequest::default()
        };
        let label = match operator.client.clone().submit(request).await {
            Ok(answer) => label_of(&answer.into_inner().deployment.expect("a deployment")),
            Err(status) => {
                assert_eq!(status.code(), Code::InvalidArgument, "{word:?}: {status:?}");
                assert!(code_of(&status).starts_with("HF-1"), "{word:?}: {status:?}");
                continue;
            }
        };
        operator.until_state(&label, DeploymentState::Succeeded).await;
        let wanted = format!("{word}|end|");
        wait::until("the output", wait::SOON, async || {
            let text = operator.logs(&label).await;
            if text == wanted { Ok(()) } else { Err(format!("{text:?} and not {wanted:?}")) }
        })
        .await;
    }
    for control in ["a\nb", "a\u{1b}[31mb", "a\0b", "a\rb"] {
        let request = SubmitRequest {
            request_id: Uuid::now_v7().to_string(),
            file: job.clone(),
            inputs: [("word".to_owned(), control.to_owned())].into(),
            ..SubmitRequest::default()
        };
        let refused = operator.client.clone().submit(request).await.expect_err("a control character in an argument");
        assert_eq!(refused.code(), Code::InvalidArgument, "{control:?}: {refused:?}");
    }
    let pwned = walk(cluster.folder().path()).into_iter().find(|path| path.ends_with("pwned"));
    assert_eq!(pwned, None);
    no_panic(&cluster);
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path()),
            Ok(_) | Err(_) => vec![entry.path()],
        })
        .collect()
}

/// An archive with one entry as no honest tool writes it, after an honest one.
fn hostile_archive(folder: &Folder, name: &str, kind: tar::EntryType, link: &str, content: &[u8]) -> Archive {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut good = tar::Header::new_gnu();
    good.set_size(2);
    good.set_mode(0o644);
    builder.append_data(&mut good, "index.html", &b"ok"[..]).expect("memory can be written");
    let mut header = tar::Header::new_gnu();
    header.as_gnu_mut().expect("just made").name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_gnu_mut().expect("just made").linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(0o4755);
    header.set_cksum();
    builder.append(&header, content).expect("memory can be written");
    let bytes = builder.into_inner().and_then(GzEncoder::finish).expect("memory can be written");
    let path = folder.join(&format!("hostile-{:016x}.tar.gz", rand::random::<u64>()));
    std::fs::write(&path, &bytes).expect("a test's own folder can be written");
    Archive { path, sha256: hex(&Sha256::digest(&bytes)) }
}

/// F40, T37 to T39: refused before anything is changed, with the entry named.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_archive_changes_nothing_and_its_entry_is_named() {
    use tar::EntryType as E;
    let cluster = Plan::new(PROGRAM).agents(&["web-01"]).start().await;
    let operator = cluster.operator();
    let root = cluster.folder().join("shop");
    std::fs::create_dir(&root).expect("a new folder");
    operator.apply_target(&release_target(TARGET, &root, "host")).await;
    let deploy = async |archive: &Archive, revision: &str| {
        let job = DeploymentFile::new(TARGET, LONG).release("switch", archive, revision);
        let label = label_of(&operator.submit(job.text()).await);
        operator.until_ended(&label).await
    };
    let good = site::archive(cluster.folder(), "v1");
    let first = deploy(&good, "v1").await;
    assert_eq!(state_of(&first), DeploymentState::Succeeded, "{first:#?}");
    let folder = cluster.folder();
    let outside = folder.join("evil");
    let outside = outside.to_str().expect("plain text");
    let bomb = vec![0; 300 * 1024 * 1024];
    let cases = [
        ("../../../evil", hostile_archive(folder, "../../../evil", E::Regular, "", b"evil")),
        (outside, hostile_archive(folder, outside, E::Regular, "", b"evil")),
        ("out", hostile_archive(folder, "out", E::Symlink, "../../../..", b"")),
        ("hard", hostile_archive(folder, "hard", E::Link, "/etc/passwd", b"")),
        ("device", hostile_archive(folder, "device", E::Char, "", b"")),
        ("pipe", hostile_archive(folder, "pipe", E::Fifo, "", b"")),
        ("index.html", hostile_archive(folder, "index.html", E::Regular, "", b"twice")),
        ("bomb", hostile_archive(folder, "bomb", E::Regular, "", &bomb)),
        ("SHA-256", Archive { sha256: "0".repeat(64), ..good.clone() }),
    ];
    for (number, (names, archive)) in cases.iter().enumerate() {
        let ended = deploy(archive, &format!("evil{number}")).await;
        assert_eq!(state_of(&ended), DeploymentState::Failed, "{names}: {ended:#?}");
        let details: Vec<&str> =
            ended.attempts.iter().flat_map(|attempt| &attempt.steps).map(|step| step.detail.as_str()).collect();
        assert!(details.iter().any(|detail| detail.contains(names)), "{names} is not named: {details:?}");
        let permitted =
            ended.attempts.iter().flat_map(|attempt| &attempt.steps).any(|step| step.permitted_at.is_some());
        assert!(!permitted, "{names} was refused after its permit");
        assert!(ended.never_mutated, "{names}: {ended:#?}");
        let index = std::fs::read_to_string(root.join("current/index.html")).expect("the site is there");
        assert_eq!(index, site::index("v1"), "{names} changed the site");
    }
    let strays: Vec<_> = walk(folder.path()).into_iter().filter(|path| path.ends_with("evil")).collect();
    assert!(strays.is_empty(), "{strays:?}");
    let again = deploy(&site::archive(folder, "v2"), "v2").await;
    assert_eq!(state_of(&again), DeploymentState::Succeeded, "nothing of it is left in the way: {again:#?}");
    no_panic(&cluster);
}
