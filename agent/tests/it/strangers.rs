//! Recorded ids of processes that came to mean others: in a pid namespace, where the next id can be chosen, and after another boot.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use holdfast_agent::supervisor::{Known, Sight, Supervisor};
use rustix::process::{Signal, kill_process};

use crate::host::Host;
use crate::support::{AGENT, eventually};

/// Says to a test that it runs inside.
const INSIDE: &str = "HOLDFAST_TEST_INSIDE";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Runs this very test again in namespaces of its own, or says that it is there.
fn is_inside(test: &str, unshare: &[&str]) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let output = Command::new("unshare")
        .args(unshare)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(INSIDE, "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    false
}

/// A process with this id, and a session of its own.
fn with_id(pid: i32) -> Child {
    eventually("the id is given", || {
        fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).unwrap();
        let mut child = Command::new("setsid").args(["sleep", "1000"]).spawn().unwrap();
        if i32::try_from(child.id()).unwrap() == pid {
            return Some(child);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        None
    })
}

#[test]
fn an_id_that_wrapped_round_to_a_stranger_is_never_signalled() {
    let test = "strangers::an_id_that_wrapped_round_to_a_stranger_is_never_signalled";
    if !is_inside(test, &["--pid", "--fork", "--mount-proc"]) {
        return;
    }
    let host = Host::new();
    let step = host.step(1);
    host.supervisor.start(&step, &host.shell("echo $$ > body; exec sleep 1000")).unwrap();
    let (shim, body) = (host.shim_of(&step), host.process("body"));
    kill_process(shim, Signal::KILL).unwrap();
    assert!(body.is_alive());
    let pid = body.0;
    drop(body);
    // Both ids are free once they are reaped: the shim by its agent, the body by the first process of the namespace, which is
    // this one.
    eventually("both are gone", || {
        let _ = host.supervisor.survey(&step).unwrap();
        let _ = rustix::process::waitpid(rustix::process::Pid::from_raw(pid), rustix::process::WaitOptions::NOHANG);
        let gone = |pid: i32| !Path::new(&format!("/proc/{pid}")).exists();
        (gone(shim.as_raw_pid()) && gone(pid)).then_some(())
    });
    for id in [shim.as_raw_pid(), pid] {
        let mut stranger = with_id(id);
        let known = host.supervisor.wait(&step, Duration::ZERO).unwrap();
        assert_eq!(known, Known::Gone { survivors: Vec::new(), sight: Sight::Session }, "gone, exit unknown");
        host.supervisor.request_stop(&step, holdfast_common::time::Millis(0)).unwrap();
        for kill in [false, true] {
            assert_eq!(host.supervisor.signal_survivors(&step, kill).unwrap(), 0);
        }
        assert!(stranger.try_wait().unwrap().is_none(), "the stranger was hit");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}

#[test]
fn another_boot_proves_processes_gone_on_the_same_machine_only() {
    let test = "strangers::another_boot_proves_processes_gone_on_the_same_machine_only";
    if !is_inside(test, &["--mount"]) {
        return;
    }
    for (recorded, here, sight) in [
        ("one", "one", Sight::Booted),
        ("one", "other", Sight::Nothing),
        // A machine that can't be told may be any.
        ("", "", Sight::Nothing),
        ("one", "", Sight::Nothing),
    ] {
        let host = Host::new();
        let step = host.step(1);
        let mut launch = host.shell("echo $$ > body; exec sleep 1000");
        launch.machine = recorded.to_owned();
        host.supervisor.start(&step, &launch).unwrap();
        let body = host.process("body");
        kill_process(host.shim_of(&step), Signal::KILL).unwrap();
        let supervisor = Supervisor::running(AGENT.as_ref()).on_machine(here);
        eventually("the shim is gone", || (supervisor.survey(&step).unwrap() != Known::Running).then_some(()));
        let other = step.path().join("boot");
        fs::write(&other, "11111111-2222-3333-4444-555555555555\n").unwrap();
        let mounted = |arguments: &[&str]| assert!(Command::new("mount").args(arguments).status().unwrap().success());
        mounted(&["--bind", other.to_str().unwrap(), BOOT_ID]);
        assert_eq!(supervisor.survey(&step).unwrap(), Known::Gone { survivors: Vec::new(), sight });
        assert_eq!(supervisor.signal_survivors(&step, true).unwrap(), 0);
        assert!(body.is_alive(), "what has its id on this boot is a stranger");
        assert!(Command::new("umount").arg(BOOT_ID).status().unwrap().success());
    }
}
