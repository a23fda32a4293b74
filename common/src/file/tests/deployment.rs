use std::collections::BTreeSet;

use super::*;
use crate::recovery::Policy;
use crate::spec::{RetryClass, StepEffect};
use crate::time::Millis;

#[test]
fn unknown_keys_are_told_with_place_and_what_was_meant() {
    let errors = refusal(&step("timout = \"5s\"\n[leese]\nttl = \"3s\""));
    let errors: Vec<&Error> = errors.iter().collect();
    is(errors[0], Code::UnknownKey, "6:1", "step[0].timout", "unknown key \"timout\"");
    assert_eq!(errors[0].suggestion.as_deref(), Some("timeout"));
    is(errors[1], Code::UnknownKey, "7:2", "leese", "unknown key");
    assert_eq!(errors[1].suggestion.as_deref(), Some("lease"));
    assert!(errors[1].to_string().ends_with("did you mean \"lease\"?"));
    let errors = refusal(&step("zzzzzz = 1"));
    assert_eq!(only(&errors).suggestion, None);
}

#[test]
fn words_outside_their_list_are_told_with_what_was_meant() {
    let errors = refusal(&step("retry = \"idempotant\""));
    is(only(&errors), Code::InvalidValue, "6:9", "step[0].retry", "not one of \"pure\", \"idempotent\", \"unsafe\"");
    assert_eq!(only(&errors).suggestion.as_deref(), Some("idempotent"));
}

#[test]
fn the_schema_is_required_and_other_versions_are_refused_by_name() {
    is(only(&refusal("target = \"a\"")), Code::MissingKey, "1:1", "", "\"schema\" is required");
    let other = "schema = \"holdfast/v2\"\nsteps_of_the_future = 1";
    is(only(&refusal(other)), Code::NotSupported, "1:10", "schema", "holdfast/v2");
    is(only(&refusal("schema = \"nomad\"")), Code::InvalidValue, "1:10", "schema", "\"nomad\"");
    is(only(&refusal("schema = 1")), Code::InvalidValue, "1:10", "schema", "expected a string");
}

#[test]
fn a_deployment_needs_a_step_and_names_are_unique() {
    is(only(&refusal(&deployment(""))), Code::MissingKey, "1:1", "", "\"step\"");
    is(only(&refusal(&deployment("step = []"))), Code::InvalidValue, "3:1", "step", "0 entries");
    let twice = deployment("[[step]]\nname = \"a\"\nrun = [\"true\"]\n[[step]]\nname = \"a\"\nrun = [\"true\"]");
    is(only(&refusal(&twice)), Code::InvalidValue, "6:1", "step[1]", "taken");
    is(only(&refusal(&deployment("[[step]]\nrun = [\"true\"]"))), Code::MissingKey, "3:1", "step[0]", "\"name\"");
}

#[test]
fn names_are_plain_and_nothing_is_substituted_in_them() {
    for name in ["../up", "-rf", "a b", "${inputs.x}", ""] {
        let errors = refusal(&deployment(&format!(
            "[inputs]\nx = {{ type = \"string\" }}\n[[step]]\nname = {name:?}\nrun = [\"a\"]"
        )));
        assert_eq!(only(&errors).key.as_deref(), Some("step[0].name"), "{errors}");
    }
    assert_eq!(
        only(&refusal("schema = \"holdfast/v1\"\ntarget = \"a/b\"\nstep=[{name=\"a\",run=[\"a\"]}]")).key.as_deref(),
        Some("target")
    );
}

#[test]
fn defaults_are_those_of_the_manual() {
    let spec = resolve(&step(""), &[]).expect("valid");
    assert_eq!((spec.lease_ttl, spec.cancel_grace), (Millis::from_secs(30), Millis::from_secs(10)));
    assert_eq!(spec.retry.max_attempts, 3);
    assert_eq!((spec.retry.backoff_initial, spec.retry.backoff_max), (Millis::from_secs(2), Millis::from_secs(60)));
    let one = &spec.steps[0];
    assert_eq!((one.effect, one.retry, one.timeout), (StepEffect::Mutates, RetryClass::Unsafe, None));
    assert_eq!(one.resource.as_ref().map(|name| name.as_str()), Some("site"));
    let spec = resolve(&step("effect = \"none\""), &[]).expect("valid");
    assert_eq!((spec.steps[0].retry, &spec.steps[0].resource), (RetryClass::Pure, &None));
}

#[test]
fn pure_goes_with_effect_none_and_with_nothing_else() {
    resolve(&step("effect = \"none\"\nretry = \"pure\""), &[]).expect("valid");
    is(only(&refusal(&step("retry = \"pure\""))), Code::InvalidValue, "6:9", "step[0].retry", "mutates");
    for class in ["idempotent", "unsafe"] {
        let errors = refusal(&step(&format!("effect = \"none\"\nretry = \"{class}\"")));
        is(only(&errors), Code::InvalidValue, "7:9", "step[0].retry", "\"pure\"");
    }
}

#[test]
fn spans_and_counts_have_bounds() {
    for (keys, place, key) in [
        ("[lease]\nttl = \"999ms\"", "7:7", "lease.ttl"),
        ("[lease]\nttl = \"61m\"", "7:7", "lease.ttl"),
        ("[cancel]\ngrace = \"2h\"", "7:9", "cancel.grace"),
        ("[cancel]\ngrace = 10", "7:9", "cancel.grace"),
        ("timeout = \"0s\"", "6:11", "step[0].timeout"),
        ("timeout = \"8d\"", "6:11", "step[0].timeout"),
        ("timeout = \"soon\"", "6:11", "step[0].timeout"),
        ("[retry]\nmax_attempts = 0", "7:16", "retry.max_attempts"),
        ("[retry]\nmax_attempts = 101", "7:16", "retry.max_attempts"),
        ("[retry]\nmax_attempts = 99999999999999999999", "7:16", "retry.max_attempts"),
        ("[retry]\nbackoff = { initial = \"1ms\" }", "7:23", "retry.backoff.initial"),
        ("[retry]\nbackoff = { initial = \"9s\", max = \"3s\" }", "7:1", "retry.backoff"),
    ] {
        is(only(&refusal(&step(keys))), Code::InvalidValue, place, key, "");
    }
    let spec = resolve(&step("[retry]\nbackoff = { max = \"1s\" }"), &[]).expect("valid");
    assert_eq!((spec.retry.backoff_initial, spec.retry.backoff_max), (Millis(1000), Millis(1000)));
    let spec = resolve(&step("[retry]\nbackoff = { initial = \"5m\" }"), &[]).expect("valid");
    assert_eq!((spec.retry.backoff_initial, spec.retry.backoff_max), (Millis(300_000), Millis(300_000)));
}

#[test]
fn exit_codes_that_are_worth_another_try_are_those_of_a_failure() {
    let codes = |keys: &str| resolve(&step(keys), &[]).expect("valid").retry.transient_exit_codes;
    assert_eq!(codes(""), BTreeSet::new());
    assert_eq!(codes("[retry]\ntransient_exit_codes = []"), BTreeSet::new());
    assert_eq!(codes("[retry]\ntransient_exit_codes = [75, 1, 75, 255]"), BTreeSet::from([1, 75, 255]));
    for codes in ["[0]", "[256]", "[-1]", "[75, 0]"] {
        let errors = refusal(&step(&format!("[retry]\ntransient_exit_codes = {codes}")));
        assert_eq!(only(&errors).code, Code::InvalidValue, "{codes}");
    }
    let errors = refusal(&step("[retry]\ntransient_exit_codes = 75"));
    assert_eq!(only(&errors).key.as_deref(), Some("retry.transient_exit_codes"));
}

#[test]
fn what_this_version_cannot_honour_is_refused_by_its_code_and_named() {
    let approved = TARGET.replace("[[resource]]", "[approval]\npeople = 1\n[[resource]]");
    let errors = TargetFile::parse(&approved).expect_err("this version asks nobody");
    assert_eq!((only(&errors).code, only(&errors).key.as_deref()), (Code::NotSupported, Some("approval.people")));
    assert_eq!(errors.code(), Code::NotSupported);
    let harmless = "data = \"none\"\n[reconcile]\npolicy = \"manual\"\n";
    resolve(&step(harmless), &[]).expect("asks for nothing more than this version does");
}

#[test]
fn a_deployment_names_a_policy_and_leaves_patience_to_its_target() {
    let policy = |keys: &str| resolve(&step(keys), &[]).expect("valid").policy;
    assert_eq!(policy(""), None);
    assert_eq!(policy("[reconcile]\npolicy = \"manual\""), Some(Policy::Manual));
    assert_eq!(policy("[reconcile]\npolicy = \"when-proven\""), Some(Policy::WhenProven));
    let errors = refusal(&step("[reconcile]\npatience = \"5m\""));
    is(only(&errors), Code::UnknownKey, "7:1", "reconcile.patience", "");
}

#[test]
fn what_is_wrong_in_any_version_is_not_called_unsupported() {
    let approved = TARGET.replace("[[resource]]", "quue = \"fifo\"\n[approval]\npeople = 1\n[[resource]]");
    let errors = TargetFile::parse(&approved).expect_err("a key that nobody knows");
    let codes: Vec<Code> = errors.iter().map(|error| error.code).collect();
    assert_eq!(codes, [Code::UnknownKey, Code::NotSupported]);
    assert_eq!(errors.code(), Code::UnknownKey);
    let errors = refusal(&step("[reconcile]\npolicy = \"automatic\""));
    assert_eq!(only(&errors).code, Code::InvalidValue);
}

#[test]
fn a_step_runs_a_command_or_deploys_an_archive() {
    let release = |with: &str| deployment(&format!("[[step]]\nname = \"switch\"\n{with}"));
    let full = release(&format!("with = {{ archive = \"a.tgz\", sha256 = \"{SHA}\", revision = \"v1\" }}"));
    resolve(&full, &[]).expect("valid");
    let errors = refusal(&release(""));
    assert_eq!(errors.iter().map(|error| error.code).collect::<Vec<_>>(), [Code::MissingKey; 3], "{errors}");
    is(
        only(&refusal(&release(&format!("with = {{ archive = \"a\", sha256 = \"{SHA}\" }}")))),
        Code::MissingKey,
        "5:1",
        "step[0].with",
        "revision",
    );
    is(only(&refusal(&release("effect = \"none\""))), Code::MissingKey, "3:1", "step[0]", "needs \"run\"");
    is(
        only(&refusal(&step("with = { archive = \"a\" }"))),
        Code::UnknownKey,
        "6:10",
        "step[0].with.archive",
        "archive",
    );
    is(
        only(&refusal(&step("effect = \"none\"\nwith = { revision = \"a\" }"))),
        Code::InvalidValue,
        "7:1",
        "step[0].with",
        "",
    );
    let spec = resolve(&step("with = { revision = \"v2\", expected_revision = \"v1\" }"), &[]).expect("valid");
    assert_eq!(spec.steps[0].revision.as_ref().map(|revision| revision.as_str()), Some("v2"));
    assert_eq!(spec.steps[0].expected_revision.as_ref().map(|revision| revision.as_str()), Some("v1"));
}

#[test]
fn archives_have_a_known_source_and_a_digest() {
    let with = |archive: &str, sha256: &str| {
        deployment(&format!(
            "[[step]]\nname = \"s\"\nwith.revision = \"v1\"\nwith.archive = {archive:?}\nwith.sha256 = {sha256:?}"
        ))
    };
    for archive in ["https://x.org/a.tgz", "upload:dist/a.tgz", "/srv/a.tgz", "a.tgz"] {
        resolve(&with(archive, SHA), &[]).expect(archive);
    }
    for archive in ["", "../a.tgz", "/srv/../a.tgz", "a/", "http://x.org/a.tgz", "https://a@x.org/a.tgz", "upload:"] {
        is(only(&refusal(&with(archive, SHA))), Code::InvalidValue, "6:16", "step[0].with.archive", "");
    }
    for sha256 in ["", "abc", &SHA.to_uppercase(), &format!("{SHA}0"), &SHA.replace('e', "g")] {
        is(only(&refusal(&with("a.tgz", sha256))), Code::InvalidValue, "7:15", "step[0].with.sha256", "SHA-256");
    }
    let two = deployment(
        "[inputs]\nv = { type = \"string\" }\n[[step]]\nname = \"a\"\nwith = { archive = \"upload:dist/a.tgz\", revision = \"v1\" }\n\
         [[step]]\nname = \"b\"\nwith = { archive = \"upload:dist/${inputs.v}\", revision = \"v1\" }",
    );
    assert_eq!(crate::file::uploads_without_digest(&two), ["dist/a.tgz"]);
    let uploads = file(&with("upload:dist/a.tgz", SHA)).uploads(&BTreeMap::new());
    assert_eq!(uploads, [("dist/a.tgz".to_owned(), SHA.to_owned())].into());
}

#[test]
fn a_target_file_is_recognised() {
    let errors = refusal(TARGET);
    let text = errors.to_string();
    assert!(text.contains("the key \"agents\" belongs into a target's file"), "{text}");
    assert!(!text.contains("is required"), "that it lacks steps is no news: {text}");
}

#[test]
fn an_order_key_is_a_whole_number_or_a_string_that_comes_to_one() {
    let with = |order: &str| {
        deployment(&format!(
            "order = {order}\n[inputs]\nbuild = {{ type = \"string\", default = \"41\" }}\n[[step]]\nname = \"one\"\nrun = [\"true\"]\n"
        ))
    };
    let order = |text: &str, inputs: &[(&str, &str)]| {
        resolve(&with(text), inputs).map(|spec| spec.order.map(|key| key.to_string()))
    };
    for (text, inputs, key) in [
        ("0", &[][..], "0"),
        ("9223372036854775807", &[], "9223372036854775807"),
        ("\"007\"", &[], "7"),
        ("\"${inputs.build}\"", &[], "41"),
        ("\"${inputs.build}0\"", &[("build", "12")], "120"),
    ] {
        assert_eq!(order(text, inputs), Ok(Some(key.to_owned())), "{text}");
    }
    assert_eq!(resolve(&step(""), &[]).expect("valid").order, None);
    for (text, message) in [
        ("-1", "no order key"),
        ("\"\"", "no order key"),
        ("\"-1\"", "no order key"),
        ("\"+1\"", "no order key"),
        ("\"9223372036854775808\"", "no order key"),
        ("\"canary\"", "no order key"),
        ("1.5", "expected an integer"),
        ("true", "expected an integer"),
        ("\"${inputs.biuld}\"", "not declared"),
    ] {
        let errors = refusal(&with(text));
        let error = only(&errors);
        assert_eq!((error.position.to_string(), error.key.as_deref()), ("3:9".to_owned(), Some("order")), "{text}");
        assert!(error.message.contains(message), "{error}");
    }
    for build in ["", "v41", "41 ", "9223372036854775808"] {
        let errors = order("\"${inputs.build}\"", &[("build", build)]).expect_err("no order key");
        is(only(&errors), Code::InvalidValue, "3:9", "order", "no order key");
    }
}
