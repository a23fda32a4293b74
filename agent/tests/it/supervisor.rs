//! Steps as real processes: how they run, end and are stopped.

use std::time::Duration;

use holdfast_agent::boottime::BootTime;
use holdfast_agent::supervisor::{Error, Known, Refusal, Tombstone};
use holdfast_common::id::{AttemptId, TargetName};
use holdfast_common::outcome::Exit;
use holdfast_common::spec::StepEffect;
use holdfast_common::time::Millis;
use rustix::process::{Signal, kill_process};
use uuid::Uuid;

use crate::host::Host;
use crate::support::eventually;

#[test]
fn a_body_gets_its_environment_and_folder_and_nothing_else() {
    let host = Host::new();
    let record = host
        .run(&host.shell("pwd; env | sort; readlink /proc/$$/fd/0; ls -l /proc/$$/fd | grep -c /state/; echo err >&2"));
    assert_eq!((record.exit, record.stopped_by_us, record.survivors.len()), (Exit::Exited(0), false, 0));
    let step = host.step(1);
    let work = host.places.work(AttemptId(Uuid::from_u128(1)));
    let expected = format!("{0}\nPATH=/usr/bin:/bin\nPWD={0}\n/dev/null\n0\n", work.display());
    assert_eq!(std::fs::read_to_string(step.stdout()).unwrap(), expected);
    assert_eq!(std::fs::read_to_string(step.stderr()).unwrap(), "err\n");
    assert_eq!((record.stdout.kept, record.stdout.cut, record.stdout.held_open), (expected.len() as u64, 0, false));
}

#[test]
fn arguments_are_data() {
    let host = Host::new();
    let hostile = ["-rf", "$(touch pwned)", "`id`", "a\nb", "@file", "; reboot", "*"];
    let argv: Vec<&str> = ["printf", "%s|"].into_iter().chain(hostile).collect();
    assert_eq!(host.run(&host.launch(&argv)).exit, Exit::Exited(0));
    let printed = std::fs::read_to_string(host.step(1).stdout()).unwrap();
    assert_eq!(printed, hostile.map(|part| format!("{part}|")).concat());
}

#[test]
fn every_exit_is_told_as_it_was() {
    let signaled = |signal| Exit::Signaled { signal, by_us: false };
    for (script, exit) in [
        ("exit 0", Exit::Exited(0)),
        ("exit 1", Exit::Exited(1)),
        ("exit 137", Exit::Exited(137)),
        ("exit 255", Exit::Exited(255)),
        ("kill -TERM $$", signaled(15)),
        ("kill -KILL $$", signaled(9)),
        ("kill -SEGV $$", signaled(11)),
        ("sh -c 'kill -KILL $$'; exit $?", Exit::Exited(137)),
        ("false || true", Exit::Exited(0)),
        ("exit 3 | true", Exit::Exited(0)),
    ] {
        let host = Host::new();
        assert_eq!(host.run(&host.shell(script)).exit, exit, "{script}");
    }
}

#[test]
fn a_body_that_cannot_be_started_is_told_so() {
    let host = Host::new();
    let record = host.run(&host.launch(&["/no/such/program"]));
    assert_eq!(record.exit, Exit::NotSpawned);
    assert!(record.detail.unwrap().contains("/no/such/program"));
    let host = Host::new();
    let record = host.run(&host.launch(&[]));
    assert_eq!(record.exit, Exit::NotSpawned);
}

#[test]
fn of_a_start_and_a_tombstone_exactly_one_wins() {
    let (mut starts, mut tombstones) = (0, 0);
    for round in 0..60 {
        let host = Host::new();
        let step = host.step(1);
        let launch = host.shell("echo ran > ran");
        let (started, buried) = std::thread::scope(|scope| {
            let starter = scope.spawn(|| host.supervisor.start(&step, &launch));
            // From "long before" to "long after" the shim comes to its record.
            std::thread::sleep(Duration::from_micros(round * 100));
            let buried = host.supervisor.tombstone(&step, "cancelled").unwrap();
            (starter.join().unwrap(), buried)
        });
        match buried {
            Tombstone::Stands => {
                tombstones += 1;
                assert!(matches!(started, Err(Error::Refused(Refusal::HasStartRecord))), "{started:?}");
                assert_eq!(host.supervisor.survey(&step).unwrap(), Known::NeverStarted { why: "cancelled".into() });
                assert_eq!(host.wrote("ran"), None);
            }
            Tombstone::TooLate => {
                starts += 1;
                started.unwrap();
                assert_eq!(host.ended(&step).exit, Exit::Exited(0));
                assert_eq!(host.wrote("ran").as_deref(), Some("ran\n"));
            }
        }
        assert_eq!(host.supervisor.tombstone(&step, "again").unwrap(), buried);
    }
    assert!(starts > 0 && tombstones > 0, "one winner only: {starts} starts, {tombstones} tombstones");
}

#[test]
fn a_step_is_never_started_twice() {
    let host = Host::new();
    let step = host.step(1);
    let launch = host.shell("echo ran >> ran");
    host.supervisor.start(&step, &launch).unwrap();
    host.ended(&step);
    let mut free = launch.clone();
    free.lock_wait = Millis(10_000);
    assert!(matches!(host.supervisor.start(&step, &free), Err(Error::Refused(Refusal::HasStartRecord))));
    assert_eq!(host.wrote("ran").as_deref(), Some("ran\n"));
}

#[test]
fn mutating_steps_of_one_target_exclude_each_other() {
    let host = Host::new();
    let (first, second) = (host.step(1), host.step(2));
    host.supervisor.start(&first, &host.shell("echo $$ > first; exec sleep 1000")).unwrap();
    let body = host.process("first");
    let refused = host.supervisor.start(&second, &host.shell("echo ran > ran"));
    assert!(matches!(refused, Err(Error::Refused(Refusal::TargetBusy))), "{refused:?}");
    assert_eq!(host.supervisor.survey(&second).unwrap(), Known::NotYetStarted);
    // Another target, or a step without effect, is not held up.
    let mut other = host.shell("true");
    other.target_lock = host.places.target_lock(&TargetName::new("other").unwrap());
    host.supervisor.start(&host.step(3), &other).unwrap();
    let mut reader = host.shell("true");
    reader.effect = StepEffect::None;
    host.supervisor.start(&host.step(4), &reader).unwrap();
    drop(body);
    // The next one waits for the lock of a shim on its last lines.
    let mut waiting = host.shell("echo ran > ran");
    waiting.lock_wait = Millis(20_000);
    host.supervisor.start(&second, &waiting).unwrap();
    assert_eq!(host.ended(&second).exit, Exit::Exited(0));
    assert_eq!(host.ended(&first).exit, Exit::Signaled { signal: 9, by_us: false });
}

#[test]
fn a_shim_that_comes_too_late_starts_nothing() {
    let host = Host::new();
    let step = host.step(1);
    let mut launch = host.shell("echo ran > ran");
    launch.not_after = Some(BootTime::now());
    assert!(matches!(host.supervisor.start(&step, &launch), Err(Error::Refused(Refusal::TooLate))));
    assert_eq!(host.supervisor.tombstone(&step, "too late").unwrap(), Tombstone::Stands);
    assert_eq!(host.wrote("ran"), None);
}

#[test]
fn a_stop_ends_the_group_by_term_and_by_kill_where_it_is_ignored() {
    for (script, exit, killed) in [
        ("echo $$ > ready; exec sleep 1000", Exit::Signaled { signal: 15, by_us: true }, false),
        ("trap 'exit 3' TERM; echo $$ > ready; while true; do sleep 0.05; done", Exit::Exited(3), false),
        (
            "trap '' TERM; echo $$ > ready; while true; do sleep 0.05; done",
            Exit::Signaled { signal: 9, by_us: true },
            true,
        ),
    ] {
        let host = Host::new();
        let step = host.step(1);
        host.supervisor.start(&step, &host.shell(script)).unwrap();
        let body = host.process("ready");
        let grace = if killed { Millis(100) } else { Millis(60_000) };
        host.supervisor.request_stop(&step, grace).unwrap();
        host.supervisor.request_stop(&step, Millis(1)).unwrap();
        let record = host.ended(&step);
        assert_eq!((record.exit, record.stopped_by_us, record.killed), (exit, true, killed), "{script}");
        assert!(!body.is_alive() && record.survivors.is_empty());
    }
}

#[test]
fn a_stop_that_was_asked_for_before_the_start_is_acted_on() {
    let host = Host::new();
    let step = host.step(1);
    host.supervisor.request_stop(&step, Millis(60_000)).unwrap();
    host.supervisor.start(&step, &host.shell("while true; do sleep 0.05; done")).unwrap();
    let record = host.ended(&step);
    assert_eq!((record.exit, record.stopped_by_us), (Exit::Signaled { signal: 15, by_us: true }, true));
    assert!(host.supervisor.is_signalled(&step));
}

#[test]
fn a_shim_that_stands_still_is_seen_and_acts_on_the_stop_once_it_goes_on() {
    let host = Host::new();
    let step = host.step(1);
    assert_eq!(host.supervisor.standing_still(&step).unwrap(), None, "there is none");
    host.supervisor.start(&step, &host.shell("echo $$ > ready; exec sleep 1000")).unwrap();
    let (body, shim) = (host.process("ready"), host.shim_of(&step));
    assert_eq!(host.supervisor.standing_still(&step).unwrap(), None);
    kill_process(shim, Signal::STOP).unwrap();
    let seen = eventually("it stands still", || host.supervisor.standing_still(&step).unwrap());
    assert_eq!(seen, shim.as_raw_pid());
    host.supervisor.request_stop(&step, Millis(60_000)).unwrap();
    // Its start, told by another boot or another start time, is another process.
    let start = std::fs::read_to_string(step.path().join("start.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&start).unwrap();
    for (key, other) in
        [("boot", serde_json::json!("another-boot")), ("shim", serde_json::json!({ "pid": seen, "started": 1 }))]
    {
        let mut stranger = record.clone();
        stranger[key] = other;
        let folder = host.step(2);
        std::fs::write(folder.path().join("start.json"), stranger.to_string()).unwrap();
        assert_eq!(host.supervisor.standing_still(&folder).unwrap(), None, "{key}");
    }
    assert_eq!(host.supervisor.survey(&step).unwrap(), Known::Running);
    assert!(body.is_alive() && !host.supervisor.is_signalled(&step), "nothing was signalled in its stead");
    kill_process(shim, Signal::CONT).unwrap();
    let record = host.ended(&step);
    assert_eq!((record.exit, record.stopped_by_us), (Exit::Signaled { signal: 15, by_us: true }, true));
}

#[test]
fn stopped_is_said_only_when_nothing_of_the_group_is_left() {
    let host = Host::new();
    let step = host.step(1);
    // The leader dies of TERM at once; its child ignores TERM and has to be killed after the grace.
    let child = "trap \"\" TERM; echo $$ > child; while true; do sleep 0.05; done";
    host.supervisor.start(&step, &host.shell(&format!("sh -c '{child}' & echo $$ > ready; wait"))).unwrap();
    let (child, _body) = (host.process("child"), host.process("ready"));
    host.supervisor.request_stop(&step, Millis(300)).unwrap();
    let record = host.ended(&step);
    assert!(!child.is_alive());
    assert_eq!((record.exit, record.killed), (Exit::Signaled { signal: 15, by_us: true }, true));
}

#[test]
fn a_child_that_keeps_the_pipe_holds_nothing_up_and_is_listed() {
    let host = Host::new();
    let step = host.step(1);
    let mut launch = host.shell("sleep 1000 & echo $! > child; echo done");
    launch.drain = Millis(100);
    host.supervisor.start(&step, &launch).unwrap();
    let record = host.ended(&step);
    let child = host.process("child");
    assert_eq!(record.exit, Exit::Exited(0));
    assert!(record.stdout.held_open && child.is_alive());
    assert_eq!(
        record.survivors.iter().map(|one| (one.pid, one.name.as_str())).collect::<Vec<_>>(),
        [(child.0, "sleep")]
    );
    assert_eq!(std::fs::read_to_string(step.stdout()).unwrap(), "done\n");
}

#[test]
fn a_child_that_left_the_session_is_listed_while_the_shim_lives() {
    let host = Host::new();
    let step = host.step(1);
    let script = "setsid sh -c 'setsid sh -c \"echo \\$\\$ > child; exec sleep 1000\" & exit' > /dev/null 2>&1; while ! test -s child; do sleep 0.01; done";
    host.supervisor.start(&step, &host.shell(script)).unwrap();
    let record = host.ended(&step);
    let child = host.process("child");
    assert_eq!(record.survivors.iter().map(|one| one.pid).collect::<Vec<_>>(), [child.0]);
}

#[test]
fn too_much_output_is_cut_and_counted_and_blocks_nobody() {
    let host = Host::new();
    let mut launch = host.shell("head -c 300000 /dev/zero; head -c 5000000 /dev/zero >&2; echo done > done");
    launch.output_bytes = 1000;
    let record = host.run(&launch);
    assert_eq!(record.exit, Exit::Exited(0));
    assert_eq!((record.stdout.kept, record.stdout.cut), (1000, 299_000));
    assert_eq!((record.stderr.kept, record.stderr.cut), (1000, 4_999_000));
    let text = std::fs::read(host.step(1).stdout()).unwrap();
    assert_eq!(text, vec![0; 1000], "the file holds the output and nothing else");
    assert_eq!(host.wrote("done").as_deref(), Some("done\n"));
}
