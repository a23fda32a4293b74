//! Which clock decides what: leases live on the time since boot, suspend included, and the wall clock decides nothing (F29).

use super::*;
use crate::driver::lease::until;

const HOUR: u64 = 3_600_000;

fn is_permit_request(message: &Message) -> bool {
    matches!(message, Message::PermitRequest(_))
}

/// The same life under a wall clock that is moved between any two events.
fn life(jumps: &[i64]) -> (Vec<String>, Vec<String>) {
    let mut agent = Agent::new();
    let mut said = Vec::new();
    let mut jumps = jumps.iter().cycle();
    let mut then = |agent: &mut Agent, said: &mut Vec<String>| {
        *agent.now.1.borrow_mut() += jumps.next().copied().unwrap_or_default();
        *agent.now.0.borrow_mut() += 500;
        agent.driver.as_mut().unwrap().step(Vec::new());
        said.extend(agent.said().into_iter().map(|mut message| {
            if let Message::Report(report) = &mut message {
                report.said_at = None;
            }
            format!("{message:?}")
        }));
    };
    agent.connect(1, 1);
    then(&mut agent, &mut said);
    agent.tell(1, offer());
    then(&mut agent, &mut said);
    for number in 1..=3 {
        agent.tell(1, FromCoordinator::Renewed { number, leases: vec![(claim(), Some(Millis(10_000)))] });
        then(&mut agent, &mut said);
    }
    agent.tell(1, permit(None));
    then(&mut agent, &mut said);
    agent.step(Event::Hand(HandEvent::Started(claim().attempt, step_name())));
    then(&mut agent, &mut said);
    agent.step(ended("done"));
    then(&mut agent, &mut said);
    (said, agent.did())
}

#[test]
fn a_wall_clock_that_jumps_changes_nothing_that_is_said_or_done() {
    const HOUR_MICROS: i64 = 3_600_000_000;
    const TEN_YEARS: i64 = 10 * 365 * 24 * HOUR_MICROS;
    let steady = life(&[0]);
    assert_eq!(steady.1, ["launch switch"]);
    for jumps in [&[HOUR_MICROS][..], &[-HOUR_MICROS], &[TEN_YEARS, -TEN_YEARS], &[-TEN_YEARS, HOUR_MICROS]] {
        assert_eq!(life(jumps), steady, "{jumps:?}");
    }
}

#[test]
fn after_a_suspend_no_step_begins_before_the_coordinator_was_asked() {
    // The host sleeps when its permit was asked for; the answer waits in the connection.
    let mut agent = Agent::new();
    agent.connect(1, 1);
    agent.tell(1, offer());
    assert!(agent.said().iter().any(is_permit_request));
    *agent.now.0.borrow_mut() += HOUR / 2;
    agent.tell(1, permit(None));
    assert_eq!(agent.did(), ["tombstone switch"], "the permit is of a lease that is over by its own count");

    // It sleeps between an offer and its first question: nothing was durable of it but the offer.
    let mut agent = Agent::new();
    agent.connect(1, 1);
    agent.driver.as_mut().unwrap().journal.bound(true);
    agent.tell(1, large_offer());
    assert!(!agent.said().iter().any(is_permit_request));
    *agent.now.0.borrow_mut() += HOUR / 2;
    agent.driver.as_mut().unwrap().step(Vec::new());
    let number = last_beat(&agent.said());
    agent.driver.as_mut().unwrap().journal.bound(false);
    agent.driver.as_mut().unwrap().step(Vec::new());
    assert_eq!(agent.did(), Vec::<String>::new(), "nothing begins");
    agent.said();
    // Asked, and told that it still is the owner: it goes on, by asking for its permit.
    agent.tell(1, FromCoordinator::Renewed { number, leases: vec![(claim(), Some(Millis(10_000)))] });
    agent.tell(1, permit(None));
    assert_eq!(agent.did(), ["launch switch"]);
}

#[test]
fn a_launch_carries_the_end_of_its_lease_so_that_a_suspend_after_it_is_seen_by_the_shim() {
    let mut agent = Agent::new();
    agent.launched();
    let end = agent.noted.1.borrow().expect("the hands were told");
    assert_eq!(end, until(Boot(1_000), Millis(10_000)), "the lease's own count, on the clock that goes on in suspend");
}
