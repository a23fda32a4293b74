//! Steps as real processes: what is known of them whatever dies, and when.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use holdfast_agent::boottime::BootTime;
use holdfast_agent::crash::CrashPoint;
use holdfast_agent::places::{Places, StepFolder};
use holdfast_agent::supervisor::{Body, Error, ExitRecord, Known, Launch, Refusal, Supervisor, Tombstone};
use holdfast_common::id::{AttemptId, StepName, TargetName};
use holdfast_common::outcome::{Exit, OperationState};
use holdfast_common::spec::StepEffect;
use holdfast_common::time::Millis;
use rustix::process::{Pid, Signal, kill_process};
use uuid::Uuid;

use crate::support::{AGENT, Folder, Site, eventually, fence};

const BOUND: Duration = Duration::from_secs(20);

struct Host {
    folder: Folder,
    places: Places,
    supervisor: Supervisor,
}

impl Host {
    fn new() -> Self {
        let folder = Folder::new();
        let places = Places::below(&folder.0.join("state"));
        places.prepare().unwrap();
        Self { folder, places, supervisor: Supervisor::running(AGENT.as_ref()) }
    }

    fn armed(variable: &str, value: &str) -> Self {
        let mut host = Self::new();
        host.supervisor.arm(variable, value);
        host
    }

    fn step(&self, number: u128) -> StepFolder {
        self.places.make_step(AttemptId(Uuid::from_u128(number)), &StepName::new("step").unwrap()).unwrap()
    }

    fn launch(&self, argv: &[&str]) -> Launch {
        self.places.make_attempt(AttemptId(Uuid::from_u128(1))).unwrap();
        Launch {
            effect: StepEffect::Mutates,
            target_lock: self.places.target_lock(&TargetName::new("shop@prod").unwrap()),
            lock_wait: Millis(0),
            not_after: None,
            body: Body::Command { argv: argv.iter().map(|part| (*part).to_owned()).collect() },
            environment: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
            work: self.places.work(AttemptId(Uuid::from_u128(1))),
            output_bytes: 1 << 20,
            drain: Millis(5_000),
        }
    }

    fn shell(&self, script: &str) -> Launch {
        self.launch(&["sh", "-c", script])
    }

    fn ended(&self, step: &StepFolder) -> ExitRecord {
        let known = self.supervisor.wait(step, BOUND).unwrap();
        let Known::Ended(record) = known else { panic!("not ended: {known:?}") };
        record
    }

    fn run(&self, launch: &Launch) -> ExitRecord {
        let step = self.step(1);
        self.supervisor.start(&step, launch).unwrap();
        self.ended(&step)
    }

    fn shim_of(&self, step: &StepFolder) -> Pid {
        let text = std::fs::read_to_string(step.path().join("start.json")).unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        Pid::from_raw(i32::try_from(record["shim"]["pid"].as_i64().unwrap()).unwrap()).unwrap()
    }

    fn wrote(&self, name: &str) -> Option<String> {
        let work = self.places.work(AttemptId(Uuid::from_u128(1)));
        std::fs::read_to_string(work.join(name)).ok().filter(|text| text.ends_with('\n'))
    }

    /// The process whose id the body wrote there.
    fn process(&self, name: &str) -> Process {
        Process(eventually(name, || self.wrote(name)).trim().parse().unwrap())
    }
}

struct Process(i32);

impl Process {
    fn is_alive(&self) -> bool {
        std::fs::read_to_string(format!("/proc/{}/stat", self.0)).is_ok_and(|stat| !stat.contains(") Z"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_raw(self.0).unwrap(), Signal::KILL);
    }
}

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
fn too_much_output_is_cut_counted_and_marked_and_blocks_nobody() {
    let host = Host::new();
    let mut launch = host.shell("head -c 300000 /dev/zero; head -c 5000000 /dev/zero >&2; echo done > done");
    launch.output_bytes = 1000;
    let record = host.run(&launch);
    assert_eq!(record.exit, Exit::Exited(0));
    assert_eq!((record.stdout.kept, record.stdout.cut), (1000, 299_000));
    assert_eq!((record.stderr.kept, record.stderr.cut), (1000, 4_999_000));
    let text = std::fs::read(host.step(1).stdout()).unwrap();
    assert!(text.len() < 1100 && text.ends_with(b"\n[299000 more bytes were cut]\n"));
    assert_eq!(host.wrote("done").as_deref(), Some("done\n"));
}

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
    let Known::Gone { survivors, other_boot: false } = known else { panic!("{known:?}") };
    let mut found: Vec<i32> = survivors.iter().map(|one| one.pid).collect();
    let mut expected = vec![body.0, child.0];
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!(!host.supervisor.survey(&step).unwrap().is_settled());
    assert_eq!(host.supervisor.signal_survivors(&step, true).unwrap(), 2);
    let known = host.supervisor.wait(&step, BOUND).unwrap();
    assert_eq!(known, Known::Gone { survivors: Vec::new(), other_boot: false });
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
        assert_eq!(known, Known::Gone { survivors: Vec::new(), other_boot: boot == "another-boot" });
        assert_eq!(host.supervisor.signal_survivors(&step, true).unwrap(), 0);
        assert!(process.is_alive());
    }
    drop(process);
    stranger.wait().unwrap();
}

#[test]
fn whatever_point_a_shim_dies_at_the_next_agent_knows_what_is_true() {
    for point in CrashPoint::ALL {
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
                assert_eq!(known, Known::Gone { survivors: Vec::new(), other_boot: false });
                assert_eq!(host.supervisor.tombstone(&step, "lost").unwrap(), Tombstone::TooLate);
                assert!(!ran());
            }
            CrashPoint::AfterBodySpawn | CrashPoint::BeforeExitRecord => {
                let known = host.supervisor.wait(&step, BOUND).unwrap();
                assert_eq!(known, Known::Gone { survivors: Vec::new(), other_boot: false }, "{point:?}");
                eventually("the body ran", || ran().then_some(()));
            }
            CrashPoint::AfterExitRecord
            | CrashPoint::BeforeJournalCommit
            | CrashPoint::AfterJournalCommit
            | CrashPoint::BeforeShimSpawn
            | CrashPoint::AfterShimSpawn => {
                assert!(matches!(known, Known::Ended(record) if record.exit == Exit::Exited(0)), "{point:?}");
            }
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

#[test]
fn a_survey_of_many_running_steps_is_quick_and_changes_nothing() {
    let host = Host::new();
    let step = host.step(1);
    host.supervisor.start(&step, &host.shell("echo $$ > ready; exec sleep 1000")).unwrap();
    let _body = host.process("ready");
    let end = Instant::now() + Duration::from_millis(200);
    while Instant::now() < end {
        assert_eq!(host.supervisor.survey(&step).unwrap(), Known::Running);
    }
    assert!(host.folder.0.exists());
}
