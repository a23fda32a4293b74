mod deployment;
mod examples;
mod properties;
mod resolve;
mod rollback;
mod syntax;
mod systems_external;
mod systems_git;
mod systems_http;
mod systems_postgres;
mod target;
mod verify;

use std::collections::BTreeMap;

use crate::code::Code;
use crate::file::{DeploymentFile, Error, Errors, TargetFile};
use crate::spec::{DeploymentSpec, TargetSpec};

const SHA: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

const TARGET: &str = r#"
schema = "holdfast/v1"
name = "shop@prod"
agents = { role = "shop" }
[[resource]]
name = "site"
adapter = "release"
reach = "host"
with = { root = "/srv/shop" }
"#;

const TWO_RESOURCES: &str = r#"
schema = "holdfast/v1"
name = "shop@prod"
agents = { role = "shop" }
[[resource]]
name = "site"
adapter = "release"
reach = "host"
with = { root = "/srv/shop", retain = 2 }
[[resource]]
name = "cache"
adapter = "command"
reach = "shared"
with = { inspect = ["cat", "/srv/revision"], outlives = false }
"#;

fn target(text: &str) -> TargetSpec {
    TargetFile::parse(text).expect("a valid target")
}

fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn file(text: &str) -> DeploymentFile {
    DeploymentFile::parse(text).unwrap_or_else(|errors| panic!("{errors}\nin\n{text}"))
}

/// Behind a valid head, so that `rest` begins on line 3.
fn deployment(rest: &str) -> String {
    format!("schema = \"holdfast/v1\"\ntarget = \"shop@prod\"\n{rest}")
}

/// One step that runs `true`, with more keys. The step begins on line 3, the keys on line 6.
fn step(keys: &str) -> String {
    deployment(&format!("[[step]]\nname = \"one\"\nrun = [\"true\"]\n{keys}"))
}

fn resolve(text: &str, inputs: &[(&str, &str)]) -> Result<DeploymentSpec, Errors> {
    file(text).resolve(&given(inputs), None, &target(TARGET))
}

fn refusal(text: &str) -> Errors {
    match DeploymentFile::parse(text) {
        Ok(_) => panic!("was taken:\n{text}"),
        Err(errors) => errors,
    }
}

/// The only error of it.
fn only(errors: &Errors) -> &Error {
    assert_eq!(errors.iter().count(), 1, "{errors}");
    errors.iter().next().expect("counted")
}

#[track_caller]
fn is(error: &Error, code: Code, place: &str, key: &str, message: &str) {
    let found = (error.code, error.position.to_string(), error.key.as_deref().unwrap_or(""));
    assert_eq!(found, (code, place.to_owned(), key), "{error}");
    assert!(error.message.contains(message), "{error} lacks {message:?}");
}
