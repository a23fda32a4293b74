//! What the agent says and waits for when it is asked to stop.

use holdfast_common::report::{Disposition, ReportSequence};

use super::*;

fn detached(said: &[Message]) -> Option<&v1::Detach> {
    said.iter().find_map(|message| if let Message::Detach(detach) = message { Some(detach) } else { None })
}

fn exit(agent: &mut Agent) -> (bool, bool) {
    let exit = &agent.driver.as_ref().unwrap().exit;
    (exit.going.is_cancelled(), exit.stop.is_cancelled())
}

#[test]
fn a_stop_says_how_long_and_what_it_holds_and_then_no_more() {
    let mut agent = Agent::new();
    agent.launched();
    agent.step(Event::Leave);
    let said = agent.said();
    let detach = detached(&said).expect("it says that it goes");
    assert_eq!(detach.away.map(|away| away.seconds), Some(60));
    assert_eq!(detach.claims, [holdfast_proto::convert::claim_to_wire(claim())]);
    assert_eq!(exit(&mut agent), (true, false), "the last word is on its way");
    agent.step(Event::Leave);
    *agent.now.0.borrow_mut() += 5_000;
    agent.step(ended("after"));
    assert!(agent.said().is_empty(), "nothing follows the last word");
    agent.restart();
    assert_eq!(
        agent.driver.as_ref().unwrap().journal.unanswered().unwrap().len(),
        3,
        "what came after it is journaled"
    );
}

#[test]
fn a_stop_without_work_or_without_contact_goes_at_once() {
    let mut idle = Agent::new();
    idle.connect(1, 1);
    idle.step(Event::Leave);
    assert!(detached(&idle.said()).is_none());
    assert_eq!(exit(&mut idle), (true, true));
    let mut alone = Agent::new();
    alone.launched();
    let _ = alone.down();
    alone.step(Event::Leave);
    assert_eq!(exit(&mut alone), (true, true));
}

#[test]
fn a_finish_takes_nothing_new_waits_in_words_and_is_hastened() {
    let mut agent = Agent::new();
    agent.driver.as_mut().unwrap().config.stop.mode = config::StopMode::Finish;
    agent.launched();
    agent.step(Event::Leave);
    assert_eq!(exit(&mut agent), (false, false));
    let line = agent.driver.as_ref().unwrap().standing.line();
    assert_eq!(line, "in contact; stopping, waits for shop@prod: step switch runs, a change");
    let FromCoordinator::Offer { mut assignment, ttl } = offer_on("shop@test") else { unreachable!("an offer") };
    assignment.claim.attempt = AttemptId(Uuid::from_u128(9));
    agent.tell(1, FromCoordinator::Offer { assignment, ttl });
    let declines = |message: &Message| matches!(message, Message::OfferAnswer(answer) if answer.reason() == v1::DeclineReason::Draining);
    assert!(agent.said().iter().any(declines), "it takes nothing new");
    agent.step(Event::Leave);
    assert!(detached(&agent.said()).is_some(), "a second request hastens");
}

#[test]
fn a_finish_goes_when_the_coordinator_has_answered_the_end() {
    let mut agent = Agent::new();
    agent.driver.as_mut().unwrap().config.stop.mode = config::StopMode::Finish;
    agent.launched();
    agent.step(Event::Leave);
    agent.step(ended("done"));
    assert_eq!(exit(&mut agent), (false, false), "its end is not answered");
    for sequence in 1..=3 {
        agent.tell(1, FromCoordinator::Disposition(ReportSequence(sequence), Disposition::Accepted));
    }
    assert_eq!(exit(&mut agent), (true, true), "nothing is held any more");
}

#[test]
fn a_finish_goes_when_the_coordinator_has_the_outputs_too() {
    let mut agent = Agent::new();
    agent.driver.as_mut().unwrap().config.stop.mode = config::StopMode::Finish;
    agent.connect(1, 1);
    *agent.noted.2.borrow_mut() = 1;
    agent.step(Event::Leave);
    assert_eq!(exit(&mut agent), (false, false), "its end has not arrived");
    let line = agent.driver.as_ref().unwrap().standing.line();
    assert_eq!(line, "in contact; stopping, waits for outputs that are not sent yet (attempts: 1)");
    *agent.noted.2.borrow_mut() = 0;
    agent.driver.as_mut().unwrap().step(Vec::new());
    assert_eq!(exit(&mut agent), (true, true));
}
