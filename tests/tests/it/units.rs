//! The units, as systemd itself reads them. `./test` installs its package where it is missing.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use holdfast_tests::folder::Folder;

use crate::PROGRAM;

const UNITS: [&str; 2] = ["holdfast-coordinator.service", "holdfast-agent.service"];

fn unit(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/systemd").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The unit with a program that is there.
fn installed(folder: &Folder, name: &str) -> PathBuf {
    let text = unit(name);
    let line = text.lines().find(|line| line.starts_with("ExecStart=")).expect("it starts something");
    let (program, rest) = line.split_once(' ').expect("with arguments");
    assert!(program.starts_with("ExecStart=/usr/bin/holdfast-"), "{line}");
    folder.write(name, &text.replace(line, &format!("ExecStart={PROGRAM} {rest}")))
}

fn analyze(words: &[&str], unit: &Path) -> Output {
    let run = Command::new("systemd-analyze").args(words).arg(unit).env("SYSTEMD_PAGER", "cat").output();
    run.expect("systemd-analyze is there: ./test installs it")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn has(text: &str, line: &str) -> bool {
    text.lines().any(|found| found == line)
}

#[test]
fn systemd_verifies_both_units() {
    let folder = Folder::new();
    for name in UNITS {
        let output = analyze(&["verify", "--man=no"], &installed(&folder, name));
        let told = said(&output);
        let ours: Vec<&str> = told.lines().filter(|line| line.contains("holdfast")).collect();
        assert!(output.status.success() && ours.is_empty(), "{name}: {told}");
    }
    let broken = folder.write("broken.service", "[Service]\nType=notify\nExecStart=/nowhere/holdfast\n");
    assert!(!analyze(&["verify", "--man=no"], &broken).status.success(), "a broken unit is seen");
}

#[test]
fn the_coordinators_unit_is_hardened_and_the_agents_keeps_what_deployments_need() {
    let folder = Folder::new();
    let within = |name: &str, tenths: &str| {
        let words = ["security", "--offline=true", "--no-pager", "--threshold", tenths];
        let output = analyze(&words, &installed(&folder, name));
        (output.status.success(), said(&output))
    };
    let (hardened, told) = within(UNITS[0], "15");
    assert!(hardened, "above 1.5:\n{told}");
    let (narrow, told) = within(UNITS[1], "85");
    assert!(narrow, "above 8.5:\n{told}");
    assert!(!within(UNITS[1], "15").0, "a threshold that is missed is seen");
    let agent = unit(UNITS[1]);
    for kept in
        ["NoNewPrivileges=", "CapabilityBoundingSet=", "ProtectSystem=", "PrivateTmp=", "User=", "SystemCallFilter="]
    {
        assert!(!agent.lines().any(|line| line.starts_with(kept)), "commands inherit {kept}");
        assert!(
            agent.lines().any(|line| line.starts_with('#') && line.contains(kept)),
            "{kept} is left out without a word"
        );
    }
}

#[test]
fn both_units_speak_the_protocols_and_the_agents_spares_the_shims() {
    for name in UNITS {
        let text = unit(name);
        for line in ["Type=notify", "NotifyAccess=main", "WatchdogSec=60", "Restart=always", "LimitNOFILE=65536"] {
            assert!(has(&text, line), "{name}: {line}");
        }
        for line in ["RuntimeDirectoryMode=0700", "StartLimitIntervalSec=0"] {
            assert!(has(&text, line), "{name}: {line}");
        }
        assert!(text.lines().any(|line| line.starts_with("#LoadCredential=")), "{name}");
    }
    let agent = unit(UNITS[1]);
    assert!(has(&unit(UNITS[0]), "StateDirectoryMode=0700"));
    // 0700 at each start would shut commands of another user out of their work folder.
    assert!(has(&agent, "StateDirectoryMode=0711"));
    assert!(has(&agent, "KillMode=process"));
    // Longer than the longest wait that is configured by itself.
    assert!(has(&agent, "TimeoutStopSec=11min"));
    // A missed watchdog does not take as long.
    assert!(has(&agent, "TimeoutAbortSec=30"));
    let longest = holdfast_agent::config::Stop::default().finish_within.0;
    assert!(longest < holdfast_common::time::Millis::from_secs(11 * 60), "{longest}");
    assert!(!unit(UNITS[0]).contains("KillMode="));
}
