//! What the program does without a coordinator: help, files, explanations, and clear refusals when there is none.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// An empty home, gone with the value.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("holdfast-offline-{:016x}", rand::random::<u64>()));
        fs::create_dir(&path).expect("a new folder");
        Self(path)
    }

    fn command(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command.env_clear().env("HOME", &self.0).envs(variables.iter().copied()).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> (Option<i32>, String, String) {
        told(self.command(arguments, variables).output().expect("the program can be started"))
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).expect("our folder");
        path.to_str().expect("text").to_owned()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn told(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn help_version_and_explanations_never_touch_the_network() {
    let home = Home::new();
    // Whoever would connect is seen by it.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("our socket");
    let address = listener.local_addr().expect("bound").to_string();
    let token = "hf_never-printed";
    let variables = [("HOLDFAST_ADDRESS", address.as_str()), ("HOLDFAST_TOKEN", token), ("HOLDFAST_CA", "/nowhere")];
    for line in [
        &["--help"][..],
        &["deploy", "--help"],
        &["reconcile", "decide", "--help"],
        &["--version"],
        &["version"],
        &["explain"],
        &["explain", "uncertain"],
        &["explain", "HF-2031", "--json"],
    ] {
        let (code, out, err) = home.run(line, &variables);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{line:?}");
        assert!(!out.is_empty() && !out.contains(token) && !out.contains('\u{1b}'), "{line:?}: {out}");
    }
    assert_eq!(listener.accept().map(|_| ()).map_err(|error| error.kind()), Err(std::io::ErrorKind::WouldBlock));
}

#[test]
fn a_file_is_checked_with_all_its_faults_at_once() {
    let home = Home::new();
    let broken = home.file("broken.toml", "schema = \"holdfast/v1\"\ntargt = \"shop@prod\"\nqueu = \"fifo\"\n");
    let (code, out, err) = home.run(&["check", &broken], &[]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.contains("broken.toml:2:1") && err.contains("broken.toml:3:1"), "{err}");
    assert!(err.contains("did you mean \"target\"?"), "{err}");
    let (code, out, err) = home.run(&["check", &broken, "--json"], &[]);
    assert_eq!((code, out.as_str()), (Some(2), ""));
    for line in err.lines() {
        let problem: serde_json::Value = serde_json::from_str(line).expect("one object per line");
        assert!(problem["code"].as_str().is_some_and(|code| code.starts_with("HF-1")), "{line}");
    }
    let (code, _, err) = home.run(&["check", "/nowhere/a.toml"], &[]);
    assert_eq!(code, Some(2));
    assert!(err.contains("could not read /nowhere/a.toml"), "{err}");
}

#[test]
fn a_destructive_migration_is_refused_by_its_code_and_its_siblings_are_taken() {
    let home = Home::new();
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let example = |name: &str| examples.join(name).to_str().expect("text").to_owned();
    let (code, out, err) = home.run(&["check", &example("refused/destructive-migration.toml")], &[]);
    assert_eq!((code, out.as_str()), (Some(16), ""), "{err}");
    for told in [
        "error[HF-1602]: the step \"migrate\" destroys data of \"db\"",
        "starting the previous image does not bring the data back",
        "data_recovery = \"restore:",
        "holdfast explain HF-1602",
    ] {
        assert!(err.contains(told), "{told} is missing in\n{err}");
    }
    for name in ["orders-expand.deploy.toml", "orders-contract.deploy.toml", "orders-restore.deploy.toml"] {
        let (code, out, err) = home.run(&["check", &example(name)], &[]);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{name}");
        assert!(
            out.ends_with("a valid deployment file of orders@prod; its target and agents were not looked at\n"),
            "{out}"
        );
    }
}

#[test]
fn a_file_can_come_from_a_pipe() {
    let home = Home::new();
    let mut command = home.command(&["check", "-"], &[]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the program can be started");
    let file = include_str!("../../examples/shop.deploy.toml");
    child.stdin.take().expect("piped").write_all(file.as_bytes()).expect("it reads");
    let (code, out, err) = told(child.wait_with_output().expect("it ends"));
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (Some(0), "-: a valid deployment file of shop@prod; its target and agents were not looked at\n", "")
    );
}

#[test]
fn without_a_coordinator_each_command_says_what_to_do() {
    let home = Home::new();
    for line in [&["list"][..], &["targets"], &["show", "shop@prod#1"], &["cancel", "shop@prod#1", "--reason", "x"]] {
        let (code, out, err) = home.run(line, &[]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{line:?}");
        assert!(
            err.starts_with("error[HF-6003]: no coordinator is chosen\n") && err.contains("HOLDFAST_ADDRESS"),
            "{err}"
        );
    }
}

#[test]
fn a_coordinator_that_is_not_there_is_no_answer_and_nothing_was_sent() {
    let home = Home::new();
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").to_string();
    let authority = holdfast::ca::Authority::create(&home.0.join("tls")).expect("a CA");
    let ca = authority.certificate().to_str().expect("text").to_owned();
    let variables = [("HOLDFAST_ADDRESS", port.as_str()), ("HOLDFAST_TOKEN", "hf_x"), ("HOLDFAST_CA", ca.as_str())];
    let (code, out, err) = home.run(&["list"], &variables);
    assert_eq!((code, out.as_str()), (Some(5), ""), "{err}");
    assert!(err.contains("nothing was sent"), "{err}");
    let file = home.file("a.toml", include_str!("../../examples/shop.deploy.toml"));
    let (code, _, err) = home.run(&["deploy", &file, "--json"], &variables);
    assert_eq!(code, Some(5), "{err}");
    let problem: serde_json::Value = serde_json::from_str(err.trim()).expect("one object");
    assert_eq!(problem["code"], "HF-5001");
}

#[test]
fn a_wrong_line_is_told_on_stderr_and_exits_with_2() {
    let home = Home::new();
    for line in [&["frobnicate"][..], &["wait", "x", "--for", "ever"], &[]] {
        let (code, out, err) = home.run(line, &[]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{line:?}");
        assert!(err.contains("--help") || err.contains("Usage"), "{line:?}: {err}");
    }
}

#[test]
fn a_reason_that_is_missing_is_one_refusal_everywhere_and_nobody_is_called_for_it() {
    let home = Home::new();
    let fingerprint = "0".repeat(64);
    let mut told = std::collections::BTreeSet::new();
    for line in [
        &["cancel", "shop@prod#1"][..],
        &["target", "hold", "shop@prod"],
        &["agent", "drain", "web-01"],
        &["agent", "remove", "web-01", "--confirm", "web-01"],
        &["agent", "unlock", "web-01", "--confirm", "web-01"],
        &["agent", "revoke", "--fingerprint", &fingerprint, "--confirm", "web-01"],
    ] {
        let (code, out, err) = home.run(line, &[]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{line:?}: {err}");
        told.insert(err);
    }
    let told: Vec<String> = told.into_iter().collect();
    assert!(told.len() == 1 && told[0].starts_with("error[HF-3007]"), "{told:#?}");
}

#[test]
fn what_the_environment_overrides_is_not_shown_as_what_would_be_used() {
    let home = Home::new();
    std::fs::create_dir_all(home.0.join(".config/holdfast")).expect("our folder");
    home.file(
        ".config/holdfast/config.toml",
        "current = \"prod\"\n[context.prod]\naddress = \"prod:1\"\nca = \"prod.pem\"\ntoken = \"hf_prod\"\n",
    );
    let (code, out, err) = home.run(&["context", "show"], &[]);
    assert_eq!((code, err.lines().count()), (Some(0), 0), "{err}");
    assert!(out.starts_with("prod\n") && out.contains("prod:1, said by the context prod"), "{out}");
    let (_, out, err) = home.run(&["context", "list"], &[]);
    assert!(out.contains("*  prod") && err.is_empty(), "{out}{err}");

    let variables = [("HOLDFAST_ADDRESS", "other:1"), ("HOLDFAST_CA", "/ca.pem"), ("HOLDFAST_TOKEN", "hf_other")];
    let (code, out, err) = home.run(&["context", "show"], &variables);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("other:1, said by HOLDFAST_ADDRESS") && !out.contains("prod"), "{out}");
    assert!(out.contains("said by HOLDFAST_TOKEN") && !out.contains("hf_"), "{out}");
    let (_, out, err) = home.run(&["context", "list"], &variables);
    assert!(!out.contains('*') && err.contains("HOLDFAST_ADDRESS, HOLDFAST_CA, HOLDFAST_TOKEN"), "{out}{err}");
}

#[test]
fn what_is_no_audit_file_is_not_called_a_changed_one() {
    let home = Home::new();
    let other = home.file("notes.txt", "one\ntwo\n");
    let missing = home.0.join("nosuch").to_str().expect("text").to_owned();
    for (file, told) in [(&other, "notes.txt is no exported audit file"), (&missing, "could not read")] {
        let (code, out, err) = home.run(&["audit", "verify", file], &[]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        assert!(err.starts_with("error[HF-1001]: ") && err.contains(told), "{err}");
    }
}

#[test]
fn no_refusal_of_a_check_sends_back_to_the_check() {
    let home = Home::new();
    let big = home.file("big.toml", &"#".repeat(holdfast_common::file::MAX_FILE + 1));
    let (code, _, err) = home.run(&["check", &big], &[]);
    assert_eq!(code, Some(2), "{err}");
    assert!(!err.contains("holdfast check"), "{err}");
}

#[test]
fn a_plan_of_a_glob_is_told_as_such() {
    let home = Home::new();
    let (code, _, err) = home.run(&["plan", "a.toml", "--target", "shop@*"], &[]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("a plan is of one target") && err.contains("holdfast targets"), "{err}");
}
