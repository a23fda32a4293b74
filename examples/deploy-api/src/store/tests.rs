use super::*;
use crate::request::{Body, Submission};

fn store() -> Store {
    Store::open(Path::new(":memory:"), Some("app@prod/service")).expect("a store in memory")
}

fn submission(key: &str, fence: u64, revision: &str, expected: Option<&str>) -> Submission {
    let text = format!(r#"{{"revision":"{revision}"}}"#);
    let body = Body::read(&text).expect("a body");
    Submission { key: key.to_owned(), fence, expected: expected.map(str::to_owned), text, body }
}

fn accepted(store: &mut Store, submission: &Submission) -> Run {
    let (submitted, run) = store.submit(submission).expect("written");
    assert!(matches!(submitted, Submitted::Accepted(_)), "{submitted:?}");
    run.expect("what is accepted is run")
}

fn done(store: &mut Store, submission: &Submission) {
    let run = accepted(store, submission);
    assert!(store.begin(&run).expect("written"));
    store.take_effect(&run).expect("written");
}

fn state(store: &Store, key: &str) -> State {
    store.deployment(key).expect("read").expect("known").state
}

fn underwent(store: &mut Store) -> Vec<String> {
    let history = store.resource().expect("read").history;
    history.into_iter().filter(|entry| entry.what == "deployed").filter_map(|entry| entry.revision).collect()
}

#[test]
fn the_same_operation_takes_effect_once() {
    let mut store = store();
    let first = submission("one", 5, "v1", None);
    done(&mut store, &first);
    for fence in [5, 6] {
        let (submitted, run) = store.submit(&submission("one", fence, "v1", None)).expect("written");
        assert!(matches!(submitted, Submitted::Known(ref known) if known.state == State::Succeeded), "{submitted:?}");
        assert_eq!(run, None);
    }
    assert_eq!(underwent(&mut store), ["v1"]);
    let (submitted, _) = store.submit(&submission("one", 6, "v2", None)).expect("written");
    assert_eq!(submitted, Submitted::OtherBody);
}

#[test]
fn nothing_below_a_raised_fence_takes_effect_whatever_was_accepted_before() {
    for begun in [false, true] {
        let mut store = store();
        let run = accepted(&mut store, &submission("one", 5, "v1", None));
        if begun {
            assert!(store.begin(&run).expect("written"));
        }
        assert_eq!(store.raise(6).expect("written"), 6);
        assert_eq!(state(&store, "one"), State::Refused, "it is over when the raise has answered");
        assert!(!store.begin(&run).expect("written"));
        store.take_effect(&run).expect("written");
        assert_eq!(underwent(&mut store), Vec::<String>::new());
        let (submitted, _) = store.submit(&submission("two", 5, "v2", None)).expect("written");
        assert_eq!(submitted, Submitted::FencedOff { highest: 6 });
        assert_eq!(store.raise(4).expect("written"), 6, "it is never lowered");
    }
}

#[test]
fn what_left_nothing_is_run_again_under_a_higher_fence_alone() {
    let mut store = store();
    let old = accepted(&mut store, &submission("one", 5, "v1", None));
    assert_eq!(store.raise(6).expect("written"), 6);
    let run = accepted(&mut store, &submission("one", 7, "v1", None));
    store.take_effect(&old).expect("written");
    assert_eq!(underwent(&mut store), Vec::<String>::new(), "the work of the earlier go counts for nothing");
    assert!(store.begin(&run).expect("written"));
    store.take_effect(&run).expect("written");
    assert_eq!((underwent(&mut store), state(&store, "one")), (vec!["v1".to_owned()], State::Succeeded));
}

#[test]
fn another_one_waits_under_the_same_fence_and_wins_under_a_higher_one() {
    let mut store = store();
    accepted(&mut store, &submission("one", 5, "v1", None));
    let (submitted, _) = store.submit(&submission("two", 5, "v2", None)).expect("written");
    assert_eq!(submitted, Submitted::Busy { with: "one".to_owned() });
    done(&mut store, &submission("two", 6, "v2", None));
    assert_eq!((state(&store, "one"), underwent(&mut store)), (State::Refused, vec!["v2".to_owned()]));
}

#[test]
fn a_stale_revision_is_refused_when_it_comes_and_when_it_would_take_effect() {
    let mut store = store();
    done(&mut store, &submission("one", 5, "v1", None));
    let (submitted, _) = store.submit(&submission("two", 6, "v2", Some("v0"))).expect("written");
    assert_eq!(submitted, Submitted::Revision { found: Some("v1".to_owned()) });
    let run = accepted(&mut store, &submission("two", 6, "v2", Some("v1")));
    store.connection.execute("UPDATE resource SET revision = 'by hand'", []).expect("written");
    store.take_effect(&run).expect("written");
    assert_eq!((state(&store, "two"), underwent(&mut store)), (State::Refused, vec!["v1".to_owned()]));
}

#[test]
fn the_same_operation_goes_on_under_the_fence_of_its_next_attempt() {
    let mut store = store();
    let run = accepted(&mut store, &submission("one", 5, "v1", None));
    let (submitted, again) = store.submit(&submission("one", 6, "v1", None)).expect("written");
    assert!(matches!(submitted, Submitted::Known(ref known) if known.fence == 6), "{submitted:?}");
    assert_eq!(again, None);
    store.take_effect(&run).expect("written");
    assert_eq!(store.resource().expect("read").history[0].fence, 6);
}
