//! Recorded ids of processes that came to mean others: in a pid namespace, where the next id can be chosen, and after another boot.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use holdfast_agent::places::StepFolder;
use holdfast_agent::supervisor::{Known, Sight, Supervisor};
use rustix::process::{Signal, kill_process};

use crate::cgroup::Steps;
use crate::host::{BOUND, Host};
use crate::support::{AGENT, eventually};

/// Says to a test that it runs inside.
const INSIDE: &str = "HOLDFAST_TEST_INSIDE";
/// Says that, and in which cgroup the step is to be.
const CGROUP: &str = "HOLDFAST_TEST_CGROUP";
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Runs this very test again in namespaces of its own, or says that it is there.
fn is_inside(test: &str, unshare: &[&str]) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let said = again_inside(test, unshare, INSIDE, "1".as_ref());
    assert!(said.contains("1 passed"), "{said}");
    false
}

/// Runs a test again in namespaces of its own, with a word in its environment. Answers what it said.
fn again_inside(test: &str, unshare: &[&str], name: &str, value: &OsStr) -> String {
    let output = Command::new("unshare")
        .args(unshare)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(name, value)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    said
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

#[test]
fn from_another_pid_namespace_nothing_of_a_step_is_told_as_gone() {
    // Where the step's start record lies, for the process inside.
    const FOLDER: &str = "HOLDFAST_TEST_STEP";
    let test = "strangers::from_another_pid_namespace_nothing_of_a_step_is_told_as_gone";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let (step, supervisor) = (StepFolder::at(folder.into()), Supervisor::running(AGENT.as_ref()));
        let unseen = Known::Gone { survivors: Vec::new(), sight: Sight::Nothing };
        assert_eq!(supervisor.survey(&step).unwrap(), unseen);
        assert_eq!(supervisor.wait(&step, Duration::ZERO).unwrap(), unseen);
        assert_eq!(supervisor.signal_survivors(&step, true).unwrap(), 0);
        return;
    }
    for with_cgroup in [true, false] {
        let (host, steps) = (Host::new(), Steps::new());
        let step = host.step(1);
        let mut launch = host.shell("echo $$ > body; exec sleep 1000");
        launch.cgroup = with_cgroup.then(|| steps.step(1));
        host.supervisor.start(&step, &launch).unwrap();
        let body = host.process("body");
        kill_process(host.shim_of(&step), Signal::KILL).unwrap();
        eventually("the shim is gone", || (host.supervisor.survey(&step).unwrap() != Known::Running).then_some(()));
        // A /proc of its own, and the /proc of outside.
        for unshare in [&["--pid", "--fork", "--mount-proc"][..], &["--pid", "--fork"]] {
            let said = again_inside(test, unshare, FOLDER, step.path().as_os_str());
            assert!(said.contains("1 passed"), "{said}");
        }
        assert!(body.is_alive(), "it lives, and nobody inside could see it");
        let Known::Gone { survivors, .. } = host.supervisor.survey(&step).unwrap() else { panic!("it is there") };
        assert!(survivors.iter().any(|one| one.pid == body.0), "{survivors:?}");
    }
}

#[test]
fn a_shim_that_sees_the_processes_of_another_namespace_starts_nothing() {
    let test = "strangers::a_shim_that_sees_the_processes_of_another_namespace_starts_nothing";
    if !is_inside(test, &["--pid", "--fork"]) {
        return;
    }
    let host = Host::new();
    let refused = host.supervisor.start(&host.step(1), &host.shell("echo $$ > body")).expect_err("refused");
    assert!(refused.to_string().contains("another pid namespace"), "{refused}");
    assert_eq!(host.wrote("body"), None);
}

#[test]
fn a_process_of_another_namespace_in_a_steps_cgroup_is_somebody() {
    let (host, steps) = (Host::new(), Steps::new());
    let step = host.step(1);
    let mut launch = host.shell("echo $$ > body; exec sleep 1000");
    let test = "strangers::a_process_of_another_namespace_in_a_steps_cgroup_is_somebody";
    if let Some(cgroup) = std::env::var_os(CGROUP) {
        // The step is of this namespace; who is in its cgroup is not.
        launch.cgroup = Some(cgroup.into());
        host.supervisor.start(&step, &launch).unwrap();
        let shim = host.shim_of(&step);
        let body = host.process("body");
        eventually("a stranger is in", || {
            let text = fs::read_to_string(Path::new(launch.cgroup.as_ref()?).join("cgroup.procs")).ok()?;
            text.lines().any(|line| line == "0").then_some(())
        });
        kill_process(shim, Signal::KILL).unwrap();
        let pid = body.0;
        drop(body);
        let known = eventually("shim and body are gone", || {
            let known = host.supervisor.survey(&step).unwrap();
            matches!(&known, Known::Gone { survivors, .. } if survivors.iter().all(|one| one.pid != pid))
                .then_some(known)
        });
        let Known::Gone { survivors, sight: Sight::Cgroup } = &known else { panic!("{known:?}") };
        assert!(!known.is_settled() && survivors.iter().all(|one| one.pid == 0), "{survivors:?}");
        assert!(host.supervisor.signal_survivors(&step, true).unwrap() > 0);
        let known = host.supervisor.wait(&step, BOUND).unwrap();
        assert_eq!(known, Known::Gone { survivors: Vec::new(), sight: Sight::Cgroup });
        return;
    }
    let cgroup = steps.step(1);
    let stranger = std::thread::scope(|scope| {
        let inside =
            scope.spawn(|| again_inside(test, &["--pid", "--fork", "--mount-proc"], CGROUP, cgroup.as_os_str()));
        eventually("the body is in its cgroup", || {
            let text = fs::read_to_string(cgroup.join("cgroup.procs")).ok()?;
            (text.lines().count() > 0).then_some(())
        });
        let mut stranger = Command::new("sleep").arg("1000").spawn().unwrap();
        fs::write(cgroup.join("cgroup.procs"), stranger.id().to_string()).unwrap();
        let said = inside.join().unwrap();
        assert!(said.contains("1 passed"), "{said}");
        stranger.wait().unwrap()
    });
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&stranger), Some(9), "the cgroup was killed as a whole");
}
