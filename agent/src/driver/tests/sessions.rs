//! What holds over sessions and restarts.

use std::time::Duration;

use holdfast_common::report::{Disposition, ReportSequence};

use super::*;

#[test]
fn offer_is_taken_once_and_leads_to_a_permit_request_under_the_plan() {
    let mut agent = Agent::new();
    agent.connect(1, 1);
    agent.tell(1, offer());
    let said = agent.said();
    let asked =
        said.iter().find_map(|message| if let Message::PermitRequest(asked) = message { Some(asked) } else { None });
    assert_eq!(asked.unwrap().plan_digest, "plan");
    agent.tell(1, offer());
    let again = agent.said();
    assert!(
        matches!(&again[..], [Message::OfferAnswer(answer)] if answer.kind == v1::OfferAnswerKind::Accepted as i32)
    );
}

#[test]
fn host_policy_is_the_last_wall() {
    let mut agent = Agent::new();
    agent.connect(1, 1);
    agent.tell(1, offer_on("bank@prod"));
    let said = agent.said();
    let declined = said.iter().any(|message| {
        matches!(message, Message::OfferAnswer(answer) if answer.reason == v1::DeclineReason::HostPolicy as i32)
    });
    assert!(declined);
}

#[test]
fn report_that_was_not_answered_is_said_again_in_the_next_session_and_after_a_restart() {
    let mut agent = Agent::new();
    agent.launched();
    assert_eq!(agent.down(), Hurry::HoldsWork);
    agent.step(ended("done"));
    agent.restart();
    agent.connect(2, 1);
    let said = agent.said();
    let sequences: Vec<u64> = reports(&said).iter().map(|report| report.sequence).collect();
    assert_eq!(sequences, [1, 2, 3], "started, ended, attempt ended");
    for sequence in sequences {
        agent.tell(2, FromCoordinator::Disposition(ReportSequence(sequence), Disposition::Accepted));
    }
    assert_eq!(agent.down(), Hurry::Idle, "nothing is left to say");
    agent.connect(3, 1);
    assert_eq!(reports(&agent.said()), Vec::<&v1::Report>::new());
}

#[test]
fn restarted_agent_looks_at_what_may_run_and_starts_nothing() {
    let mut agent = Agent::new();
    agent.launched();
    agent.restart();
    assert_eq!(agent.did(), ["survey switch"]);
    agent.step(Event::Hand(HandEvent::FoundNotStarted(claim().attempt)));
    assert_eq!(agent.did(), ["tombstone switch"]);
}

#[test]
fn message_of_an_older_session_is_not_heard() {
    let mut agent = Agent::new();
    agent.connect(1, 1);
    agent.tell(1, offer());
    agent.connect(2, 1);
    agent.tell(1, permit(None));
    assert_eq!(agent.did(), Vec::<String>::new());
}

#[test]
fn coordinator_that_is_behind_what_was_seen_is_not_talked_to() {
    let mut agent = Agent::new();
    agent.connect(1, 9);
    agent.said();
    agent.restart();
    agent.connect(2, 8);
    assert_eq!(agent.said(), Vec::new());
}

#[test]
fn oversized_text_is_cut_and_marked_before_it_is_stored() {
    let mut agent = Agent::new();
    agent.launched();
    agent.step(ended(&"x".repeat(10_000)));
    let said = agent.said();
    let texts: Vec<&str> = reports(&said)
        .iter()
        .filter_map(|report| match &report.body {
            Some(v1::report::Body::StepEnded(ended)) => Some(ended.detail.as_str()),
            Some(_) | None => None,
        })
        .collect();
    assert_eq!(texts.len(), 1);
    assert!(texts[0].len() <= 64 && texts[0].ends_with("[cut]"), "{texts:?}");
}

#[test]
fn a_loop_without_work_and_contact_turns_all_the_same() {
    let agent = Agent::new();
    assert!(agent.driver.as_ref().unwrap().patience() <= Duration::from_secs(1));
}
