use super::*;

fn lost(effect: StepEffect, inspect: Inspect, enforce: Enforce, outlives: bool) -> Lost<'static> {
    Lost {
        effect,
        capability: Capability { inspect, enforce, outlives },
        reach: Reach::Shared,
        retry: RetryClass::Unsafe,
        policy: Policy::Manual,
        target: "shop@prod",
        ttl: Millis::from_secs(30),
        changed_before: false,
        may_follow: true,
    }
}

const ANY_AGENT: &str =
    "a fence-off through any agent that reaches it keeps the lost attempt from changing anything more";
const OWN_WORD: &str = "it can't be fenced off: only its own agent's word, when that comes back, proves that it stopped, or a person attests it";
const NO_WORD: &str =
    "it can't be fenced off and its effect can outlive its process: a person must attest that it stopped";
const APPLIED: &str = "an inspection then tells whether it was applied";
const REVISION: &str = "an inspection then tells the revision that is there";
const UNREADABLE: &str = "nothing can read it back: a person must attest what is there";

#[test]
fn each_pair_of_effect_and_capability_has_its_sentence() {
    use Enforce as E;
    use Inspect as I;
    let rows = [
        (I::Operation, E::Fence, false, ANY_AGENT, APPLIED),
        (I::Operation, E::Fence, true, ANY_AGENT, APPLIED),
        (I::Operation, E::Revision, false, OWN_WORD, APPLIED),
        (I::Operation, E::Revision, true, NO_WORD, APPLIED),
        (I::Operation, E::None, false, OWN_WORD, APPLIED),
        (I::Operation, E::None, true, NO_WORD, APPLIED),
        (I::Revision, E::Fence, false, ANY_AGENT, REVISION),
        (I::Revision, E::Fence, true, ANY_AGENT, REVISION),
        (I::Revision, E::Revision, false, OWN_WORD, REVISION),
        (I::Revision, E::Revision, true, NO_WORD, REVISION),
        (I::Revision, E::None, false, OWN_WORD, REVISION),
        (I::Revision, E::None, true, NO_WORD, REVISION),
        (I::None, E::Fence, false, ANY_AGENT, UNREADABLE),
        (I::None, E::Fence, true, ANY_AGENT, UNREADABLE),
        (I::None, E::Revision, false, OWN_WORD, UNREADABLE),
        (I::None, E::Revision, true, NO_WORD, UNREADABLE),
        (I::None, E::None, false, OWN_WORD, UNREADABLE),
        (I::None, E::None, true, NO_WORD, UNREADABLE),
    ];
    for (inspect, enforce, outlives, runner, reading) in rows {
        let expected = format!(
            "uncertain after 30s without a word, and shop@prod stays held; {runner}; {reading}; a person decides"
        );
        assert_eq!(lost(StepEffect::Mutates, inspect, enforce, outlives).sentence(), expected);
        // What could be proven of a change is no question where nothing changes.
        assert_eq!(
            lost(StepEffect::None, inspect, enforce, outlives).sentence(),
            "nothing is changed by it: after 30s without a word another attempt follows by itself"
        );
    }
}

#[test]
fn a_step_without_effect_stands_where_the_steps_before_it_and_the_tries_left_put_it() {
    let read = lost(StepEffect::None, Inspect::None, Enforce::None, true);
    for (changed_before, may_follow, end) in [
        (false, true, "another attempt follows by itself"),
        (false, false, "it ends as failed, nothing changed"),
        (true, true, "another attempt follows and carries over what was applied before"),
        (true, false, "no further try is left, and the deployment is held for a decision"),
    ] {
        let sentence = Lost { changed_before, may_follow, ..read }.sentence();
        assert_eq!(sentence, format!("nothing is changed by it: after 30s without a word {end}"));
    }
}

#[test]
fn reach_and_retry_class_and_policy_change_what_can_be_done() {
    let fenced = lost(StepEffect::Mutates, Inspect::Operation, Enforce::Fence, false);
    let host = Lost { reach: Reach::Host, ..fenced };
    assert!(host.sentence().contains("through its host's agent"), "{}", host.sentence());
    let blind = Lost { retry: RetryClass::Idempotent, ..lost(StepEffect::Mutates, Inspect::None, Enforce::None, true) };
    assert!(blind.sentence().contains("it is safe to repeat"), "{}", blind.sentence());
    let own = lost(StepEffect::Mutates, Inspect::None, Enforce::None, false);
    for (of, policy, end) in [
        (fenced, Policy::Manual, "a person decides"),
        (fenced, Policy::WhenProven, "the target's policy may decide once that is proven"),
        (fenced, Policy::TrustReport, "the target's policy may decide once that is proven or reported"),
        (own, Policy::WhenProven, "the target's policy can't decide what can't be proven: a person does"),
        (own, Policy::TrustReport, "the target's policy may decide on its agent's report"),
        (blind, Policy::TrustReport, "the target's policy can't decide what can't be proven: a person does"),
    ] {
        let sentence = Lost { policy, ..of }.sentence();
        assert!(sentence.ends_with(end), "{sentence}");
    }
}
