//! The packages, installed into a small Debian: what is where, whose it is, what an upgrade restarts, what a purge leaves.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdfast_tests::debian::{self, Debian};
use holdfast_tests::folder::Folder;
use holdfast_tests::process::Process;
use holdfast_tests::wait;

use crate::PROGRAM;

const PROGRAMS: [&str; 3] = ["holdfast-coordinator", "holdfast-agent", "holdfast"];
const COORDINATOR: &str = "/etc/holdfast/coordinator.toml";
const AGENT: &str = "/etc/holdfast/agent.toml";
const NEWER: &str = "999.0.0";

/// Whether packages can be installed here; says that they can't.
#[expect(clippy::print_stderr, reason = "a test that is skipped must say so")]
fn can_install() -> bool {
    let can = debian::can_be_made();
    if !can {
        eprintln!("skipped: 1 test needs root");
    }
    can
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The packages of the programs under test, in its folder `packages`.
fn packed(debian: &Debian, version: &str) {
    let out = debian.at("/packages");
    let programs = Folder::new();
    for name in PROGRAMS {
        fs::copy(PROGRAM, programs.join(name)).expect("the program under test");
    }
    let mut build = Command::new(project().join("packaging/deb/build"));
    build.args(["--profile", "dev", "--version", version, "--binaries"]).arg(programs.path()).arg(out);
    debian::done(&mut build);
}

fn package(name: &str, version: &str) -> String {
    let output = Command::new("dpkg").arg("--print-architecture").output().expect("this is a Debian");
    format!("/packages/{name}_{version}_{}.deb", String::from_utf8_lossy(&output.stdout).trim())
}

/// Installs all three. Answers what was said.
fn install(debian: &Debian, version: &str) -> String {
    let files = PROGRAMS.map(|name| package(name, version));
    let words: Vec<&str> = ["dpkg", "--install"].into_iter().chain(files.iter().map(String::as_str)).collect();
    let said = debian.run(&words);
    assert!(said.done, "{}", said.all());
    said.all()
}

fn debian() -> Debian {
    Debian::new(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("debian"))
}

/// Owner, group, mode.
fn standing(debian: &Debian, path: &str) -> String {
    debian.expect(&["stat", "--format=%U:%G %a", path]).trim().to_owned()
}

/// A service manager that does nothing and writes down what it is asked. What `active` names is active.
fn manager(debian: &Debian, active: &str) {
    fs::create_dir_all(debian.at("/run/systemd/system")).expect("its root can be written");
    let case = format!("case \"$*\" in\n*is-active*{active}*) exit 0 ;;\n*is-active*) exit 3 ;;\nesac\n");
    debian.script("/usr/bin/systemctl", &format!("#!/bin/sh\n{case}echo \"$@\" >> /asked\n"));
    let _none = fs::remove_file(debian.at("/asked"));
}

fn asked(debian: &Debian) -> String {
    fs::read_to_string(debian.at("/asked")).unwrap_or_default()
}

/// Whatever was asked but to read the units again and how things stand.
fn acted(debian: &Debian) -> Vec<String> {
    let ours =
        |line: &&str| ["start", "stop", "restart", "enable"].iter().any(|word| line.split(' ').any(|w| w == *word));
    asked(debian).lines().filter(ours).map(str::to_owned).collect()
}

#[test]
fn packages_install_upgrade_remove_purge_and_install_again() {
    if !can_install() {
        return;
    }
    let debian = debian();
    packed(&debian, version());
    packed(&debian, NEWER);
    let said = install(&debian, version());
    assert!(said.contains("installed and not started"), "{said}");
    everything_is_in_its_place(&debian);

    // What people and services have written stays.
    for path in [COORDINATOR, AGENT] {
        let text = fs::read_to_string(debian.at(path)).expect("installed");
        fs::write(debian.at(path), format!("{text}# ours\n")).expect("written");
    }
    debian.expect(&["runuser", "-u", "holdfast", "--", "touch", "/var/lib/holdfast/kept"]);
    fs::write(debian.at("/var/lib/holdfast-agent/journal.sqlite"), "kept").expect("written");

    // An upgrade restarts what ran and nothing else, and only where the host lets it.
    debian.starts(true);
    manager(&debian, "holdfast-agent");
    install(&debian, NEWER);
    let restarted = acted(&debian);
    assert!(matches!(restarted.as_slice(), [one] if one.contains("restart holdfast-agent.service")), "{restarted:?}");
    assert!(asked(&debian).contains("daemon-reload"));
    debian.starts(false);
    manager(&debian, "holdfast");
    install(&debian, NEWER);
    assert_eq!(acted(&debian), [""; 0], "policy-rc.d forbids it");
    for path in [COORDINATOR, AGENT] {
        assert!(fs::read_to_string(debian.at(path)).expect("still there").ends_with("# ours\n"), "{path}");
    }
    assert!(
        debian.at("/var/lib/holdfast/kept").exists() && debian.at("/var/lib/holdfast-agent/journal.sqlite").exists()
    );

    // A removal stops both, and leaves configuration and state.
    debian.starts(true);
    manager(&debian, "holdfast");
    let names: Vec<&str> = ["dpkg", "--remove"].into_iter().chain(PROGRAMS).collect();
    let said = debian.run(&names);
    assert!(said.done && said.all().contains("has what nobody else knows yet"), "{}", said.all());
    let stopped = acted(&debian);
    for unit in ["stop holdfast-agent.service", "stop holdfast-coordinator.service"] {
        assert!(stopped.iter().any(|line| line.contains(unit)), "{unit}: {stopped:?}");
    }
    assert!(stopped.iter().all(|line| line.contains("stop")), "{stopped:?}");
    assert!(debian.at(COORDINATOR).exists() && debian.at("/var/lib/holdfast/kept").exists());
    assert!(!debian.at("/usr/bin/holdfast-agent").exists());

    // A purge takes the configuration, and says what it keeps.
    let names: Vec<&str> = ["dpkg", "--purge"].into_iter().chain(PROGRAMS).collect();
    let said = debian.expect(&names);
    assert!(said.contains("/var/lib/holdfast is kept") && said.contains("/var/lib/holdfast-agent is kept"), "{said}");
    assert!(!debian.at("/etc/holdfast").exists());
    assert!(
        debian.at("/var/lib/holdfast/kept").exists() && debian.at("/var/lib/holdfast-agent/journal.sqlite").exists()
    );
    fs::remove_file(debian.at("/var/lib/holdfast/kept")).expect("ours");
    fs::remove_file(debian.at("/var/lib/holdfast-agent/journal.sqlite")).expect("ours");

    install(&debian, version());
    everything_is_in_its_place(&debian);
    debian.expect(&names);
    assert!(
        !debian.at("/var/lib/holdfast").exists() && !debian.at("/var/lib/holdfast-agent").exists(),
        "both were empty"
    );
    let mounts = fs::read_to_string("/proc/self/mounts").expect("there");
    assert!(!mounts.contains(&*debian.root().to_string_lossy()), "{mounts}");
}

fn everything_is_in_its_place(debian: &Debian) {
    for (path, expected) in [
        ("/usr/bin/holdfast", "root:root 755"),
        ("/usr/bin/holdfast-agent", "root:root 755"),
        ("/usr/bin/holdfast-coordinator", "root:root 755"),
        ("/usr/lib/systemd/system/holdfast-agent.service", "root:root 644"),
        ("/usr/lib/systemd/system/holdfast-coordinator.service", "root:root 644"),
        ("/etc/holdfast", "root:root 755"),
        (AGENT, "root:root 644"),
        (COORDINATOR, "root:root 644"),
        ("/var/lib/holdfast", "holdfast:holdfast 700"),
        ("/var/lib/holdfast-agent", "root:root 711"),
        ("/usr/share/man/man1/holdfast.1.gz", "root:root 644"),
        ("/usr/share/bash-completion/completions/holdfast", "root:root 644"),
        ("/usr/share/zsh/vendor-completions/_holdfast", "root:root 644"),
        ("/usr/share/fish/vendor_completions.d/holdfast.fish", "root:root 644"),
        ("/usr/share/doc/holdfast-agent/install.md", "root:root 644"),
        ("/usr/share/doc/holdfast-coordinator/runbooks.md", "root:root 644"),
        ("/usr/share/doc/holdfast/examples/shop.deploy.toml", "root:root 644"),
    ] {
        assert_eq!(standing(debian, path), expected, "{path}");
    }
    let user = debian.expect(&["getent", "passwd", "holdfast"]);
    assert!(user.trim().ends_with(":/var/lib/holdfast:/usr/sbin/nologin"), "{user}");
    let on = debian.run(&["sh", "-c", "ls -R /etc/systemd"]).out;
    assert!(!on.contains("holdfast"), "nothing is switched on: {on}");
    for (program, words) in
        [("holdfast-agent", "--version"), ("holdfast-coordinator", "version"), ("holdfast", "version")]
    {
        assert!(debian.expect(&[program, words]).contains(version()), "{program}");
        let needs = debian.expect(&["dpkg-query", "--show", "--showformat=${Depends}", program]);
        assert!(needs.contains("libc6 (>= 2.") && needs.contains("libgcc-s1"), "{program}: {needs}");
    }
    // What systemd's own package would bring.
    debian::done(
        Command::new("sh")
            .args(["-c", "cp -n /usr/lib/systemd/system/*.target \"$0\""])
            .arg(debian.at("/usr/lib/systemd/system")),
    );
    for unit in ["holdfast-agent.service", "holdfast-coordinator.service"] {
        let root = format!("--root={}", debian.root().display());
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", "--man=no", &root, &format!("/usr/lib/systemd/system/{unit}")]);
        let output = verify.output().expect("systemd-analyze is there: ./test installs it");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let ours: Vec<&str> = said.lines().filter(|line| line.contains("holdfast")).collect();
        assert!(ours.is_empty(), "{unit}: {said}");
    }
}

/// The installed coordinator, as its own user, with an authority of its own.
async fn coordinator(debian: &mut Debian) -> Process {
    let own = |words: &[&str]| {
        let all = ["runuser", "-u", "holdfast", "--", "holdfast-coordinator"];
        debian
            .expect(&all.into_iter().chain(words.iter().copied()).chain(["--config", COORDINATOR]).collect::<Vec<_>>())
    };
    let root = debian.run(&["holdfast-coordinator", "ca", "create", "--config", COORDINATOR]);
    assert!(!root.done && root.err.contains("runuser -u holdfast -- holdfast-coordinator"), "{}", root.all());
    assert!(!debian.at("/var/lib/holdfast/ca").exists(), "as root it would be out of the service's reach");
    own(&["ca", "create"]);
    own(&["ca", "server", "--host", "localhost"]);
    assert!(own(&["check-config"]).contains("can be used"), "as it was shipped");
    let token = own(&["token", "create", "--name", "anna", "--role", "admin"]);
    let keys = ["listen_address=127.0.0.1:0", "listen_address_file=/var/lib/holdfast/address", "ops_address=off"];
    let keys = keys.map(|key| {
        let (name, value) = key.split_once('=').expect("a key");
        format!("HOLDFAST_{}={value}", name.to_uppercase())
    });
    let serve = ["holdfast-coordinator", "serve", "--config", COORDINATOR];
    let mut words: Vec<&str> = vec!["-u", "holdfast", "--", "env"];
    words.extend(keys.iter().map(String::as_str));
    words.extend(serve);
    let process = debian.start("coordinator", "runuser", &words);
    let file = debian.at("/var/lib/holdfast/address");
    wait::until_true("the coordinator to listen", wait::SOON, || file.exists()).await;
    let address = fs::read_to_string(file).expect("just seen");
    let port = address.trim().rsplit(':').next().expect("a port").to_owned();
    debian.set("ADDRESS", &format!("localhost:{port}"));
    fs::write(debian.at("/root/token"), token).expect("written");
    let login = "holdfast login $ADDRESS --context here --ca /var/lib/holdfast/ca/ca.pem < /root/token";
    debian.expect(&["sh", "-c", login]);
    process
}

/// A host that joins and runs, with the configuration that was shipped, but for the address and what it allows.
async fn joined(debian: &Debian, name: &str) -> Process {
    let script = format!(
        "set -e
        pin=$(holdfast-coordinator ca show --config {COORDINATOR} | sed -n 's/^pin   \\(sha256:[0-9a-f]*\\) .*/\\1/p')
        holdfast agent token create --name {name} --label role=box |
            holdfast-agent join --coordinator \"$ADDRESS\" --ca-pin \"$pin\" --name {name} --token-file -
        sed -i -e \"s|https://holdfast.example.com:7443|https://$ADDRESS|\" -e 's|^adapters = .*|adapters = [\"command\"]|' {AGENT}
        holdfast-agent check-config --config {AGENT}"
    );
    let said = debian.expect(&["sh", "-c", &script]);
    assert!(said.contains("holdfast.example.com:7443: put address"), "{said}");
    assert!(said.contains("the configuration is valid") && !said.contains("written"), "{said}");
    let identity = standing(debian, "/etc/holdfast/identity");
    assert_eq!(identity, "root:root 700");
    let process = debian.start(name, "env", &["HOLDFAST_OPS_ADDRESS=off", "holdfast-agent", "run", "--config", AGENT]);
    wait::until(&format!("contact with {name}"), wait::SOON, async || {
        let said = debian.run(&["holdfast", "agents", "-o", "jsonl"]).all();
        if said.contains(name) && said.contains("CONTACT_CONNECTED") { Ok(()) } else { Err(said) }
    })
    .await;
    process
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_takes_the_state_of_an_agent_that_has_told_all_and_of_no_other() {
    if !can_install() {
        return;
    }
    let mut debian = debian();
    packed(&debian, version());
    install(&debian, version());
    let _coordinator = coordinator(&mut debian).await;

    // It has told everything: removed and installed again it is the same, purged it is gone.
    let mut agent = joined(&debian, "web-01").await;
    agent.terminate();
    assert!(agent.ended(wait::SOON).await.success());
    debian.expect(&["dpkg", "--remove", "holdfast-agent"]);
    assert!(debian.at("/var/lib/holdfast-agent/settled").exists());
    debian.expect(&["dpkg", "--install", &package("holdfast-agent", version())]);
    assert!(!debian.at("/var/lib/holdfast-agent/settled").exists());
    debian.expect(&["holdfast-agent", "check-config", "--config", AGENT]);
    let said = debian.expect(&["dpkg", "--purge", "holdfast-agent"]);
    assert!(!said.contains("is kept"), "{said}");
    for path in ["/var/lib/holdfast-agent", "/etc/holdfast/identity", AGENT] {
        assert!(!debian.at(path).exists(), "{path}");
    }

    // Another one has begun something.
    debian.expect(&["dpkg", "--install", &package("holdfast-agent", version())]);
    let mut agent = joined(&debian, "web-02").await;
    let target = "schema = \"holdfast/v1\"\nname = \"box@test\"\nagents = { role = \"box\" }\n\n\
                  [[resource]]\nname = \"box\"\nadapter = \"command\"\nreach = \"host\"\n";
    let file = "schema = \"holdfast/v1\"\ntarget = \"box@test\"\n\n[[step]]\nname = \"change\"\n\
                run = [\"/bin/sh\", \"-c\", \": > /begun; exec sleep 600\"]\n";
    fs::write(debian.at("/box.target.toml"), target).expect("written");
    fs::write(debian.at("/box.deploy.toml"), file).expect("written");
    debian.expect(&["holdfast", "target", "apply", "/box.target.toml"]);
    debian.expect(&["holdfast", "deploy", "/box.deploy.toml", "--detach"]);
    let begun = debian.at("/begun");
    wait::until_true("the step to begin", wait::SOON, || begun.exists()).await;
    agent.kill();
    let removed = debian.run(&["dpkg", "--remove", "holdfast-agent"]);
    assert!(removed.done && removed.err.contains("attempt "), "{}", removed.all());
    let said = debian.expect(&["dpkg", "--purge", "holdfast-agent"]);
    assert!(said.contains("/var/lib/holdfast-agent is kept, and /etc/holdfast/identity"), "{said}");
    assert!(debian.at("/etc/holdfast/identity/current/agent.key").exists());
    let journal = fs::metadata(debian.at("/var/lib/holdfast-agent/journal.sqlite")).expect("kept");
    assert_eq!((journal.uid(), journal.mode() & 0o7777), (0, 0o600));
    debian.expect(&["dpkg", "--install", &package("holdfast-agent", version())]);
    let said = debian.expect(&["holdfast-agent", "status", "--config", AGENT]);
    assert!(said.contains("attempt "), "the next agent finds it: {said}");
}
