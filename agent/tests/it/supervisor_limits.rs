//! Bounds of one step. Where no cgroup bounds it, each process is bounded by itself, and users other than root by their processes.

use holdfast_agent::config::Limits;
use holdfast_agent::policy::User;
use holdfast_common::outcome::Exit;
use holdfast_common::time::Millis;

use crate::cgroup::Steps;
use crate::host::Host;
use crate::support::eventually;

/// A user of no other process.
const ALONE: u32 = 54_321;

fn alone() -> User {
    User { name: "alone".to_owned(), uid: ALONE, gid: ALONE, groups: Vec::new(), home: "/".into() }
}

#[test]
fn a_fork_bomb_under_a_limit_is_bounded_and_stopped_whole() {
    let (host, steps) = (Host::new(), Steps::new());
    // As many as it gets, each in a session of its own; the shell that is refused another one ends, and its parent lives on.
    let mut launch = host.shell("(while true; do setsid sleep 1000 & done); exec sleep 1000");
    launch.limits = Limits { pids: Some(60), memory_bytes: None };
    launch.user = Some(alone());
    launch.work = "/".into();
    launch.cgroup = Some(steps.step(1));
    let step = host.step(1);
    host.supervisor.start(&step, &launch).unwrap();
    let count = || std::fs::read_to_string(steps.step(1).join("cgroup.procs")).unwrap_or_default().lines().count();
    let mut most = 0;
    eventually("it goes off", || {
        most = most.max(count());
        (most >= 40).then_some(())
    });
    for _ in 0..200 {
        most = most.max(count());
    }
    assert!(most <= 60, "{most} processes");
    // The shim is no part of it: it still obeys.
    host.supervisor.request_stop(&step, Millis(100)).unwrap();
    let record = host.ended(&step);
    assert!(record.stopped_by_us && record.survivors.is_empty(), "{record:?}");
    eventually("nothing of it is left", || (!steps.step(1).exists()).then_some(()));
}

#[test]
fn memory_beyond_the_limit_is_not_given_and_the_shim_has_its_own() {
    let host = Host::new();
    let script = "head -c 200000000 /dev/zero | tail -c 200000000 | wc -c; ulimit -d";
    let mut launch = host.shell(script);
    launch.limits = Limits { pids: None, memory_bytes: Some(50_000_000) };
    let record = host.run(&launch);
    assert_eq!(record.exit, Exit::Exited(0));
    let (told, wrong) = (host.step(1).stdout(), host.step(1).stderr());
    assert_eq!(std::fs::read_to_string(told).unwrap(), "0\n48828\n");
    assert!(std::fs::read_to_string(wrong).unwrap().contains("memory"), "tail says what it lacked");
}
