//! A resource that a program of the host changes.

use super::*;
use crate::adapter::{Adapter, Enforce, Inspect};
use crate::spec::{ResourceAdapter, RetryClass, StepBody};
use crate::system::{Change, External, System};

const FLAGS: &str = r#"
schema = "holdfast/v1"
name = "shop@prod"
agents = { role = "shop" }
[[resource]]
name = "flags"
adapter = "external"
reach = "host"
with = { program = "flags", inspect = "operation", enforce = "fence", outlives = false, settings = { folder = "/srv/flags" } }
"#;

fn external(text: &str) -> External {
    let adapter = &target(text).resources[0].adapter;
    let ResourceAdapter::System(System::External(external)) = adapter else { panic!("{adapter:?}") };
    external.clone()
}

fn refused(text: &str) -> Errors {
    match TargetFile::parse(text) {
        Ok(_) => panic!("was taken:\n{text}"),
        Err(errors) => errors,
    }
}

fn changed(from: &str, to: &str) -> String {
    assert!(FLAGS.contains(from), "{from}");
    FLAGS.replace(from, to)
}

/// One step on the flags. Its `with` is on line 5.
fn flip(with: &str) -> String {
    deployment(&format!("[[step]]\nname = \"flip\"\n{with}"))
}

#[test]
fn a_program_is_read_with_what_it_can_prove() {
    let flags = external(FLAGS);
    assert_eq!((flags.program.as_str(), flags.inspect, flags.enforce), ("flags", Inspect::Operation, Enforce::Fence));
    assert!(!flags.outlives);
    assert_eq!(flags.settings, given(&[("folder", "/srv/flags")]));
    assert_eq!(target(FLAGS).resources[0].adapter.adapter(), Adapter::External);
}

#[test]
fn a_program_of_which_nothing_is_said_proves_nothing() {
    let (from, to) = (FLAGS.split_once("with = ").expect("there").1, "{ program = \"flags\" }\n");
    let bare = external(&changed(from, to));
    assert_eq!((bare.inspect, bare.enforce, bare.outlives), (Inspect::None, Enforce::None, true));
    assert_eq!(bare.settings, given(&[]));
}

#[test]
fn what_is_wrong_with_a_program_is_told_with_its_place() {
    for (from, to, code, key) in [
        ("program = \"flags\", ", "", Code::MissingKey, "resource[0].with"),
        ("program = \"flags\"", "program = \"/opt/flags\"", Code::InvalidValue, "resource[0].with.program"),
        ("program = \"flags\"", "program = \"../flags\"", Code::InvalidValue, "resource[0].with.program"),
        ("program = \"flags\"", "program = \".flags\"", Code::InvalidValue, "resource[0].with.program"),
        ("program = \"flags\"", "program = \"\"", Code::InvalidValue, "resource[0].with.program"),
        ("\"operation\"", "\"operations\"", Code::InvalidValue, "resource[0].with.inspect"),
        ("\"fence\"", "true", Code::InvalidValue, "resource[0].with.enforce"),
        ("outlives = false", "outlives = \"no\"", Code::InvalidValue, "resource[0].with.outlives"),
        ("folder = \"/srv/flags\"", "folder = 1", Code::InvalidValue, "resource[0].with.settings.folder"),
        ("outlives", "outlive", Code::UnknownKey, "resource[0].with.outlive"),
    ] {
        let errors = refused(&changed(from, to));
        let error = only(&errors);
        assert_eq!((error.code, error.key.as_deref()), (code, Some(key)), "{error}");
    }
}

#[test]
fn a_step_with_settings_asks_a_change_of_the_program() {
    let text = format!(
        "{}[inputs]\nmode = {{ type = \"string\", default = \"on\" }}\n",
        flip(
            "retry = \"idempotent\"\nwith = { revision = \"v2\", expected_revision = \"v1\", settings = { checkout = \"${inputs.mode}\" } }\n"
        )
    );
    let spec = file(&text).resolve(&given(&[]), None, &target(FLAGS)).expect("valid");
    let step = &spec.steps[0];
    let StepBody::System(Change::External(change)) = &step.body else { panic!("{step:?}") };
    assert_eq!((change.settings.clone(), &change.archive), (given(&[("checkout", "on")]), &None));
    assert_eq!(step.revision.as_ref().map(|one| one.as_str()), Some("v2"));
    assert_eq!(step.expected_revision.as_ref().map(|one| one.as_str()), Some("v1"));
    assert_eq!(step.retry, RetryClass::Idempotent);
    let proof = step.capability(&target(FLAGS).resources[0]);
    assert_eq!((proof.inspect, proof.enforce, proof.outlives), (Inspect::Operation, Enforce::Fence, false));
}

#[test]
fn a_change_may_bring_an_archive_with_its_digest() {
    let text = flip(&format!(
        "with = {{ revision = \"v2\", archive = \"/srv/a.tgz\", sha256 = \"{SHA}\", settings = {{ }} }}\n"
    ));
    let spec = file(&text).resolve(&given(&[]), None, &target(FLAGS)).expect("valid");
    assert_eq!(spec.steps[0].body.archive(), Some(("/srv/a.tgz", SHA)));
    let halved = refusal(&flip("with = { revision = \"v2\", archive = \"/srv/a.tgz\", settings = { } }\n"));
    assert_eq!(only(&halved).code, Code::MissingKey, "{halved}");
    let unnamed = refusal(&flip("with = { settings = { checkout = \"on\" } }\n"));
    assert_eq!(only(&unnamed).code, Code::MissingKey, "{unnamed}");
}

#[test]
fn a_change_is_for_a_program_alone_and_has_keys_of_its_own() {
    let text = flip("with = { revision = \"v2\", settings = { checkout = \"on\" } }\n");
    let errors = resolve(&text, &[]).expect_err("a release takes no settings");
    assert!(errors.to_string().contains("release"), "{errors}");
    for with in [
        "with = { settings = { a = \"b\" }, migrations = \"db\" }\n",
        "with = { settings = { a = \"b\" }, keep = true }\n",
    ] {
        assert!(DeploymentFile::parse(&flip(with)).is_err(), "{with}");
    }
}

#[test]
fn the_example_parses_and_resolves() {
    macro_rules! example {
        ($name:literal) => {
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/external/", $name))
        };
    }
    let shop = target(example!("flags.target.toml"));
    let file = file(example!("flags.deploy.toml"));
    file.check(&given(&[])).expect("valid without its target");
    let spec = file.resolve(&given(&[("revision", "v2")]), None, &shop).expect("valid");
    let proof = spec.steps[0].capability(&shop.resources[0]);
    assert_eq!((proof.inspect, proof.enforce, proof.outlives), (Inspect::Operation, Enforce::Fence, false));
}
