//! `holdfast check FILE`

use std::collections::BTreeMap;

use holdfast_common::code::{Code, ExitCode};
use holdfast_common::file::{DeploymentFile, Errors, TargetFile};
use holdfast_common::text::one_line;
use serde_json::{Value, json};

use super::deploy::{input, inputs};
use super::{Context, Outcome, file};
use crate::failure::Failure;
use crate::output::Record;
use crate::upload;

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A deployment's or a target's file, TOML or JSON; `-` is the input
    pub file: String,
    /// Value of an input, held against its rules; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = input)]
    pub inputs: Vec<(String, String)>,
}

pub(super) fn run(args: Args, context: &mut Context) -> Outcome {
    let text = file::text(&args.file, context).map_err(|failure| to_correct(failure, &args.file))?;
    let folder = upload::folder_of(&args.file);
    let inputs: BTreeMap<String, String> = inputs(args.inputs)?.into_iter().collect();
    let checked = check(&text, &inputs).map_err(|errors| {
        to_correct(upload::with_digests(Failure::of_file(&errors, &args.file), &text, &folder), &args.file)
    })?;
    match upload::absent(&text, &inputs, &folder).as_slice() {
        [] => upload::find(&text, &inputs, &folder).map(drop)?,
        absent => {
            for name in absent.iter().map(|name| one_line(name)) {
                context.printer.talk(&format!("{name} is not there: its digest was not checked"))?;
            }
        }
    }
    let name = one_line(&args.file);
    let whole = json!({ "file": args.file, "valid": true, "kind": checked.kind, "target": checked.target, "inputs": checked.inputs });
    let target = checked.target.map_or_else(String::new, |target| format!(" of {target}"));
    let text = format!("{name}: a valid {} file{target}; {}\n", checked.kind, checked.not_looked_at);
    context.printer.record(&Record { whole, name, text })?;
    Ok(ExitCode::Done)
}

/// The faults that the check itself tells: to check the file again is no advice on them.
fn to_correct(failure: Failure, file: &str) -> Failure {
    let Failure::Refused { mut problems, exit } = failure else { return failure };
    let again = format!("holdfast check {file}");
    for line in problems.iter_mut().flat_map(|problem| &mut problem.next) {
        if *line == again {
            "correct it, then check again".clone_into(line);
        } else if let Some(start) = line.strip_suffix(&format!("then: {again}")) {
            *line = format!("{start}correct it, then check again");
        }
    }
    Failure::Refused { problems, exit }
}

#[derive(Debug)]
struct Checked {
    kind: &'static str,
    /// What a file alone does not tell.
    not_looked_at: &'static str,
    target: Option<String>,
    inputs: Value,
}

/// Nothing in a file says which of the two it is; the one whose keys it has is what it was meant to be.
fn check(text: &str, given: &BTreeMap<String, String>) -> Result<Checked, Errors> {
    let deployment = DeploymentFile::parse(text).and_then(|file| file.check(given).map(|()| file));
    let deployment = match deployment {
        Ok(file) => {
            let inputs = file.inputs().iter().map(|(name, input)| (name.clone(), json!(input.kind.to_string())));
            return Ok(Checked {
                kind: "deployment",
                not_looked_at: "its target and agents were not looked at",
                target: file.target().map(ToString::to_string),
                inputs: Value::Object(inputs.collect()),
            });
        }
        Err(errors) => errors,
    };
    match TargetFile::parse(text) {
        Ok(target) => Ok(Checked {
            kind: "target",
            not_looked_at: "its agents were not looked at",
            target: Some(target.name.to_string()),
            inputs: json!({}),
        }),
        Err(target) if unknown_keys(&target) < unknown_keys(&deployment) => Err(target),
        Err(_) => Err(deployment),
    }
}

fn unknown_keys(errors: &Errors) -> usize {
    errors.iter().filter(|error| error.code == Code::UnknownKey).count() + errors.untold()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYMENT: &str = include_str!("../../../examples/shop.deploy.toml");
    const TARGET: &str = include_str!("../../../examples/shop.target.toml");

    #[test]
    fn both_kinds_of_file_are_told_apart() {
        let checked = check(DEPLOYMENT, &BTreeMap::new()).expect("an example");
        assert_eq!((checked.kind, checked.target.as_deref()), ("deployment", Some("shop@prod")));
        assert_eq!(check(TARGET, &BTreeMap::new()).expect("an example").kind, "target");
    }

    #[test]
    fn a_broken_target_file_gets_the_faults_of_a_target_file() {
        let broken = TARGET.replace("adapter", "adaptor");
        let errors = check(&broken, &BTreeMap::new()).expect_err("a fault");
        assert!(errors.iter().any(|error| error.suggestion.as_deref() == Some("adapter")), "{errors}");
        let broken = DEPLOYMENT.replace("effect ", "efect ");
        let errors = check(&broken, &BTreeMap::new()).expect_err("a fault");
        assert!(errors.iter().any(|error| error.suggestion.as_deref() == Some("effect")), "{errors}");
    }

    #[test]
    fn what_a_check_tells_does_not_send_back_to_the_check() {
        let broken = format!("foo = 1\n{}", DEPLOYMENT.replace("effect ", "efect "));
        let errors = check(&broken, &BTreeMap::new()).expect_err("faults");
        let Failure::Refused { problems, .. } = to_correct(Failure::of_file(&errors, "a.toml"), "a.toml") else {
            panic!("refused")
        };
        let next: Vec<_> = problems.iter().flat_map(|problem| &problem.next).collect();
        assert!(next.iter().any(|line| line.as_str() == "correct it, then check again"), "{next:?}");
        assert!(next.iter().any(|line| line.starts_with("did you mean \"effect\"?")), "{next:?}");
        assert!(next.iter().all(|line| !line.contains("holdfast check")), "{next:?}");
    }

    #[test]
    fn a_check_refuses_what_a_plan_would() {
        let text = "schema = \"holdfast/v1\"\ntarget = \"shop@prod\"\n[[step]]\nname = \"migrate\"\nrun = [\"true\"]\n\
                    [[verify]]\ntcp = { address = \"localhost:80\" }\n[rollback]\nstrategy = \"previous-revision\"\n";
        let errors = check(text, &BTreeMap::new()).expect_err("no way back");
        assert!(errors.to_string().contains("previous-revision"), "{errors}");
        let given = BTreeMap::from([("nobody".to_owned(), "x".to_owned())]);
        check(DEPLOYMENT, &given).expect_err("no such input");
    }
}
