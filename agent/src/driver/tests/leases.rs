//! From when a lease counts, and what its loss means.

use super::*;

#[test]
fn lease_counts_from_when_the_heartbeat_was_sent() {
    let mut agent = Agent::new();
    agent.connect(1, 1);
    agent.tell(1, offer());
    let number = last_beat(&agent.said());
    // The answer comes when the lease it gives has run out already, counted from the sending.
    *agent.now.0.borrow_mut() = 1_000 + 20_000;
    agent.tell(1, FromCoordinator::Renewed { number, leases: vec![(claim(), Some(Millis(10_000)))] });
    agent.tell(1, permit(None));
    assert_eq!(agent.did(), ["tombstone switch"]);
}

#[test]
fn attempt_is_superseded_also_by_an_answer_to_no_heartbeat_and_never_renewed_by_one() {
    let mut agent = Agent::new();
    agent.connect(1, 1);
    agent.tell(1, offer());
    agent.said();
    *agent.now.0.borrow_mut() = 1_000 + 20_000;
    agent.tell(1, FromCoordinator::Renewed { number: 0, leases: vec![(claim(), Some(Millis(90_000)))] });
    agent.tell(1, permit(None));
    assert_eq!(agent.did(), ["tombstone switch"]);
    agent.tell(1, FromCoordinator::Renewed { number: 0, leases: vec![(claim(), None)] });
    agent.said();
    *agent.now.0.borrow_mut() += 1_000;
    agent.step(Event::Hand(HandEvent::Tombstoned(claim().attempt, step_name())));
    let claims = beats(&agent.said()).iter().map(|beat| beat.claims.len()).sum::<usize>();
    assert_eq!(claims, 0, "a superseded attempt asks for no lease");
}

#[test]
fn a_lease_that_is_lost_while_its_process_may_run_is_answered_by_a_new_session() {
    for (in_heartbeat, stays) in [(false, true), (true, false)] {
        let mut agent = Agent::new();
        agent.launched();
        *agent.now.0.borrow_mut() += 20_000;
        agent.driver.as_mut().unwrap().step(Vec::new());
        let said = agent.said();
        let number = if in_heartbeat { last_beat(&said) } else { 0 };
        agent.tell(1, FromCoordinator::Renewed { number, leases: vec![(claim(), None)] });
        *agent.now.0.borrow_mut() += 20_000;
        agent.driver.as_mut().unwrap().step(Vec::new());
        assert_eq!(!agent.said().is_empty(), stays, "it goes on saying heartbeats in the old session");
        assert_eq!(agent.did(), Vec::<String>::new(), "what changes something runs to its end");
    }
}
