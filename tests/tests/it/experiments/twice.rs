//! Every step is run twice under the same operation id: what a retry does whose report was lost.

use holdfast_proto::v1::{AttestedTarget, DecisionKind, DeploymentState, StepState};
use holdfast_tests::api::state_of;

use super::scene::{Command, Scene};
use super::table::{Fault, Point, Step};
use crate::cases::Cases;

/// How a step comes to be run a second time.
#[derive(Clone, Copy, Debug)]
enum Again {
    /// It changes nothing, so another attempt follows.
    ByItself,
    /// Somebody decides. A mistaken attestation is the worst that can be: it says that nothing was applied.
    Decided { attests: Option<AttestedTarget> },
}

/// A step that is run twice.
#[derive(Clone, Copy, Debug)]
struct Twice {
    step: Step,
    command: Command,
    again: Again,
    /// What the target underwent in the end.
    effects: usize,
}

/// It was applied, and somebody says that it was not.
const MISTAKEN: Again = Again::Decided { attests: Some(AttestedTarget::NotApplied) };

fn all() -> [Twice; 5] {
    let (unsafe_one, idempotent) = (Command::once_only(), Command::idempotent());
    let unproven = Again::Decided { attests: None };
    [
        Twice { step: Step::Release, command: unsafe_one, again: MISTAKEN, effects: 1 },
        Twice { step: Step::Look, command: unsafe_one, again: Again::ByItself, effects: 1 },
        Twice { step: Step::Command, command: idempotent, again: unproven, effects: 1 },
        // The target underwent it twice, because a person said that it had not.
        Twice { step: Step::Command, command: unsafe_one, again: MISTAKEN, effects: 2 },
        Twice { step: Step::Check, command: unsafe_one, again: Again::ByItself, effects: 1 },
    ]
}

/// Once in the ledger, wherever the step can be repeated; and nobody but a person repeats one that can't.
#[test]
fn every_step_that_runs_twice_has_one_effect_and_an_unsafe_one_runs_twice_only_by_decision() {
    let mut cases = Cases::default();
    for twice in all() {
        cases.add(&format!("twice {:?} {}", twice.step, twice.command.retry), async move || run(twice).await);
    }
    cases.run();
}

async fn run(twice: Twice) {
    let point = match twice.again {
        Again::ByItself => Point::Begun,
        Again::Decided { .. } => Point::EffectDone,
    };
    let fault = Fault::AgentCut;
    let mut scene = Scene::at(twice.step, point, fault.lease(), twice.command, None).await;
    fault.inject(&mut scene).await;
    fault.last(&scene).await;
    fault.end(&mut scene).await;
    scene.let_go();
    if let Again::Decided { attests } = twice.again {
        let lost = scene.settled(true).await;
        assert_eq!((state_of(&lost), lost.attempts.len()), (DeploymentState::Uncertain, 1), "{lost:#?}");
        scene.until_stopped().await;
        let once = scene.effects(twice.step);
        if attests.is_some() && twice.step == Step::Command {
            scene.refused(DecisionKind::Retry).await;
        }
        assert_eq!(
            (once, scene.deployment().await.attempts.len()),
            (1, 1),
            "it ran again, and nobody had decided that"
        );
        scene.decide(attests, DecisionKind::Retry).await;
    }
    let ended = scene.ended().await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
    assert_eq!(ended.attempts.len(), 2, "{ended:#?}");
    for attempt in &ended.attempts {
        let step = &attempt.steps[twice.step.index()];
        assert!(step.started.is_some() && step.state() != StepState::Carried, "it was not run: {attempt:#?}");
    }
    assert_eq!(ended.attempts[1].steps[twice.step.index()].state(), StepState::Applied);
    scene.check(if twice.step == Step::Command { twice.effects } else { 1 }).await;
}
