//! Which folders of attempts are removed, and which never.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use holdfast_agent::config::Keep;
use holdfast_agent::hands::prune;
use holdfast_common::id::AttemptId;
use holdfast_common::outcome::Exit;
use uuid::Uuid;

use crate::cgroup::Steps;
use crate::host::Host;

#[test]
fn folders_of_attempts_go_once_they_are_over_and_not_needed() {
    let (host, steps) = (Host::new(), Steps::new());
    let attempt = |number: u128| AttemptId(Uuid::from_u128(number));
    let there = |number: u128| host.step_is_there(number);
    for number in [1, 2, 3] {
        let step = host.step(number);
        host.supervisor.start(&step, &host.shell("true")).unwrap();
        assert_eq!(host.ended(&step).exit, Exit::Exited(0));
    }
    // One that runs, and one that has left something running.
    host.supervisor.start(&host.step(4), &host.shell("echo $$ > running; exec sleep 1000")).unwrap();
    let running = host.process("running");
    let mut leaves = host.shell("sleep 1000 > /dev/null 2>&1 & echo $! > left");
    leaves.effect = holdfast_common::spec::StepEffect::None;
    leaves.cgroup = Some(steps.step(5));
    host.supervisor.start(&host.step(5), &leaves).unwrap();
    let left = host.process("left");
    host.ended(&host.step(5));

    let prune = |needed: &[u128], attempts, ahead| {
        let needed: BTreeSet<_> = needed.iter().map(|number| attempt(*number)).collect();
        let keep = Keep { attempts, ..Keep::default() };
        prune(&host.places, &host.supervisor, &needed, keep, SystemTime::now() + ahead).unwrap()
    };
    let hour = Duration::from_secs(60 * 60);
    assert_eq!(prune(&[], 0, Duration::ZERO), [], "they are young");
    assert_eq!(prune(&[], 5, hour), []);
    assert_eq!(prune(&[1, 2], 0, hour), [attempt(3)], "1 has something to be told, the work of 4 and 5 lives");
    assert!(there(1) && there(2) && !there(3) && there(4) && there(5));
    assert!(running.is_alive() && left.is_alive());
    drop((running, left));
    host.ended(&host.step(4));
    crate::support::eventually("the rest can go", || {
        prune(&[1, 2], 0, hour);
        (!there(4) && !there(5)).then_some(())
    });
    assert!(!steps.step(5).exists(), "its cgroup goes with it");
    assert!(there(1) && there(2));
}
