//! Invariant: once a raise has returned, no attempt at or below its fence changes `current` any more, however it was
//! paused, killed or raced, and what is read afterwards is what happened.

use std::collections::BTreeSet;
use std::process::Output;

use crate::support::{Paused, Site, apply, fence, fence_in, raise, resume, wait_for_pause};
use holdfast_agent::adapters::release::calls::Call;
use holdfast_agent::adapters::release::{Fate, Raised};
use holdfast_common::outcome::OperationState;

const REFUSED_BY_FENCE: i32 = 73;

/// A folder where v1 was applied under fence 1, so that its slot is still open.
fn site_with_v1() -> Site {
    let site = Site::new();
    assert!(apply(&site.spec(1, fence(1))).output().unwrap().status.success());
    assert_eq!(site.served().as_deref(), Some("v1"));
    site
}

fn halt(who: &str, call: Call, how: &str) -> String {
    format!("{who}.{}={how}", call.name())
}

fn raised(output: &Output) -> Raised {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Checks what must hold after an attempt at v2 under fence 2 and a raise to 3 have both ended. `raises` are all raises'
/// answers, `served` what was served when the last of them had returned.
fn judge(site: &Site, attempt: Option<&Output>, raises: &[Raised], served: Option<&str>, what: &str) {
    assert_eq!(site.served().as_deref(), served, "{what}: current changed after the raise had returned");
    let flipped = served == Some("v2");
    assert!(flipped || served == Some("v1"), "{what}: {served:?}");
    if let Some(output) = attempt {
        let text = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => assert!(flipped, "{what}: said applied, is not"),
            Some(REFUSED_BY_FENCE) => assert!(!flipped, "{what}: said refused, is applied"),
            other => panic!("{what}: {other:?} {text}"),
        }
    }
    let fates: Vec<Fate> = raises
        .iter()
        .flat_map(|raise| &raise.slots)
        .filter(|slot| slot.fence == fence(2))
        .map(|slot| slot.fate)
        .collect();
    assert!(fates.iter().all(|fate| (*fate == Fate::Flipped) == flipped), "{what}: flipped={flipped} {fates:?}");
    assert!(fates.iter().filter(|fate| **fate == Fate::Taken).count() <= 1, "{what}: {fates:?}");
    assert!(raises.iter().all(|raise| raise.highest >= fence(3)), "{what}");
    let reading = site.inspect(2);
    let expected = if flipped { OperationState::Applied } else { OperationState::NotApplied };
    assert_eq!(
        (reading.state, reading.revision.as_ref().map(|r| r.as_str())),
        (expected, served),
        "{what}: {reading:?}"
    );
    assert_eq!(reading.highest_fence, Some(fence(3)), "{what}");
    assert_eq!(site.inspect(1).state, OperationState::Applied, "{what}");
}

/// The attempt stands before `at`, the raiser runs up to `until`, then the attempt goes on to its end, then the raiser.
fn attempt_goes_on_first(at: Call, until: Call) -> (bool, bool) {
    let what = format!("attempt paused before {}, raiser before {}", at.name(), until.name());
    let site = site_with_v1();
    let attempt = apply(&site.spec(2, fence(2))).env("HOLDFAST_HALT", halt("apply", at, "stop")).spawn().unwrap();
    let attempt_paused = wait_for_pause(&attempt) == Paused::Stopped;
    let raiser = raise(&site.root, fence(3)).env("HOLDFAST_HALT", halt("raise", until, "stop")).spawn().unwrap();
    let raiser_paused = wait_for_pause(&raiser) == Paused::Stopped;
    if attempt_paused {
        resume(&attempt);
    }
    let attempt = attempt.wait_with_output().unwrap();
    if raiser_paused {
        resume(&raiser);
    }
    let answer = raised(&raiser.wait_with_output().unwrap());
    let served = site.served();
    judge(&site, Some(&attempt), &[answer], served.as_deref(), &what);
    (attempt_paused, raiser_paused)
}

/// The attempt stands before `at` until the raise has returned, and only then goes on.
fn raise_returns_first(at: Call) {
    let what = format!("attempt paused before {} until the raise returned", at.name());
    let site = site_with_v1();
    let attempt = apply(&site.spec(2, fence(2))).env("HOLDFAST_HALT", halt("apply", at, "stop")).spawn().unwrap();
    let paused = wait_for_pause(&attempt) == Paused::Stopped;
    let answer = raised(&raise(&site.root, fence(3)).output().unwrap());
    let served = site.served();
    let reading = site.inspect(2).state;
    if paused {
        resume(&attempt);
    }
    let attempt = attempt.wait_with_output().unwrap();
    judge(&site, Some(&attempt), &[answer], served.as_deref(), &what);
    // What was read before it thawed was final.
    assert_eq!(reading, site.inspect(2).state, "{what}");
}

#[test]
fn a_flip_paused_anywhere_meets_a_raise_paused_anywhere() {
    let (mut attempts, mut raisers) = (BTreeSet::new(), BTreeSet::new());
    for at in Call::ALL {
        for until in Call::ALL {
            let (attempt_paused, raiser_paused) = attempt_goes_on_first(*at, *until);
            attempts.extend(attempt_paused.then_some(at.name()));
            raisers.extend(raiser_paused.then_some(until.name()));
        }
        raise_returns_first(*at);
    }
    for reached in
        ["flip", "make-next", "make-slot", "unpack", "record-preparing", "record-applied", "sync-root", "exchange"]
    {
        assert!(attempts.contains(reached), "no attempt was paused before {reached}: {attempts:?}");
    }
    for reached in ["bury", "stage", "exchange", "sync-slots", "take-next", "remove-taken", "sync-root", "write-floor"]
    {
        assert!(raisers.contains(reached), "no raiser was paused before {reached}: {raisers:?}");
    }
}

#[test]
fn a_raise_killed_anywhere_is_finished_by_the_next_one() {
    for at in Call::ALL {
        for until in [Call::MakeSlot, Call::MakeNext, Call::Flip, Call::RecordApplied] {
            let what = format!("attempt paused before {}, raiser killed before {}", until.name(), at.name());
            let site = site_with_v1();
            let attempt =
                apply(&site.spec(2, fence(2))).env("HOLDFAST_HALT", halt("apply", until, "stop")).spawn().unwrap();
            assert_eq!(wait_for_pause(&attempt), Paused::Stopped, "{what}");
            let first = raise(&site.root, fence(3)).env("HOLDFAST_HALT", halt("raise", *at, "abort")).output().unwrap();
            let mut answers = Vec::new();
            if first.status.success() {
                answers.push(raised(&first));
            }
            answers.push(raised(&raise(&site.root, fence(3)).output().unwrap()));
            let served = site.served();
            resume(&attempt);
            let attempt = attempt.wait_with_output().unwrap();
            judge(&site, Some(&attempt), &answers, served.as_deref(), &what);
            assert_eq!(std::fs::read_dir(site.root.join("taken")).unwrap().count(), 0, "{what}");
        }
    }
}

#[test]
fn an_attempt_killed_anywhere_is_read_rightly_and_repeated_without_a_second_effect() {
    let mut died_at = BTreeSet::new();
    for at in Call::ALL {
        let what = format!("attempt killed before {}", at.name());
        let site = site_with_v1();
        let first = apply(&site.spec(2, fence(2))).env("HOLDFAST_HALT", halt("apply", *at, "abort")).output().unwrap();
        if !first.status.success() {
            died_at.insert(at.name());
        }
        let flipped = site.served().as_deref() == Some("v2");
        let expected = if flipped { OperationState::Applied } else { OperationState::NotApplied };
        assert_eq!(site.inspect(2).state, expected, "{what}");
        let link = std::fs::read_link(site.root.join("current")).unwrap();
        assert!(apply(&site.spec(2, fence(3))).output().unwrap().status.success(), "{what}");
        assert_eq!(site.served().as_deref(), Some("v2"), "{what}");
        if flipped {
            assert_eq!(std::fs::read_link(site.root.join("current")).unwrap(), link, "{what}: a second flip");
        }
        // The next operation settles what the killed one left, so that it is still told rightly.
        assert!(apply(&site.spec(3, fence(4))).output().unwrap().status.success(), "{what}");
        assert_eq!(site.inspect(2).state, OperationState::Applied, "{what}");
        assert_eq!(site.served().as_deref(), Some("v3"), "{what}");
    }
    for reached in ["flip", "record-applied", "exchange", "take-next", "make-slot", "unpack"] {
        assert!(died_at.contains(reached), "{reached} was never reached: {died_at:?}");
    }
}

#[test]
fn an_applier_killed_anywhere_in_a_virgin_folder_can_be_followed() {
    for at in Call::ALL {
        let site = Site::new();
        let _ = apply(&site.spec(1, fence(1))).env("HOLDFAST_HALT", halt("apply", *at, "abort")).output().unwrap();
        let answer = raised(&raise(&site.root, fence(2)).output().unwrap());
        let flipped = site.served().is_some();
        let expected = if flipped { OperationState::Applied } else { OperationState::NotApplied };
        let reading = site.inspect(1);
        assert_eq!((reading.state, &reading.resource_identity), (expected, &answer.resource_identity), "{}", at.name());
    }
}

#[test]
fn an_older_epoch_is_refused_as_a_whole() {
    for at in [
        Call::MakeFolder,
        Call::Bury,
        Call::MakeEpoch,
        Call::RecordPreparing,
        Call::MakeSlot,
        Call::MakeNext,
        Call::Flip,
    ] {
        let site = site_with_v1();
        let attempt = apply(&site.spec(2, fence(7))).env("HOLDFAST_HALT", halt("apply", at, "stop")).spawn().unwrap();
        let paused = wait_for_pause(&attempt) == Paused::Stopped;
        let before = site.served();
        let answer = raised(&raise(&site.root, fence_in(3, 1)).output().unwrap());
        if paused {
            resume(&attempt);
        }
        let attempt = attempt.wait_with_output().unwrap();
        assert_eq!(site.served(), before, "{}", at.name());
        assert_eq!(answer.highest, fence_in(3, 1));
        if paused {
            assert_eq!(
                attempt.status.code(),
                Some(REFUSED_BY_FENCE),
                "{}: {}",
                at.name(),
                String::from_utf8_lossy(&attempt.stderr)
            );
        }
    }
}

#[test]
fn two_raises_and_a_flip_race_freely() {
    let rounds: u32 = std::env::var("HOLDFAST_ROUNDS").ok().map_or(200, |text| text.parse().unwrap());
    let (mut flips, mut refusals) = (0, 0);
    for round in 0..rounds {
        let site = site_with_v1();
        // The raisers start when the attempt stands close before its flip, so that both ends of the race are seen.
        let at = [Call::MakeSlot, Call::MakeNext, Call::Flip][round as usize % 3];
        let attempt = apply(&site.spec(2, fence(2))).env("HOLDFAST_HALT", halt("apply", at, "stop")).spawn().unwrap();
        assert_eq!(wait_for_pause(&attempt), Paused::Stopped);
        let close = halt("raise", Call::Exchange, "stop").replace('=', if round % 2 == 0 { ":2=" } else { ":1=" });
        let first = raise(&site.root, fence(3)).env("HOLDFAST_HALT", &close).spawn().unwrap();
        let second = raise(&site.root, fence(3)).env("HOLDFAST_HALT", &close).spawn().unwrap();
        let stopped: Vec<bool> = [&first, &second].map(|raiser| wait_for_pause(raiser) == Paused::Stopped).to_vec();
        let order = round % 3;
        for turn in 0..3 {
            match (turn + order) % 3 {
                0 => resume(&attempt),
                1 if stopped[0] => resume(&first),
                2 if stopped[1] => resume(&second),
                _ => {}
            }
        }
        let answers = [raised(&first.wait_with_output().unwrap()), raised(&second.wait_with_output().unwrap())];
        let served = site.served();
        let attempt = attempt.wait_with_output().unwrap();
        judge(&site, Some(&attempt), &answers, served.as_deref(), &format!("round {round}"));
        if attempt.status.success() { flips += 1 } else { refusals += 1 }
    }
    assert!(
        rounds < 50 || (flips > 0 && refusals > 0),
        "the race had one winner only: {flips} flips, {refusals} refusals"
    );
}
