use std::collections::BTreeSet;

use holdfast_common::adapter::Adapter;
use holdfast_common::id::ResourceName;
use holdfast_common::recovery::Policy;
use holdfast_common::spec::{QueueKind, Reach, ResourceAdapter, ResourceSpec, TargetSpec};
use uuid::Uuid;

use super::*;

const NOW: Wall = Wall(1);

fn agent(name: &str) -> AgentName {
    AgentName::new(name).expect("a name")
}

fn profile(labels: &[(&str, &str)], adapters: &[&str]) -> Profile {
    Profile {
        incarnation: IncarnationId(Uuid::from_u128(7)),
        labels: labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        adapters: adapters.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(),
        targets: Vec::new(),
        version: String::new(),
        instance: String::new(),
    }
}

fn target() -> TargetSpec {
    let resource = |name: &str, reach, adapter| ResourceSpec { name: ResourceName::new(name).unwrap(), reach, adapter };
    TargetSpec {
        name: TargetName::new("shop@prod").unwrap(),
        agents: [("role".to_owned(), "shop".to_owned())].into(),
        policy: Policy::Manual,
        patience: None,
        queue: QueueKind::Fifo,
        resources: vec![
            resource("site", Reach::Host, ResourceAdapter::Release { root: "/srv/shop".to_owned(), retain: 2 }),
            resource("db", Reach::Shared, ResourceAdapter::Command { inspect: None, outlives: true }),
        ],
    }
}

/// A session that has just begun.
struct Attached {
    session: SessionId,
    outgoing: Outgoing,
    answers: Answers,
}

fn attach(directory: &Directory, name: &str, profile: Profile) -> Attached {
    let (session, (outgoing, answers)) = (SessionId(Uuid::new_v4()), Outgoing::new());
    let hello = (profile, Standing::default());
    assert!(directory.attach(&agent(name), hello, session, &outgoing, v1::Welcome::default(), NOW));
    Attached { session, outgoing, answers }
}

fn both() -> Profile {
    profile(&[("role", "shop")], &["command", "release"])
}

#[test]
fn a_newer_session_replaces_the_older_which_is_told() {
    let directory = Directory::default();
    let mut older = attach(&directory, "web-07", both());
    let newer = attach(&directory, "web-07", both());
    let codes = older.answers.take();
    assert!(
        matches!(&codes[..], [v1::connect_response::Message::Welcome(_), v1::connect_response::Message::Bye(bye)] if bye.code == "HF-5005")
    );
    assert!(older.outgoing.is_over() && !newer.outgoing.is_over());
    assert!(!directory.detach(&agent("web-07"), older.session), "the older one's end is no news");
    assert!(directory.list()[0].connected);
    let heard = Wall(NOW.0 + 5);
    directory.heard(&agent("web-07"), newer.session, heard);
    assert!(directory.detach(&agent("web-07"), newer.session));
    assert!(!directory.list()[0].connected);
    assert_eq!(directory.last_heard(&agent("web-07")), Some(heard), "the end of a session is no sign of life");
}

#[test]
fn what_an_agent_has_no_room_for_is_told_until_it_says_otherwise_or_is_gone() {
    let directory = Directory::default();
    let (name, session) = (agent("web-07"), attach(&directory, "web-07", both()));
    let no_room = Some(v1::NoRoom { why: "the disk\nis full".to_owned(), begins_no_step: true });
    directory.has_room(&name, SessionId(Uuid::new_v4()), no_room.clone());
    assert_eq!(directory.no_room(&name), None, "another session's word");
    directory.has_room(&name, session.session, no_room.clone());
    let told = directory.no_room(&name).expect("told");
    assert!(told.begins_no_step && !told.why.contains('\n'), "{told:?}");
    assert_eq!(directory.list()[0].no_room, Some(told));
    directory.has_room(&name, session.session, None);
    assert_eq!(directory.no_room(&name), None);
    directory.has_room(&name, session.session, no_room);
    directory.detach(&name, session.session);
    assert_eq!((directory.no_room(&name), directory.list()[0].no_room.clone()), (None, None), "nobody knows now");
}

#[test]
fn a_full_queue_ends_the_session_and_never_waits() {
    let directory = Directory::default();
    let slow = attach(&directory, "web-07", both());
    for _ in 0..QUEUE {
        slow.outgoing.send(v1::connect_response::Message::HeartbeatAnswer(v1::HeartbeatAnswer::default()));
    }
    assert!(slow.outgoing.is_over());
}

#[test]
fn candidates_are_those_that_the_selector_matches_each_with_its_why() {
    let directory = Directory::default();
    directory.remember(agent("a-silent"), both(), NOW);
    let _b = attach(&directory, "b-other", profile(&[("role", "mail")], &["command", "release"]));
    let _c = attach(&directory, "c-poor", profile(&[("role", "shop")], &["command"]));
    let _d = attach(&directory, "d-strict", Profile { targets: vec!["blog@*".to_owned()], ..both() });
    let _e = attach(&directory, "e-fit", Profile { targets: vec!["shop@*".to_owned()], ..both() });
    let gone = attach(&directory, "f-gone", both());
    directory.detach(&agent("f-gone"), gone.session);
    let told: Vec<(String, bool, Option<String>)> = directory
        .candidates(&target(), &BTreeSet::from([Adapter::Command, Adapter::Release]))
        .into_iter()
        .map(|candidate| (candidate.agent.to_string(), candidate.incarnation.is_some(), candidate.unfit))
        .collect();
    let why = |text: &str| Some(text.to_owned());
    assert_eq!(
        told,
        [
            ("a-silent".to_owned(), false, why("no contact since the coordinator started")),
            ("c-poor".to_owned(), true, why("its host does not offer the adapter release of resource site")),
            ("d-strict".to_owned(), true, why("its host does not allow shop@prod")),
            ("e-fit".to_owned(), true, None),
            ("f-gone".to_owned(), false, why("no contact: its session is over")),
        ]
    );
    let checked = directory.candidates(&target(), &BTreeSet::from([Adapter::Release, Adapter::Check]));
    let fit = checked.iter().find(|candidate| candidate.agent == agent("e-fit")).unwrap();
    assert_eq!(fit.unfit, why("its host does not offer the adapter check, which a step needs"));
}

#[test]
fn a_host_bound_resource_is_reached_from_its_own_host_only_and_a_shared_one_by_all_in_contact() {
    let directory = Directory::default();
    directory.remember(agent("a"), both(), NOW);
    let _b = attach(&directory, "b", both());
    let _c = attach(&directory, "c", both());
    let (site, db) = (ResourceName::new("site").unwrap(), ResourceName::new("db").unwrap());
    let (target, home) = (target(), agent("c"));
    assert_eq!(directory.reachable(&target, &site, Some(&home)), [agent("c")]);
    assert_eq!(directory.reachable(&target, &site, None), []);
    assert_eq!(directory.reachable(&target, &site, Some(&agent("a"))), [], "no contact");
    assert_eq!(directory.reachable(&target, &db, Some(&home)), [agent("b"), agent("c")]);
    assert_eq!(directory.reachable(&target, &ResourceName::new("none").unwrap(), Some(&home)), []);
}
