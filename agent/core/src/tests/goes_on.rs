//! A process that an earlier attempt began goes on under a new claim.

use super::*;

fn goes_on(steps: Vec<StepSpec>) -> Assignment {
    let goes_on = crate::work::GoesOn { attempts: vec![AttemptId(Uuid::from_u128(1))], step: name("switch") };
    Assignment { claim: claim(2, 2), goes_on: Some(goes_on), ..work(steps).assignment }
}

fn readmitted(held: Option<&Work>, told: &[ReportBody], steps: Vec<StepSpec>) -> Option<(Work, Vec<Action>)> {
    crate::readmit::readmit(goes_on(steps), held, told, LIVE, session(2), NOW)
}

#[test]
fn a_running_process_goes_on_under_the_new_claim_and_is_not_started_again() {
    let mut held = running();
    let _superseded = decide(&mut held, LATER, Input::Superseded);
    let (mut work, actions) = readmitted(Some(&held), &[], vec![step("switch", StepEffect::Mutates)]).unwrap();
    assert_eq!(actions, [Action::Journal]);
    assert_eq!(work.assignment.folder(), AttemptId(Uuid::from_u128(1)), "its records stay where they are");
    assert!(work.wants_lease());
    let ended = decide(&mut work, NOW, ended_as(StepEnd::Applied));
    assert!(reports(&ended).contains(&&ReportBody::AttemptEnded { end: AttemptEnd::Succeeded }));
}

#[test]
fn an_end_that_was_told_under_the_old_claim_is_told_again_under_the_new_one_and_the_next_step_follows() {
    let steps = || vec![step("switch", StepEffect::Mutates), step("restart", StepEffect::Mutates)];
    let told = ReportBody::StepEnded {
        step: name("switch"),
        end: StepEnd::Applied,
        exit: None,
        observed: None,
        detail: "done".to_owned(),
    };
    let (work, actions) = readmitted(None, std::slice::from_ref(&told), steps()).unwrap();
    assert_eq!(reports(&actions), [&told]);
    assert!(actions.contains(&Action::AskPermit(name("restart"))), "{actions:?}");
    assert_eq!(work.step().map(|step| step.name.clone()), Some(name("restart")));
}

#[test]
fn a_journal_that_holds_nothing_of_it_says_nothing_of_it() {
    assert_eq!(readmitted(None, &[ReportBody::cancel_received()], vec![step("switch", StepEffect::Mutates)]), None);
}
