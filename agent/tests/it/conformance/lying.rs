//! Adapters that claim what they don't do. The suite must find each of them: a harness that can't fail proves nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use holdfast_common::adapter::{Capability, Enforce, Inspect};
use holdfast_common::fence::Fence;
use holdfast_common::outcome::{OperationState, Reading};

use super::command::{CommandSubject, says};
use super::http::HttpSubject;
use super::postgres::PostgresSubject;
use super::release::ReleaseSubject;
use super::{Make, Named, Subject, declared, killed, once, paused, stale};

/// A subject under another declaration.
struct Claims<S> {
    inner: S,
    capability: Capability,
    calls: Vec<&'static str>,
}

impl<S: Subject> Claims<S> {
    fn of(inner: S, change: impl FnOnce(&mut Capability)) -> Self {
        let (mut capability, calls) = (inner.capability(), inner.calls());
        change(&mut capability);
        Self { inner, capability, calls }
    }
}

impl<S: Subject> Subject for Claims<S> {
    fn capability(&self) -> Capability {
        self.capability
    }

    fn calls(&self) -> Vec<&'static str> {
        self.calls.clone()
    }

    fn apply(&self, named: &Named, fence: Fence) -> Command {
        self.inner.apply(named, fence)
    }

    fn inspect(&self, named: &Named) -> Command {
        self.inner.inspect(named)
    }

    fn raise(&self, named: &Named, fence: Fence) -> Option<Command> {
        self.inner.raise(named, fence)
    }

    fn underwent(&self) -> Vec<String> {
        self.inner.underwent()
    }

    fn back_up(&mut self) {
        self.inner.back_up();
    }

    fn restore(&mut self) {
        self.inner.restore();
    }

    fn down(&mut self) {
        self.inner.down();
    }

    fn up(&mut self) {
        self.inner.up();
    }

    fn replace(&mut self) {
        self.inner.replace();
    }

    fn lose_answer(&mut self, named: &Named, fence: Fence) -> Option<Command> {
        self.inner.lose_answer(named, fence)
    }
}

/// A command that remembers operations and the highest fence, looks at both, and then acts: all but atomic.
struct LooksFirst(CommandSubject);

impl LooksFirst {
    fn new() -> Self {
        let inner = CommandSubject::new();
        std::fs::write(inner.place().join("knows-operations"), "").unwrap();
        Self(inner)
    }

    fn reading(&self, named: &Named) -> Reading {
        let text = |file: &str| std::fs::read_to_string(self.0.place().join(file)).ok();
        Reading {
            resource_identity: "one".to_owned(),
            state: if self.0.knows(named) { OperationState::Applied } else { OperationState::NotApplied },
            revision: text("revision").map(|text| text.trim().parse().unwrap()),
            active: None,
            highest_fence: text("floor").and_then(|text| Fence::from_u64(text.parse().unwrap())),
            retained: Vec::new(),
            detail: String::new(),
        }
    }
}

impl Subject for LooksFirst {
    fn capability(&self) -> Capability {
        Capability { inspect: Inspect::Operation, enforce: Enforce::Fence, outlives: false }
    }

    fn calls(&self) -> Vec<&'static str> {
        self.0.calls()
    }

    fn apply(&self, named: &Named, fence: Fence) -> Command {
        self.0.apply(named, fence)
    }

    fn inspect(&self, named: &Named) -> Command {
        says(Some(&self.reading(named)))
    }

    fn raise(&self, named: &Named, fence: Fence) -> Option<Command> {
        std::fs::write(self.0.place().join("floor"), fence.as_u64().to_string()).unwrap();
        Some(self.inspect(named))
    }

    fn underwent(&self) -> Vec<String> {
        self.0.underwent()
    }

    fn back_up(&mut self) {
        self.0.back_up();
    }

    fn restore(&mut self) {
        self.0.restore();
    }

    fn down(&mut self) {
        self.0.down();
    }

    fn up(&mut self) {
        self.0.up();
    }

    fn replace(&mut self) {
        self.0.replace();
    }

    fn lose_answer(&mut self, named: &Named, fence: Fence) -> Option<Command> {
        self.0.lose_answer(named, fence)
    }
}

/// The check must fail, with these words.
#[track_caller]
fn is_caught(check: fn(Make<'_>), make: Make<'_>, words: &str) {
    let caught = catch_unwind(AssertUnwindSafe(|| check(make))).expect_err("the lie went through");
    let said = caught.downcast_ref::<String>().cloned();
    let said = said.or_else(|| caught.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default();
    assert!(said.contains(words), "caught by chance: {said}");
}

#[test]
fn a_look_before_the_effect_passes_for_a_fence_until_it_is_paused_in_between() {
    let make: Make<'_> = &|| Box::new(LooksFirst::new());
    stale::a_stale_fence_is_refused_after_a_raise(make);
    once::the_same_operation_twice_has_one_effect(make);
    is_caught(
        paused::an_attempt_paused_anywhere_changes_nothing_after_a_raise,
        make,
        "paused before write: took effect after the raise had returned",
    );
    is_caught(once::two_agents_with_one_operation_have_one_effect, make, "one operation, not one effect");
}

#[test]
fn a_revision_that_nobody_compares_is_found() {
    let make: Make<'_> = &|| Box::new(Claims::of(CommandSubject::new(), |claims| claims.enforce = Enforce::Revision));
    is_caught(stale::of_two_operations_the_later_fence_is_last, make, "declares more than it does");
}

#[test]
fn an_api_that_is_said_to_compare_more_or_less_than_it_does_is_found() {
    let claim = |claims: &mut Capability| claims.enforce = Enforce::Revision;
    let make: Make<'_> = &|| Box::new(Claims::of(HttpSubject::with_nothing(), claim));
    is_caught(stale::of_two_operations_the_later_fence_is_last, make, "declares more than it does");
    let make: Make<'_> = &|| Box::new(Claims::of(HttpSubject::new(), claim));
    is_caught(stale::of_two_operations_the_later_fence_is_last, make, "declares less than it does");
}

#[test]
fn a_fence_that_does_not_stop_what_has_begun_is_found() {
    let make: Make<'_> = &|| Box::new(Claims::of(PostgresSubject::outside(), |claims| claims.enforce = Enforce::Fence));
    stale::a_stale_fence_is_refused_after_a_raise(make);
    is_caught(paused::an_attempt_paused_anywhere_changes_nothing_after_a_raise, make, "paused before statement");
}

#[test]
fn operations_that_nobody_remembers_are_found() {
    let make: Make<'_> = &|| Box::new(Claims::of(CommandSubject::new(), |claims| claims.inspect = Inspect::Operation));
    is_caught(declared::what_is_read_of_operations_is_what_is_declared, make, "declares more than it does");
    is_caught(once::the_same_operation_twice_has_one_effect, make, "[\"0001\", \"0001\", \"0001\"]");
}

#[test]
fn an_effect_that_comes_after_its_process_has_ended_is_found() {
    let make: Make<'_> = &|| {
        let subject = CommandSubject::new();
        std::fs::write(subject.place().join("hold"), "").unwrap();
        Box::new(subject)
    };
    is_caught(once::an_accepted_change_is_there_when_its_process_has_ended, make, "what the first operation did");
}

#[test]
fn who_declares_less_than_is_done_is_found_too() {
    let make: Make<'_> = &|| Box::new(Claims::of(ReleaseSubject::new(), |claims| claims.enforce = Enforce::None));
    is_caught(stale::of_two_operations_the_later_fence_is_last, make, "declares less than it does");
    let make: Make<'_> = &|| Box::new(Claims::of(ReleaseSubject::new(), |claims| claims.inspect = Inspect::Revision));
    is_caught(declared::what_is_read_of_operations_is_what_is_declared, make, "declares less than it does");
}

#[test]
fn a_call_that_is_never_reached_is_named() {
    let make: Make<'_> = &|| {
        let mut claims = Claims::of(CommandSubject::new(), |_| {});
        claims.calls.push("publish");
        Box::new(claims)
    };
    is_caught(
        killed::an_attempt_killed_anywhere_is_read_rightly_and_completed_once,
        make,
        "never reached: [\"publish\"]",
    );
}
