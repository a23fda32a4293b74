//! What a file would do.

use super::*;

fn possible(agent: &str, why_not: &str, declined: &str) -> v1::PlannedAgent {
    v1::PlannedAgent { agent: agent.to_owned(), why_not: why_not.to_owned(), declined: declined.to_owned() }
}

fn planned() -> v1::Plan {
    let step = |name: &str, effect: StepEffect, lost: &str| v1::PlannedStep {
        name: name.to_owned(),
        effect: effect as i32,
        adapter: "command".to_owned(),
        retry: v1::RetryClass::Pure as i32,
        if_contact_is_lost: lost.to_owned(),
        ..v1::PlannedStep::default()
    };
    v1::Plan {
        target: "shop@prod".to_owned(),
        label: "shop@prod#13".to_owned(),
        plan_digest: "3f2a".to_owned(),
        inputs: [("revision".to_owned(), "v2".to_owned())].into(),
        order: Some(41),
        lease_ttl: Some(duration_to_wire(Millis(30_000))),
        max_attempts: 3,
        policy: "manual".to_owned(),
        entry: v1::PlanEntry::Waits as i32,
        entry_because: "bob has put the target on hold: freeze".to_owned(),
        hold: Some(v1::TargetHold {
            by: "bob".to_owned(),
            reason: "freeze".to_owned(),
            since: stamp(0),
            until: stamp(3_600),
        }),
        before: vec![v1::DeploymentSummary {
            label: "shop@prod#12".to_owned(),
            state: DeploymentState::Queued as i32,
            ..v1::DeploymentSummary::default()
        }],
        agents: vec![
            possible("web-01", "", ""),
            possible("web-02", "no contact", ""),
            possible("web-03", "", "shop@prod#11: its host's policy forbids it"),
        ],
        steps: vec![
            step("fetch", StepEffect::None, "nothing is changed by it"),
            v1::PlannedStep {
                adapter: "release".to_owned(),
                resource: "site".to_owned(),
                retry: v1::RetryClass::Idempotent as i32,
                timeout: Some(duration_to_wire(Millis(600_000))),
                wanted_revision: "v2".to_owned(),
                expected_revision: "v1".to_owned(),
                pin: v1::PinHolds::Yes as i32,
                ..step("switch", StepEffect::Mutates, "uncertain after 30s; a fence-off; a person decides")
            },
        ],
        resources: vec![v1::PlannedResource {
            resource: "site".to_owned(),
            knowledge: v1::RevisionKnowledge::Recorded as i32,
            revision: "v1".to_owned(),
            recorded_at: stamp(0),
            source: "as shop@prod#11 left it on web-01".to_owned(),
            wanted_revision: "v2".to_owned(),
        }],
        not_undone: vec!["what the command of step migrate changes".to_owned()],
        ..v1::Plan::default()
    }
}

#[test]
fn a_plan_says_what_would_run_and_where_it_would_stand() {
    let expected = "\
shop@prod would be shop@prod#13 and wait: bob has put the target on hold: freeze
  plan       3f2a
  with       revision=v2
  order      41
  lease      30s, 3 tries
  policy     manual
  on hold    by bob since 14:20:00Z (2m ago), until 15:20:00Z: freeze
  before it  shop@prod#12 (queued)
  agents     web-01 can run it now, as far as its coordinator knows; the host's own policy is asked at the offer
             web-02 can't: no contact
             web-03 could run it now, if its host's policy lets it: it declined shop@prod#11: its host's policy forbids it

#  STEP    EFFECT   BY       ON    RETRY       TIMEOUT  WANTED  EXPECTS
1  fetch   none     command        pure
2  switch  mutates  release  site  idempotent  10m      v2      v1, as is on record

RESOURCE  NOW  WANTED  RECORDED            FROM
site      v1   v2      14:20:00Z (2m ago)  as shop@prod#11 left it on web-01

If contact is lost during
  fetch   nothing is changed by it
  switch  uncertain after 30s
          a fence-off
          a person decides

A rollback would not undo
  what the command of step migrate changes
";
    assert_eq!(plan(&planned(), canvas()), expected);
}

#[test]
fn a_plan_that_would_begin_or_be_refused_says_so_first() {
    let begins = v1::Plan { entry: v1::PlanEntry::Begins as i32, ..planned() };
    assert!(plan(&begins, canvas()).starts_with("shop@prod would be shop@prod#13 and begin at once\n"));
    let refused = v1::Plan {
        entry: v1::PlanEntry::Refused as i32,
        entry_because: "order key 9 is lower than 10\u{1b}[31m".to_owned(),
        refused_code: "HF-2012".to_owned(),
        ..planned()
    };
    let shown = plan(&refused, canvas());
    assert!(
        shown.starts_with("shop@prod would be refused (HF-2012): order key 9 is lower than 10\\u{1b}[31m\n"),
        "{shown}"
    );
}
