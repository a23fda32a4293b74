use super::*;
use crate::file::{MAX_INPUT, MAX_RESOLVED};
use crate::id::TargetName;
use crate::spec::StepBody;

/// Inputs on line 4 and on, then one step whose arguments are `run`.
fn with_inputs(inputs: &str, run: &str) -> String {
    deployment(&format!("[inputs]\n{inputs}\n[[step]]\nname = \"one\"\nrun = {run}"))
}

fn argv(text: &str, inputs: &[(&str, &str)]) -> Vec<String> {
    match resolve(text, inputs).unwrap_or_else(|errors| panic!("{errors}")).steps.remove(0).body {
        StepBody::Command { argv } => argv,
        StepBody::Release { .. } | StepBody::Restore | StepBody::Check(_) | StepBody::System(_) => {
            panic!("a command was asked for")
        }
    }
}

#[test]
fn inputs_are_typed_filled_in_and_substituted_once() {
    let text = with_inputs(
        "who = { type = \"string\" }\nn = { type = \"integer\", default = 7 }\nyes = { type = \"boolean\", default = true }",
        r#"["echo", "a ${inputs.who}/${inputs.n}", "${inputs.yes}$HOME$"]"#,
    );
    assert_eq!(argv(&text, &[("who", "me")]), ["echo", "a me/7", "true$HOME$"]);
    assert_eq!(argv(&text, &[("who", ""), ("n", "-012"), ("yes", "false")]), ["echo", "a /-12", "false$HOME$"]);
    let hostile = "${inputs.n} $(id) `id` ; -rf @/etc/passwd";
    assert_eq!(argv(&text, &[("who", hostile)])[1], format!("a {hostile}/7"));
    let spec = resolve(&text, &[("who", "me")]).expect("valid");
    assert_eq!(spec.inputs, given(&[("who", "me"), ("n", "7"), ("yes", "true")]));
}

#[test]
fn inputs_that_do_not_fit_are_refused_at_their_declaration() {
    let text =
        with_inputs("n = { type = \"integer\" }\nc = { type = \"string\", one_of = [\"red\", \"blue\"] }", r#"["a"]"#);
    let refused = |inputs: &[(&str, &str)]| resolve(&text, inputs).expect_err("does not fit");
    is(only(&refused(&[("c", "red")])), Code::InvalidInput, "4:1", "inputs.n", "required");
    is(only(&refused(&[("c", "green"), ("n", "1")])), Code::InvalidInput, "5:1", "inputs.c", "\"red\", \"blue\"");
    for number in ["", "x", "1.5", "0x10", " 1", "9223372036854775808"] {
        is(only(&refused(&[("c", "red"), ("n", number)])), Code::InvalidInput, "4:1", "inputs.n", "type integer");
    }
    for control in ["a\0b", "a\nb", "\u{1b}[31m", "\u{85}"] {
        is(only(&refused(&[("c", control), ("n", "1")])), Code::InvalidInput, "5:1", "inputs.c", "control characters");
    }
    let long = "x".repeat(MAX_INPUT + 1);
    is(only(&refused(&[("c", &long), ("n", "1")])), Code::TooLarge, "5:1", "inputs.c", "4097");
    let errors = refused(&[("c", "red"), ("nn", "1"), ("n", "1"), ("colour", "1")]);
    assert_eq!(errors.iter().count(), 2, "{errors}");
    assert!(errors.iter().all(|error| error.position.to_string() == "3:2"), "{errors}");
}

#[test]
fn declarations_of_inputs_are_checked() {
    for (declaration, place, message) in [
        ("x = { type = \"str\" }", "4:14", "\"string\", \"integer\", \"boolean\""),
        ("x = { }", "4:1", "\"type\" is required"),
        ("x = \"string\"", "4:5", "expected a table"),
        ("x = { type = \"integer\", default = \"7\" }", "4:35", "type integer, this is a string"),
        ("x = { type = \"string\", default = \"c\", one_of = [\"a\"] }", "4:34", "not one of"),
        ("x = { type = \"string\", default = \"${inputs.x}\" }", "4:34", "nothing is substituted here"),
        ("x = { type = \"string\", default = \"a\\nb\" }", "4:34", "control characters"),
        ("x = { type = \"string\", default = \"a\", required = true }", "4:39", "never required"),
        ("x = { type = \"string\", required = false }", "4:24", "needs a default"),
        ("x = { type = \"string\", one_of = [] }", "4:24", "0 entries"),
        ("\"a b\" = { type = \"string\" }", "4:1", "no name for an input"),
    ] {
        let errors = refusal(&with_inputs(declaration, r#"["a"]"#));
        let error = only(&errors);
        assert_eq!(error.position.to_string(), place, "{declaration}: {error}");
        assert!(error.message.contains(message), "{declaration}: {error}");
    }
}

#[test]
fn only_declared_inputs_can_be_substituted_and_nothing_else() {
    for (run, code, message) in [
        ("${inputs.revison}", Code::InvalidInput, "not declared"),
        ("${env.HOME}", Code::InvalidValue, "only substitution"),
        ("${HOME}", Code::InvalidValue, "only substitution"),
        ("${file(\\\"/etc/passwd\\\")}", Code::InvalidValue, "only substitution"),
        ("${ inputs.revision }", Code::InvalidValue, "only substitution"),
        ("a ${inputs.revision", Code::InvalidValue, "without its"),
        ("${}", Code::InvalidValue, "only substitution"),
        ("a\\u0000b", Code::InvalidValue, "control characters"),
    ] {
        let errors = refusal(&with_inputs("revision = { type = \"string\" }", &format!("[\"{run}\"]")));
        is(only(&errors), code, "7:8", "step[0].run[0]", message);
    }
    let errors = refusal(&with_inputs("revision = { type = \"string\" }", r#"["${inputs.revison}"]"#));
    assert_eq!(only(&errors).suggestion.as_deref(), Some("revision"));
}

#[test]
fn the_rules_of_values_hold_for_what_was_substituted() {
    let text = deployment(
        "[inputs]\nx = { type = \"string\" }\n[[step]]\nname = \"s\"\n\
         with = { archive = \"${inputs.x}\", sha256 = \"${inputs.x}\", revision = \"${inputs.x}\" }",
    );
    let errors = resolve(&text, &[("x", "../up")]).expect_err("no path, no digest, no revision");
    let keys: Vec<&str> = errors.iter().filter_map(|error| error.key.as_deref()).collect();
    assert_eq!(keys, ["step[0].with.archive", "step[0].with.sha256", "step[0].with.revision"]);
    let errors = resolve(&text, &[("x", "http://x.org/a.tgz")]).expect_err("a URL that is not https");
    assert_eq!(errors.iter().next().map(|error| error.code), Some(Code::InvalidValue), "{errors}");
    resolve(&text, &[("x", SHA)]).expect("fits all three");
    is(
        only(
            &resolve(&with_inputs("p = { type = \"string\" }", r#"["${inputs.p}"]"#), &[("p", "")])
                .expect_err("no program"),
        ),
        Code::InvalidValue,
        "7:8",
        "step[0].run[0]",
        "can't be empty",
    );
}

#[test]
fn check_finds_what_defaults_make_of_it_and_asks_for_no_input() {
    let text = |default: &str| {
        deployment(&format!(
            "[inputs]\nx = {{ type = \"string\", default = {default:?} }}\ny = {{ type = \"string\" }}\n[[step]]\nname = \"s\"\n\
             with = {{ archive = \"${{inputs.y}}\", sha256 = \"${{inputs.x}}\", revision = \"${{inputs.x}}\" }}"
        ))
    };
    file(&text(SHA)).check(&given(&[])).expect("valid as far as anybody can tell");
    let errors = file(&text("v1")).check(&given(&[])).expect_err("no digest");
    is(only(&errors), Code::InvalidValue, "8:44", "step[0].with.sha256", "SHA-256");
}

#[test]
fn what_comes_of_substitution_is_bounded() {
    let run: Vec<String> = (0..200).map(|_| format!("{:?}", "${inputs.x}".repeat(100))).collect();
    let text = with_inputs("x = { type = \"string\" }", &format!("[{}]", run.join(",")));
    let errors = resolve(&text, &[("x", &"y".repeat(MAX_INPUT))]).expect_err("80 MB");
    assert_eq!(errors.code(), Code::TooLarge);
    let spec = resolve(&text, &[("x", "y")]).expect("small");
    assert!(serde_json::to_string(&spec).expect("plain data").len() < MAX_RESOLVED);
}

#[test]
fn steps_are_tied_to_resources_of_the_target() {
    let two = target(TWO_RESOURCES);
    let on_two = |text: &str| file(text).resolve(&given(&[]), None, &two);
    is(only(&on_two(&step("")).expect_err("which one?")), Code::InvalidValue, "3:1", "step[0]", "\"site\", \"cache\"");
    is(
        only(&on_two(&step("resource = \"db\"")).expect_err("no such")),
        Code::InvalidValue,
        "6:12",
        "step[0].resource",
        "no resource \"db\"",
    );
    on_two(&step("resource = \"cache\"")).expect("a command on commands");
    on_two(&step("resource = \"site\"")).expect("a command on a release folder");
    on_two(&step("effect = \"none\"")).expect("needs no resource");
    let archive = |resource: &str| {
        let with = format!("with = {{ archive = \"a\", sha256 = \"{SHA}\", revision = \"v1\" }}");
        deployment(&format!("[[step]]\nname = \"s\"\nresource = \"{resource}\"\n{with}"))
    };
    on_two(&archive("site")).expect("an archive on a release folder");
    is(
        only(&on_two(&archive("cache")).expect_err("no archives there")),
        Code::InvalidValue,
        "5:12",
        "step[0].resource",
        "needs \"run\"",
    );
}

#[test]
fn the_target_is_the_one_that_was_asked_for() {
    let other = TargetName::new("shop@test").expect("valid");
    let file = file(&step(""));
    assert_eq!(file.target().map(TargetName::as_str), Some("shop@prod"));
    let mut renamed = target(TARGET);
    renamed.name = other.clone();
    assert_eq!(file.resolve(&given(&[]), Some(&other), &renamed).expect("overridden").target, other);
    is(
        only(&file.resolve(&given(&[]), None, &renamed).expect_err("another")),
        Code::InvalidValue,
        "1:1",
        "target",
        "shop@test",
    );
    let nameless = super::file("schema = \"holdfast/v1\"\nstep = [{ name = \"a\", run = [\"a\"] }]");
    nameless.check(&given(&[])).expect("valid");
    is(
        only(&nameless.resolve(&given(&[]), None, &renamed).expect_err("none")),
        Code::MissingKey,
        "1:1",
        "target",
        "--target",
    );
    nameless.resolve(&given(&[]), Some(&other), &renamed).expect("named by the caller");
}
