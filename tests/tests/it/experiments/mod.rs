//! Failure experiments before and after each change that others can see: every step of a deployment in turn, at every point,
//! by every kind of fault; and every step twice. The target's own ledger is the oracle.

mod crashing;
mod faults;
mod scene;
mod silent;
mod table;
mod twice;

use holdfast_proto::v1::DeploymentState;
use holdfast_tests::api::state_of;

use faults::{ROUNDS, rounds};
use scene::{Command, Scene};
use table::{Cell, End, Fault, Point, Seen, Step, cell};

use crate::cases::Cases;

/// A cell that is tried out.
#[derive(Clone, Copy, Debug)]
struct Experiment {
    step: Step,
    point: Point,
    fault: Fault,
    /// A seeded fault of the product, which the experiment must see.
    bug: Option<&'static str>,
}

/// A step that fails anywhere, by anything, leads to the state that the table says, and from there to an end that the target's
/// own ledger agrees with.
#[test]
fn every_step_that_fails_at_any_point_by_any_fault_is_told_truly_and_brought_to_its_end() {
    let mut cases = Cases::default();
    for round in 0..rounds() {
        for step in Step::ALL {
            for point in Point::ALL {
                for fault in Fault::ALL {
                    let one = Experiment { step: *step, point: *point, fault: *fault, bug: None };
                    let Cell::Follows(expected, end) = cell(*step, *point, *fault) else { continue };
                    cases.add(&format!("{step:?} {point:?} {fault:?} {round}"), async move || {
                        one.run(expected, end).await;
                    });
                }
            }
        }
    }
    assert!(cases.count() > 0, "{ROUNDS} is 0, or no cell has that name");
    cases.run();
}

/// The experiments can fail.
#[test]
fn a_seeded_fault_is_seen_by_the_experiment_that_it_breaks() {
    let seen_by = [
        ("free_on_expiry", Step::Release, Point::EffectDone, Fault::AgentCut),
        ("lapse_as_failed", Step::Command, Point::Permitted, Fault::HostPaused),
    ];
    let mut cases = Cases::default();
    for (bug, step, point, fault) in seen_by {
        let one = Experiment { step, point, fault, bug: Some(bug) };
        cases.add(bug, async move || assert!(one.fails(), "{one:?} did not see it"));
    }
    cases.run();
}

impl Experiment {
    /// Whether it panics, on a thread of its own.
    fn fails(self) -> bool {
        let run = move || {
            let Cell::Follows(expected, end) = cell(self.step, self.point, self.fault) else { return };
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
            runtime.expect("a runtime").block_on(self.run(expected, end));
        };
        std::thread::spawn(run).join().is_err()
    }

    async fn run(self, expected: Seen, end: End) {
        let Self { step, point, fault, bug } = self;
        let mut scene = Scene::at(step, point, fault.lease(), Command::once_only(), bug).await;
        fault.inject(&mut scene).await;
        fault.last(&scene).await;
        match end {
            End::ByItself => {
                fault.end(&mut scene).await;
                assert_eq!(seen(&scene, expected, true).await, expected);
            }
            End::Policy => {
                assert_eq!(seen(&scene, expected, false).await, expected);
                scene.ask().await;
                let ended = scene.operator.until_ended(scene.label()).await;
                let decision = ended.decisions.last().expect("a decision");
                assert_eq!((decision.by.as_str(), decision.attested), ("policy", false), "{decision:?}");
                fault.end(&mut scene).await;
            }
            End::Person { attests, decides } => {
                // What is to be readmitted must still be there then.
                let let_go = decides != holdfast_proto::v1::DecisionKind::Readmit;
                fault.end(&mut scene).await;
                if let_go {
                    assert_eq!(state_of(&scene.settled(let_go).await), expected.deployment);
                    scene.until_stopped().await;
                }
                assert_eq!(seen(&scene, expected, let_go).await, expected);
                assert!(
                    scene.ledger().intervals().len() <= 1,
                    "an unsafe step began again, and nobody had decided that"
                );
                scene.decide(attests, decides).await;
            }
        }
        let ended = scene.ended().await;
        assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
        scene.check(1).await;
    }
}

/// How it stands before anybody decides.
async fn seen(scene: &Scene, expected: Seen, let_go: bool) -> Seen {
    let found = scene.settled(let_go).await;
    let hit = found.attempts.first().expect("it has an attempt");
    scene.until_effects(expected.effects).await;
    Seen {
        deployment: state_of(&found),
        attempt: hit.state(),
        told: hit.steps[scene.step.index()].state(),
        followed: found.attempts.len() > 1,
        effects: scene.effects(scene.step),
    }
}
