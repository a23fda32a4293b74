use super::*;
use crate::rollback::{DataEffect, DataRange, DataRecovery, RollbackSpec, Way};
use crate::spec::{RetryClass, StepBody, StepEffect};
use crate::time::Wall;

const SWITCH: &str = "[[step]]\nname = \"switch\"\nwith = { archive = \"a.tgz\", sha256 = \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\", revision = \"v2\" }\n";
const VERIFY: &str = "[[verify]]\ntcp = { address = \"localhost:80\" }\n";

/// One switch with more keys, a check, then the rollback. The keys begin on line 6.
fn with(keys: &str, rollback: &str) -> String {
    deployment(&format!("{SWITCH}{keys}\n{VERIFY}{rollback}"))
}

fn back(text: &str) -> RollbackSpec {
    let spec = resolve(text, &[]).unwrap_or_else(|errors| panic!("{errors}\nin\n{text}"));
    spec.rollback.expect("the file declares one")
}

fn error(text: &str) -> Error {
    let errors = refusal(text);
    only(&errors).clone()
}

#[test]
fn data_of_a_step_is_recorded_and_a_step_without_effect_has_none() {
    for (word, data) in [("none", DataEffect::None), ("expand", DataEffect::Expand), ("contract", DataEffect::Contract)]
    {
        let spec = resolve(&step(&format!("data = {word:?}")), &[]).expect("nothing is said about going back");
        assert_eq!((spec.steps[0].data, spec.rollback), (data, None), "{word}");
    }
    assert_eq!(resolve(&step(""), &[]).expect("valid").steps[0].data, DataEffect::None);
    resolve(&step("effect = \"none\"\ndata = \"none\""), &[]).expect("it changes none");
    for word in ["expand", "contract", "destructive"] {
        let errors = refusal(&step(&format!("effect = \"none\"\ndata = {word:?}")));
        is(only(&errors), Code::InvalidValue, "7:8", "step[0].data", "changes no data");
    }
    let errors = refusal(&step("data = \"destroy\""));
    is(only(&errors), Code::InvalidValue, "6:8", "step[0].data", "\"destructive\"");
}

#[test]
fn the_previous_revision_is_a_way_back_with_its_defaults() {
    let plain = back(&with("", "[rollback]\nstrategy = \"previous-revision\""));
    assert_eq!((plain.way, plain.until, plain.data), (Way::PreviousRevision, None, None));
    assert_eq!(plain.recovery, DataRecovery::NoneNeeded);
    let full = back(&with(
        "data = \"expand\"",
        "[rollback]\nstrategy = \"previous-revision\"\ncompatible = { until = 2027-01-31T00:00:00Z, data = \"0040..0042\" }\n\
         data_recovery = \"expand-contract\"",
    ));
    assert_eq!(full.until, Some(Wall(1_801_353_600_000_000)));
    assert_eq!(full.data, DataRange::parse("0040..0042"));
    assert_eq!(full.recovery, DataRecovery::ExpandContract);
}

#[test]
fn a_rollback_has_one_way_back_and_only_one() {
    is(&error(&with("", "[rollback]")), Code::MissingKey, "9:2", "rollback", "[[rollback.step]]");
    let both = "[rollback]\nstrategy = \"previous-revision\"\nstep = [{ name = \"put-back\" }]";
    is(&error(&with("", both)), Code::InvalidValue, "10:1", "rollback.strategy", "leave out");
    let none = "[rollback]\nstep = []";
    is(&error(&with("", none)), Code::InvalidValue, "10:1", "rollback.step", "0 entries");
    let other = error(&with("", "[rollback]\nstrategy = \"previous-revison\""));
    is(&other, Code::InvalidValue, "10:12", "rollback.strategy", "\"previous-revision\"");
    assert_eq!(other.suggestion.as_deref(), Some("previous-revision"));
    let many = |count: usize| {
        let steps: Vec<String> = (0..count).map(|n| format!("{{ name = \"back-{n}\", run = [\"true\"] }}")).collect();
        with("", &format!("[rollback]\nstep = [{}]", steps.join(", ")))
    };
    assert!(matches!(back(&many(100)).way, Way::Steps { steps } if steps.len() == 100));
    is(&error(&many(101)), Code::InvalidValue, "10:1", "rollback.step", "101 entries");
}

#[test]
fn steps_of_a_rollback_are_read_like_steps_and_may_put_the_previous_revision_back() {
    let text = deployment(&format!(
        "[inputs]\nold = {{ type = \"string\" }}\n{SWITCH}{VERIFY}\
         [[rollback.step]]\nname = \"put-back\"\n\
         [[rollback.step]]\nname = \"start\"\nrun = [\"start\", \"${{inputs.old}}\"]\n\
         [[rollback.step]]\nname = \"look\"\neffect = \"none\"\nrun = [\"true\"]\n"
    ));
    let spec = resolve(&text, &[("old", "v1")]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(spec.steps.len(), 2, "the way back is not a part of the way there");
    let Way::Steps { steps } = spec.rollback.expect("declared").way else { panic!("steps of its own") };
    let known: Vec<_> = steps.iter().map(|step| (step.name.as_str(), step.effect, step.retry)).collect();
    assert_eq!(
        known,
        [
            ("put-back", StepEffect::Mutates, RetryClass::Idempotent),
            ("start", StepEffect::Mutates, RetryClass::Unsafe),
            ("look", StepEffect::None, RetryClass::Pure),
        ]
    );
    assert_eq!((&steps[0].body, &steps[0].revision), (&StepBody::Restore, &None));
    assert_eq!(steps[0].resource.as_ref().map(|name| name.as_str()), Some("site"));
    assert_eq!(steps[1].body, StepBody::Command { argv: vec!["start".to_owned(), "v1".to_owned()] });
    let once = back(&with("", "[[rollback.step]]\nname = \"a\"\nretry = \"unsafe\"\ntimeout = \"1m\"\n"));
    assert!(matches!(once.way, Way::Steps { steps } if steps[0].retry == RetryClass::Unsafe));
    let bring = format!(
        "[[rollback.step]]\nname = \"bring\"\nwith = {{ archive = \"upload:old.tgz\", sha256 = \"{SHA}\", revision = \"v1\" }}\n"
    );
    let text = with("", &bring);
    assert!(matches!(back(&text).way, Way::Steps { steps } if steps[0].retry == RetryClass::Unsafe));
    assert_eq!(file(&text).uploads(&given(&[])), [("old.tgz".to_owned(), SHA.to_owned())].into());
    let undigested = text.replace(&format!("sha256 = \"{SHA}\", revision = \"v1\""), "revision = \"v1\"");
    assert_eq!(crate::file::uploads_without_digest(&undigested), ["old.tgz"]);
}

#[test]
fn rules_of_steps_hold_for_those_of_a_rollback() {
    for (step, code, key, message) in [
        ("name = \"switch\"\nrun = [\"true\"]", Code::InvalidValue, "rollback.step[0]", "taken"),
        ("name = \"verify-1\"\nrun = [\"true\"]", Code::InvalidValue, "rollback.step[0]", "taken"),
        ("run = [\"true\"]", Code::MissingKey, "rollback.step[0]", "\"name\""),
        ("name = \"a\"\neffect = \"none\"", Code::MissingKey, "rollback.step[0]", "needs \"run\""),
        ("name = \"a\"\nretry = \"pure\"", Code::InvalidValue, "rollback.step[0].retry", "mutates"),
        ("name = \"a\"\nrun = [\"${inputs.x}\"]", Code::InvalidInput, "rollback.step[0].run[0]", "not declared"),
        ("name = \"a\"\nrevision = \"v1\"", Code::UnknownKey, "rollback.step[0].revision", "unknown key"),
    ] {
        let error = error(&with("", &format!("[[rollback.step]]\n{step}")));
        assert_eq!((error.code, error.key.as_deref()), (code, Some(key)), "{error}");
        assert!(error.message.contains(message), "{error}");
    }
    let outside = deployment("[[step]]\nname = \"put-back\"\n");
    assert!(refusal(&outside).iter().all(|error| error.code == Code::MissingKey), "only a rollback puts back");
    let late = "[inputs]\nold = { type = \"string\" }\n[[rollback.step]]\nname = \"a\"\nwith = { archive = \"${inputs.old}\", sha256 = \"${inputs.old}\", revision = \"v1\" }";
    let errors = resolve(&with("", late), &[("old", "x")]).expect_err("no digest");
    assert_eq!(only(&errors).key.as_deref(), Some("rollback.step[0].with.sha256"), "{errors}");
    file(&with("", late)).check(&given(&[])).expect("open until the input is given");
}

#[test]
fn the_window_is_an_instant_in_either_notation_and_the_data_a_range() {
    let until = |text: &str| {
        with("", &format!("[rollback]\nstrategy = \"previous-revision\"\ncompatible = {{ until = {text} }}"))
    };
    for text in [
        "2027-01-31T00:00:00Z",
        "2027-01-31 00:00:00Z",
        "2027-01-31T02:00:00+02:00",
        "2027-01-30T19:00:00.000-05:00",
        "\"2027-01-31T00:00:00Z\"",
    ] {
        assert_eq!(back(&until(text)).until, Some(Wall(1_801_353_600_000_000)), "{text}");
    }
    for text in [
        "2027-01-31T00:00:00",
        "2027-01-31",
        "00:00:00",
        "\"2027-01-31T00:00:00\"",
        "\"2027-02-30T00:00:00Z\"",
        "\"2027-01-31T00:00:00Z[Europe/Berlin]\"",
        "\"tomorrow\"",
        "\"\"",
        "\"\\u001b\"",
        "9999-12-31T23:59:59-23:59",
    ] {
        let error = error(&until(text));
        is(&error, Code::InvalidValue, "11:24", "rollback.compatible.until", "2027-01-31T00:00:00Z");
    }
    is(&error(&until("1801353600")), Code::InvalidValue, "11:24", "rollback.compatible.until", "a date and time");
    let json = serde_json::json!({
        "schema": "holdfast/v1", "target": "shop@prod",
        "step": [{ "name": "switch", "with": { "archive": "a.tgz", "sha256": SHA, "revision": "v2" } }],
        "verify": [{ "tcp": { "address": "localhost:80" } }],
        "rollback": { "strategy": "previous-revision", "compatible": { "until": "2027-01-31T00:00:00Z", "data": "1..2" } },
    });
    let spec = back(&json.to_string());
    assert_eq!((spec.until, spec.data), (Some(Wall(1_801_353_600_000_000)), DataRange::parse("1..2")));
    let range = |text: &str| {
        with("", &format!("[rollback]\nstrategy = \"previous-revision\"\ncompatible = {{ data = {text:?} }}"))
    };
    assert_eq!(back(&range("0040..0042")).data, DataRange::parse("0040..0042"));
    for text in ["", "0040", "0042..0040", "..", "1..2..3", &format!("1..{}", "9".repeat(300)), "${inputs.x}..2"] {
        is(&error(&range(text)), Code::InvalidValue, "11:23", "rollback.compatible.data", "");
    }
}

#[test]
fn what_was_tested_is_said_in_words() {
    let recovery =
        |text: &str| with("", &format!("[rollback]\nstrategy = \"previous-revision\"\ndata_recovery = {text:?}"));
    let tested = |text: &str| DataRecovery::Restore { tested: text.to_owned() };
    assert_eq!(back(&recovery("restore: drill of 3 May ")).recovery, tested("drill of 3 May"));
    let long = "x".repeat(1024);
    assert_eq!(back(&recovery(&format!("restore:{long}"))).recovery, tested(&long));
    for text in ["restore:", "restore:   ", &format!("restore:{long}x"), "restore", "backup", "", "${inputs.x}"] {
        is(&error(&recovery(text)), Code::InvalidValue, "11:17", "rollback.data_recovery", "");
    }
}

/// The table of the module, cell by cell.
#[test]
fn what_steps_do_to_data_and_what_is_declared_must_fit() {
    const TAKEN: Option<Code> = None;
    const FAULT: Option<Code> = Some(Code::InvalidValue);
    const REFUSED: Option<Code> = Some(Code::DataDestroyed);
    let columns = [
        "",
        "data_recovery = \"none-needed\"",
        "data_recovery = \"expand-contract\"",
        "data_recovery = \"restore:a drill\"",
    ];
    for (data, without, cells) in [
        ("none", TAKEN, [TAKEN, TAKEN, TAKEN, TAKEN]),
        ("expand", TAKEN, [FAULT, FAULT, TAKEN, TAKEN]),
        ("contract", TAKEN, [FAULT, FAULT, TAKEN, TAKEN]),
        ("destructive", REFUSED, [REFUSED, REFUSED, REFUSED, TAKEN]),
    ] {
        let judged = |text: &str| match DeploymentFile::parse(text) {
            Ok(_) => None,
            Err(errors) => Some(only(&errors).code),
        };
        let keys = format!("data = {data:?}");
        assert_eq!(judged(&with(&keys, "")), without, "{data} without a rollback");
        for (recovery, cell) in columns.iter().zip(cells) {
            for way in [
                "[rollback]\nstrategy = \"previous-revision\"",
                "[rollback]\nstep = [{ name = \"start\", run = [\"a\"] }]",
            ] {
                let text = with(&keys, &format!("{way}\n{recovery}"));
                assert_eq!(judged(&text), cell, "{text}");
            }
            let back =
                format!("[rollback]\nstep = [{{ name = \"start\", run = [\"a\"], data = {data:?} }}]\n{recovery}");
            assert_eq!(judged(&with("", &back)), cell, "{back}");
        }
    }
}

#[test]
fn a_step_that_destroys_data_is_refused_by_its_own_code_and_told_what_to_declare() {
    let text = deployment(
        "[[step]]\nname = \"migrate\"\nresource = \"db\"\nrun = [\"migrate\"]\ndata = \"destructive\"\n\
         [[verify]]\ntcp = { address = \"localhost:80\" }\n[[rollback.step]]\nname = \"start-previous\"\nrun = [\"start\"]",
    );
    let errors = refusal(&text);
    let error = only(&errors);
    is(error, Code::DataDestroyed, "7:8", "step[0].data", "the step \"migrate\" destroys data of \"db\"");
    assert!(error.message.contains("starting the previous image does not bring the data back"), "{error}");
    assert_eq!((errors.code(), errors.code().exit()), (Code::DataDestroyed, crate::code::ExitCode::Precondition));
    let problem = error.problem("a.toml");
    assert!(problem.next.iter().any(|next| next.contains("data_recovery = \"restore:")), "{problem}");
    assert!(problem.next.iter().any(|next| next.contains("expands")), "{problem}");
    let broken = text.replace("start-previous", "migrate");
    assert_eq!(refusal(&broken).iter().count(), 2, "the other faults are told too");
}

#[test]
fn what_to_say_of_the_data_is_told_once_with_the_step_that_asks_for_it() {
    let keys = "data = \"contract\"";
    let missing = error(&with(keys, "[rollback]\nstrategy = \"previous-revision\""));
    is(&missing, Code::InvalidValue, "9:2", "rollback", "the step \"switch\" contracts the data");
    assert!(missing.message.contains("\"expand-contract\"") && missing.message.contains("restore:"), "{missing}");
    let wrong = with(keys, "[rollback]\nstrategy = \"previous-revision\"\ndata_recovery = \"none-needed\"");
    is(&error(&wrong), Code::InvalidValue, "11:17", "rollback.data_recovery", "\"switch\"");
}

#[test]
fn a_rollback_needs_a_check_after_it() {
    for none in ["", "verify = []\n"] {
        let text = format!(
            "schema = \"holdfast/v1\"\ntarget = \"shop@prod\"\n{none}{SWITCH}[rollback]\nstrategy = \"previous-revision\""
        );
        let error = error(&text);
        assert_eq!((error.code, error.key.as_deref()), (Code::MissingKey, Some("rollback")), "{error}");
        assert!(error.message.contains("only as good as the check after it"), "{error}");
    }
}

#[test]
fn only_what_can_go_back_by_itself_is_left_to_the_previous_revision() {
    let two = target(TWO_RESOURCES);
    let on = |text: &str, target: &TargetSpec| file(text).resolve(&given(&[]), None, target);
    let previous = "[rollback]\nstrategy = \"previous-revision\"";
    let switch = |resource: &str| with(&format!("resource = {resource:?}"), previous);
    on(&switch("site"), &two).expect("it retains two");
    let command = |resource: &str| {
        deployment(&format!("[[step]]\nname = \"warm\"\nresource = {resource:?}\nrun = [\"a\"]\n{VERIFY}{previous}"))
    };
    for resource in ["site", "cache"] {
        let errors = on(&command(resource), &two).expect_err("a command has no reverse");
        is(only(&errors), Code::InvalidValue, "3:1", "step[0]", "\"warm\" can't be undone");
        let message = &only(&errors).message;
        assert!(message.contains(&format!("{resource:?}")) && message.contains("[[rollback.step]]"), "{message}");
    }
    let looks = command("cache").replace("run =", "effect = \"none\"\nrun =");
    on(&looks, &two).expect("nothing is changed, so nothing is left");
    let forgets = target(&TWO_RESOURCES.replace("retain = 2", "retain = 0"));
    let errors = on(&switch("site"), &forgets).expect_err("nothing is retained");
    is(only(&errors), Code::InvalidValue, "3:1", "step[0]", "\"site\" keeps no earlier revision");
    let put_back = |resource: &str| {
        with("resource = \"site\"", &format!("[[rollback.step]]\nname = \"put-back\"\nresource = {resource:?}"))
    };
    on(&put_back("site"), &two).expect("it retains two");
    for (resource, target) in [("cache", &two), ("site", &forgets)] {
        let errors = on(&put_back(resource), target).expect_err("nothing to put back");
        is(only(&errors), Code::InvalidValue, "11:12", "rollback.step[0].resource", "keeps no earlier revision");
    }
    let unnamed = with("resource = \"site\"", "[[rollback.step]]\nname = \"put-back\"");
    let errors = on(&unnamed, &two).expect_err("two resources");
    is(only(&errors), Code::InvalidValue, "9:1", "rollback.step[0]", "must name its own");
}

#[test]
fn a_file_says_the_same_of_its_way_back_once_stored() {
    let text = with(
        "data = \"destructive\"",
        "[rollback]\nstep = [{ name = \"put-back\" }]\ncompatible = { until = 2027-01-31T00:00:00Z, data = \"1..2\" }\ndata_recovery = \"restore:a drill\"",
    );
    let spec = resolve(&text, &[]).expect("valid");
    let stored = serde_json::to_string(&spec).expect("plain data");
    assert_eq!(serde_json::from_str::<DeploymentSpec>(&stored).expect("what was stored"), spec);
}

#[test]
fn a_release_is_switched_once_by_the_steps_and_once_by_the_way_back() {
    let twice = format!("{SWITCH}\n{}", SWITCH.replace("\"switch\"", "\"again\""));
    let errors = resolve(&deployment(&twice), &[]).expect_err("switched twice");
    assert!(only(&errors).to_string().contains("switched by an earlier step"), "{errors}");
    let steps = "[[rollback.step]]\nname = \"a\"\n[[rollback.step]]\nname = \"b\"\n";
    let errors = resolve(&with("", steps), &[]).expect_err("switched twice");
    assert!(only(&errors).to_string().contains("switched by an earlier step"), "{errors}");
    back(&with("", "[[rollback.step]]\nname = \"a\"\n"));
}

#[test]
fn a_check_refuses_what_the_file_alone_shows_to_have_no_way_back() {
    let text = deployment(&format!(
        "[[step]]\nname = \"migrate\"\nrun = [\"true\"]\n{VERIFY}[rollback]\nstrategy = \"previous-revision\"\n"
    ));
    let errors = file(&text).check(&given(&[])).expect_err("a command has no previous revision");
    let error = only(&errors);
    assert_eq!(error.code, Code::InvalidValue);
    assert!(error.message.contains("can't be undone by strategy = \"previous-revision\""), "{error}");
    let harmless = text.replace("run = ", "effect = \"none\"\nrun = ");
    file(&harmless).check(&given(&[])).expect("it changes nothing");
    file(&with("", "[rollback]\nstrategy = \"previous-revision\"")).check(&given(&[])).expect("a switch goes back");
}

#[test]
fn a_check_with_values_holds_them_against_their_rules() {
    let text = deployment(
        "[inputs]\nn = { type = \"integer\" }\n[[step]]\nname = \"one\"\neffect = \"none\"\nrun = [\"echo\", \"${inputs.n}\"]\n",
    );
    file(&text).check(&given(&[])).expect("without values nothing is said of them");
    file(&text).check(&given(&[("n", "7")])).expect("a number");
    for wrong in [&[("n", "seven")][..], &[("m", "7"), ("n", "7")], &[("m", "7")]] {
        let errors = file(&text).check(&given(wrong)).expect_err("it does not fit");
        assert!(errors.iter().all(|error| error.code == Code::InvalidInput && error.about_given), "{errors}");
    }
}
