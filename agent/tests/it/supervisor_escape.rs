//! Processes that leave their step's group and session: found and stopped, or told as what can't be known.

use holdfast_agent::supervisor::{Known, Launch, Sight};
use holdfast_common::outcome::Exit;
use holdfast_common::time::Millis;
use rustix::process::{Signal, kill_process};

use crate::cgroup::Steps;
use crate::host::{BOUND, Host, Process};
use crate::support::eventually;

/// A child that leaves the session by two forks, is deaf to TERM, and writes its id to the file `child`.
const ESCAPE: &str = "setsid sh -c 'setsid sh -c \"trap : TERM; echo \\$\\$ > child; \
                      while true; do sleep 0.05; done\" & exit' > /dev/null 2>&1; \
                      while ! test -s child; do sleep 0.01; done";

fn escape(host: &Host, rest: &str) -> Launch {
    host.shell(&format!("{ESCAPE}; {rest}"))
}

/// A step in a cgroup, whose shim was killed alone after the escape.
fn lost(host: &Host, steps: &Steps) -> (Process, Process) {
    let mut launch = escape(host, "echo $$ > ready; exec sleep 1000");
    launch.cgroup = Some(steps.step(1));
    let step = host.step(1);
    host.supervisor.start(&step, &launch).unwrap();
    let processes = (host.process("ready"), host.process("child"));
    kill_process(host.shim_of(&step), Signal::KILL).unwrap();
    eventually("the shim is gone", || (host.supervisor.survey(&step).unwrap() != Known::Running).then_some(()));
    processes
}

#[test]
fn a_stop_is_told_only_when_what_left_the_session_is_gone_too() {
    for with_cgroup in [true, false] {
        let (host, steps) = (Host::new(), Steps::new());
        let step = host.step(1);
        let mut launch = escape(&host, "echo $$ > ready; exec sleep 1000");
        launch.cgroup = with_cgroup.then(|| steps.step(1));
        host.supervisor.start(&step, &launch).unwrap();
        let (body, child) = (host.process("ready"), host.process("child"));
        host.supervisor.request_stop(&step, Millis(100)).unwrap();
        let record = host.ended(&step);
        assert_eq!(record.exit, Exit::Signaled { signal: 15, by_us: true });
        assert!(record.stopped_by_us && record.killed, "deaf to TERM, the child had to be killed");
        assert!(!body.is_alive() && !child.is_alive() && record.survivors.is_empty());
    }
}

#[test]
fn what_a_step_leaves_running_is_listed_and_keeps_its_cgroup_until_it_ends() {
    let (host, steps) = (Host::new(), Steps::new());
    let step = host.step(1);
    let mut launch = escape(&host, "exit 0");
    launch.cgroup = Some(steps.step(1));
    host.supervisor.start(&step, &launch).unwrap();
    let record = host.ended(&step);
    let child = host.process("child");
    assert!(record.exit == Exit::Exited(0) && child.is_alive(), "a success ends nothing that it left");
    assert!(record.survivors.iter().any(|one| one.pid == child.0), "{record:?}");
    host.supervisor.tidy(&step).unwrap();
    assert!(steps.step(1).exists());
    drop(child);
    eventually("its cgroup can go", || {
        host.supervisor.tidy(&step).unwrap();
        (!steps.step(1).exists()).then_some(())
    });
}

#[test]
fn an_empty_cgroup_goes_with_its_shim() {
    let (host, steps) = (Host::new(), Steps::new());
    let mut launch = host.shell("cat /proc/self/cgroup; exit 3");
    launch.cgroup = Some(steps.step(1));
    assert_eq!(host.run(&launch).exit, Exit::Exited(3));
    let told = std::fs::read_to_string(host.step(1).stdout()).unwrap();
    assert!(told.lines().any(|line| line.starts_with("0::") && line.ends_with("/step-1")), "{told}");
    eventually("it is gone", || (!steps.step(1).exists()).then_some(()));
    let missing = host.step(2);
    let mut launch = host.launch(&["/no/such/program"]);
    launch.cgroup = Some(steps.step(2));
    host.supervisor.start(&missing, &launch).unwrap();
    assert_eq!(host.ended(&missing).exit, Exit::NotSpawned);
    eventually("it is gone", || (!steps.step(2).exists()).then_some(()));
}

#[test]
fn what_left_the_session_of_a_lost_shim_is_found_by_its_cgroup_and_stopped() {
    let (host, steps) = (Host::new(), Steps::new());
    let (body, child) = lost(&host, &steps);
    let step = host.step(1);
    let known = host.supervisor.survey(&step).unwrap();
    let Known::Gone { survivors, sight: Sight::Cgroup } = &known else { panic!("{known:?}") };
    for process in [&body, &child] {
        assert!(survivors.iter().any(|one| one.pid == process.0), "{survivors:?}");
    }
    assert!(!known.is_settled());
    // TERM ends the body; the child is deaf to it, so nothing is over.
    assert!(host.supervisor.signal_survivors(&step, false).unwrap() >= 2);
    eventually("the body is gone", || (!body.is_alive()).then_some(()));
    assert!(child.is_alive() && !host.supervisor.survey(&step).unwrap().is_settled());
    assert!(host.supervisor.signal_survivors(&step, true).unwrap() >= 1);
    let known = host.supervisor.wait(&step, BOUND).unwrap();
    assert_eq!(known, Known::Gone { survivors: Vec::new(), sight: Sight::Cgroup });
    assert!(!child.is_alive());
    host.supervisor.tidy(&step).unwrap();
    assert!(!steps.step(1).exists());
    // A removed one was empty.
    assert_eq!(host.supervisor.survey(&step).unwrap(), known);
}

#[test]
fn without_a_cgroup_what_left_the_session_of_a_lost_shim_is_told_as_not_found() {
    let host = Host::new();
    let step = host.step(1);
    host.supervisor.start(&step, &escape(&host, "echo $$ > ready; exec sleep 1000")).unwrap();
    let (body, child) = (host.process("ready"), host.process("child"));
    kill_process(host.shim_of(&step), Signal::KILL).unwrap();
    drop(body);
    let known = host.supervisor.wait(&step, BOUND).unwrap();
    assert_eq!(known, Known::Gone { survivors: Vec::new(), sight: Sight::Session });
    assert!(child.is_alive(), "it is there, and the answer does not say that nothing is");
}

#[test]
fn a_cgroup_that_is_taken_starts_nothing() {
    let (host, steps) = (Host::new(), Steps::new());
    std::fs::create_dir(steps.step(1)).unwrap();
    let mut stranger = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
    std::fs::write(steps.step(1).join("cgroup.procs"), stranger.id().to_string()).unwrap();
    let mut launch = host.shell("echo ran > ran");
    launch.cgroup = Some(steps.step(1));
    let refused = host.supervisor.start(&host.step(1), &launch).unwrap_err();
    assert!(refused.to_string().contains("there are processes in"), "{refused}");
    assert_eq!((host.wrote("ran"), stranger.try_wait().unwrap()), (None, None));
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}
