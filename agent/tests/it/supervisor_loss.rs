//! What is known of a step whatever dies, and when: the agent, the shim, the body.

use std::process::{Command, Stdio};

use holdfast_agent::crash::CrashPoint;
use holdfast_agent::supervisor::{Body, Error, Known, Sight, Tombstone};
use holdfast_common::id::AttemptId;
use holdfast_common::outcome::{Exit, OperationState};
use holdfast_common::time::Millis;
use rustix::process::{Signal, kill_process};
use uuid::Uuid;

use crate::host::{BOUND, Host};
use crate::support::{AGENT, Site, eventually, fence};

#[test]
fn a_shim_outlives_its_agent_and_obeys_the_next_one() {
    let host = Host::new();
    let step = host.step(1);
    let launch = serde_json::to_vec(&host.shell("echo $$ > ready; exec sleep 1000")).unwrap();
    std::fs::write(step.path().join("launch.json"), launch).unwrap();
    let mut agent = Command::new("sh")
        .args(["-c", "\"$0\" internal shim \"$1\" & wait", AGENT])
        .arg(step.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let body = host.process("ready");
    agent.kill().unwrap();
    agent.wait().unwrap();
    drop(agent.stdout.take());
    assert_eq!(host.supervisor.survey(&step).unwrap(), Known::Running);
    assert_eq!(host.supervisor.tombstone(&step, "gone?").unwrap(), Tombstone::TooLate);
    host.supervisor.request_stop(&step, Millis(60_000)).unwrap();
    assert_eq!(host.ended(&step).exit, Exit::Signaled { signal: 15, by_us: true });
    assert!(!body.is_alive());
}

#[test]
fn a_shim_killed_alone_leaves_an_exit_that_nobody_knows() {
    let host = Host::new();
    let step = host.step(1);
    host.supervisor.start(&step, &host.shell("sleep 1000 & echo $! > child; echo $$ > ready; wait")).unwrap();
    let (body, child) = (host.process("ready"), host.process("child"));
    kill_process(host.shim_of(&step), Signal::KILL).unwrap();
    let known = eventually("the shim is gone", || {
        Some(host.supervisor.survey(&step).unwrap()).filter(|known| *known != Known::Running)
    });
    let Known::Gone { survivors, sight: Sight::Session } = known else { panic!("{known:?}") };
    let mut found: Vec<i32> = survivors.iter().map(|one| one.pid).collect();
    let mut expected = vec![body.0, child.0];
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!(!host.supervisor.survey(&step).unwrap().is_settled());
    assert_eq!(host.supervisor.signal_survivors(&step, true).unwrap(), 2);
    let known = host.supervisor.wait(&step, BOUND).unwrap();
    assert_eq!(known, Known::Gone { survivors: Vec::new(), sight: Sight::Session });
    assert!(!body.is_alive() && !child.is_alive());
}

#[test]
fn a_recorded_id_that_became_a_strangers_is_never_signalled() {
    let host = Host::new();
    let script = "echo $$ > stranger; exec sleep 1000";
    let work = host.places.work(AttemptId(Uuid::from_u128(1)));
    host.places.make_attempt(AttemptId(Uuid::from_u128(1))).unwrap();
    let mut stranger = Command::new("setsid").args(["-w", "sh", "-c", script]).current_dir(work).spawn().unwrap();
    let process = host.process("stranger");
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    for (number, boot, started) in [(2, boot.trim(), 1), (3, "another-boot", 1)] {
        let step = host.step(number);
        let shim = serde_json::json!({ "pid": process.0, "started": started });
        let record = serde_json::json!({ "kind": "started", "at": 0, "shim": shim, "boot": boot });
        std::fs::write(step.path().join("start.json"), record.to_string()).unwrap();
        let known = host.supervisor.survey(&step).unwrap();
        let sight = if boot == "another-boot" { Sight::Nothing } else { Sight::Session };
        assert_eq!(known, Known::Gone { survivors: Vec::new(), sight });
        assert_eq!(host.supervisor.signal_survivors(&step, true).unwrap(), 0);
        assert!(process.is_alive());
    }
    drop(process);
    stranger.wait().unwrap();
}

#[test]
fn whatever_point_a_shim_dies_at_the_next_agent_knows_what_is_true() {
    for point in CrashPoint::ALL.iter().filter(|point| point.is_in_shim()) {
        let host = Host::armed("HOLDFAST_CRASH", point.name());
        let step = host.step(1);
        let started = host.supervisor.start(&step, &host.shell("echo $$ > ran; exec sleep 0.2"));
        let known = eventually("it settles", || {
            Some(host.supervisor.survey(&step).unwrap()).filter(|known| known.is_settled() || started.is_err())
        });
        let ran = || host.wrote("ran").is_some();
        match point {
            CrashPoint::BeforeStartRecord => {
                assert!(matches!(started, Err(Error::ShimLost)));
                assert_eq!(known, Known::NotYetStarted);
                assert_eq!(host.supervisor.tombstone(&step, "lost").unwrap(), Tombstone::Stands);
                assert!(!ran());
            }
            CrashPoint::AfterStartRecord => {
                assert_eq!(known, Known::Gone { survivors: Vec::new(), sight: Sight::Session });
                assert_eq!(host.supervisor.tombstone(&step, "lost").unwrap(), Tombstone::TooLate);
                assert!(!ran());
            }
            CrashPoint::AfterBodySpawn | CrashPoint::BeforeExitRecord => {
                let known = host.supervisor.wait(&step, BOUND).unwrap();
                assert_eq!(known, Known::Gone { survivors: Vec::new(), sight: Sight::Session }, "{point:?}");
                eventually("the body ran", || ran().then_some(()));
            }
            CrashPoint::AfterExitRecord => {
                assert!(matches!(known, Known::Ended(record) if record.exit == Exit::Exited(0)), "{point:?}");
            }
            point => panic!("a new point of the shim: {point:?}"),
        }
    }
}

#[test]
fn no_shim_and_no_orphan_stays_a_zombie() {
    let host = Host::new();
    let step = host.step(1);
    // Orphans that end while the body goes on.
    let script = "for n in 1 2 3 4; do sh -c 'true & exit'; done; echo $$ > ready; exec sleep 1000";
    host.supervisor.start(&step, &host.shell(script)).unwrap();
    let body = host.process("ready");
    let shim = host.shim_of(&step).as_raw_pid();
    let zombies_of = |parent: i32| {
        let output = Command::new("ps").args(["-o", "stat=", "--ppid", &parent.to_string()]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().lines().filter(|line| line.starts_with('Z')).count()
    };
    eventually("orphans are reaped", || (zombies_of(shim) == 0).then_some(()));
    drop(body);
    host.ended(&step);
    let me = i32::try_from(std::process::id()).unwrap();
    eventually("the shim is reaped", || {
        let _ = host.supervisor.survey(&step).unwrap();
        (zombies_of(me) == 0).then_some(())
    });
}

#[test]
fn a_release_body_is_applied_and_its_loss_is_read_rightly() {
    let site = Site::new();
    let host = Host::new();
    let mut launch = host.shell("");
    launch.body = Body::Release { apply: site.spec(1, fence(1)) };
    assert_eq!(host.run(&launch).exit, Exit::Exited(0));
    assert_eq!(site.inspect(1).state, OperationState::Applied);

    let host = Host::armed("HOLDFAST_HALT", "apply.flip=stop");
    let step = host.step(1);
    let mut launch = host.shell("");
    launch.body = Body::Release { apply: site.spec(2, fence(2)) };
    host.supervisor.start(&step, &launch).unwrap();
    eventually("it stands before the flip", || (site.inspect(2).state == OperationState::Applying).then_some(()));
    // A stopped process does not act on TERM: it takes the KILL after the grace.
    host.supervisor.request_stop(&step, Millis(100)).unwrap();
    let record = host.ended(&step);
    assert!(record.stopped_by_us && matches!(record.exit, Exit::Signaled { by_us: true, .. }), "{record:?}");
    assert_eq!(site.inspect(2).state, OperationState::NotApplied);

    let host = Host::new();
    let mut launch = host.shell("");
    launch.body = Body::Release { apply: site.spec(3, fence(1)) };
    let record = host.run(&launch);
    assert_eq!(record.exit, Exit::Exited(73));
    assert_eq!(site.served().as_deref(), Some("v1"));
    assert!(std::fs::read_to_string(host.step(1).stderr()).unwrap().contains("fenced off"));
}
