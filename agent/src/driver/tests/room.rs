//! A host without room: what it says, and what it keeps back.

use std::sync::Arc;

use holdfast_common::id::EvidenceId;

use super::*;
use crate::driver::Finding;
use crate::driver::after::LOOKS;
use crate::room::HostRoom;

#[test]
fn what_finds_no_room_in_the_journal_is_neither_said_nor_done_until_it_is_durable() {
    let mut agent = Agent::new();
    agent.connect(1, 1);
    agent.said();
    agent.driver.as_mut().unwrap().journal.bound(true);
    agent.tell(1, large_offer());
    for round in 1..=3 {
        *agent.now.0.borrow_mut() += 500;
        agent.driver.as_mut().unwrap().step(Vec::new());
        let said = agent.said();
        assert!(said.iter().all(|message| matches!(message, Message::Heartbeat(_))), "round {round}: {said:?}");
        assert_eq!(said.len(), 1, "heartbeats go on");
    }
    let (reply, mut hello) = tokio::sync::oneshot::channel();
    agent.step(Event::Hello(reply));
    assert!(hello.try_recv().unwrap().held.is_empty(), "a Hello says what is durable");

    agent.driver.as_mut().unwrap().journal.bound(false);
    agent.driver.as_mut().unwrap().step(Vec::new());
    let said = agent.said();
    let accepted = |message: &&Message| matches!(message, Message::OfferAnswer(_));
    let asked = |message: &&Message| matches!(message, Message::PermitRequest(_));
    assert_eq!((said.iter().filter(accepted).count(), said.iter().filter(asked).count()), (1, 1), "{said:?}");
    agent.restart();
    assert_eq!(agent.driver.as_ref().unwrap().works.len(), 1, "it was durable when it was said");
}

#[test]
fn a_heartbeat_says_what_the_host_has_no_room_for() {
    let mut agent = Agent::new();
    let (_descriptors, watched) = tokio::sync::watch::channel(holdfast_net::room::Descriptors::Enough);
    // More than any disk has.
    let room = HostRoom::on(&agent.folder, 1 << 60, watched);
    agent.driver = agent.driver.take().map(|driver| driver.on(Arc::new(room)));
    agent.connect(1, 1);
    *agent.now.0.borrow_mut() += 1_000;
    agent.driver.as_mut().unwrap().step(Vec::new());
    let said = agent.said();
    let no_room = beats(&said).last().and_then(|beat| beat.no_room.clone()).expect("it says so");
    assert!(no_room.begins_no_step && no_room.why.contains("the disk is full"), "{no_room:?}");
}

#[test]
fn looks_beyond_what_a_host_can_do_at_once_are_answered_and_not_begun() {
    let mut agent = Agent::new();
    agent.connect(1, 1);
    agent.said();
    let resource = holdfast_common::spec::ResourceSpec {
        name: ResourceName::new("site").unwrap(),
        reach: holdfast_common::spec::Reach::Shared,
        adapter: holdfast_common::spec::ResourceAdapter::Command { inspect: None, outlives: false },
    };
    let FromCoordinator::Offer { assignment, .. } = offer() else { unreachable!("an offer") };
    let inquiry = |number: u128| Inquiry {
        id: EvidenceId(Uuid::from_u128(number)),
        target: assignment.target.clone(),
        resource: resource.clone(),
        operation: holdfast_common::id::OperationId { deployment: claim().deployment, step: step_name() },
        step: assignment.steps[0].clone(),
        question: crate::session::Question::Inspect,
    };
    let ask = |agent: &mut Agent, number| agent.tell(1, FromCoordinator::Inquiry(Box::new(inquiry(number))));
    (0..100).for_each(|number| ask(&mut agent, number));
    assert_eq!(agent.did().len(), LOOKS);
    let answers = agent.said().into_iter().filter(|said| matches!(said, Message::InquiryAnswer(_))).count();
    assert_eq!(answers, 100 - LOOKS, "the others are told at once");
    let done = HandEvent::Inquired(EvidenceId(Uuid::from_u128(0)), Finding::Failed("looked".to_owned()));
    agent.step(Event::Hand(done));
    ask(&mut agent, 100);
    assert_eq!(agent.did().len(), 1, "there is room again");
}
