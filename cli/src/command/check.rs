//! `holdfast check FILE`

use std::collections::BTreeMap;

use holdfast_common::code::{Code, ExitCode};
use holdfast_common::file::{DeploymentFile, Errors, TargetFile};
use holdfast_common::text::one_line;
use serde_json::{Value, json};

use super::{Context, Outcome, file};
use crate::failure::Failure;
use crate::output::Record;
use crate::upload;

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A deployment's or a target's file, TOML or JSON; `-` is the input
    pub file: String,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Outcome {
    let text = file::text(&args.file, context)?;
    let folder = upload::folder_of(&args.file);
    let checked =
        check(&text).map_err(|errors| upload::with_digests(Failure::of_file(&errors, &args.file), &text, &folder))?;
    let inputs = BTreeMap::new();
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
    let text = format!("{name}: a valid {} file{target}\n", checked.kind);
    context.printer.record(&Record { whole, name, text })?;
    Ok(ExitCode::Done)
}

#[derive(Debug)]
struct Checked {
    kind: &'static str,
    target: Option<String>,
    inputs: Value,
}

/// Nothing in a file says which of the two it is; the one whose keys it has is what it was meant to be.
fn check(text: &str) -> Result<Checked, Errors> {
    let deployment = DeploymentFile::parse(text).and_then(|file| file.check().map(|()| file));
    let deployment = match deployment {
        Ok(file) => {
            let inputs = file.inputs().iter().map(|(name, input)| (name.clone(), json!(input.kind.to_string())));
            return Ok(Checked {
                kind: "deployment",
                target: file.target().map(ToString::to_string),
                inputs: Value::Object(inputs.collect()),
            });
        }
        Err(errors) => errors,
    };
    match TargetFile::parse(text) {
        Ok(target) => Ok(Checked { kind: "target", target: Some(target.name.to_string()), inputs: json!({}) }),
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
        let checked = check(DEPLOYMENT).expect("an example");
        assert_eq!((checked.kind, checked.target.as_deref()), ("deployment", Some("shop@prod")));
        assert_eq!(check(TARGET).expect("an example").kind, "target");
    }

    #[test]
    fn a_broken_target_file_gets_the_faults_of_a_target_file() {
        let broken = TARGET.replace("adapter", "adaptor");
        let errors = check(&broken).expect_err("a fault");
        assert!(errors.iter().any(|error| error.suggestion.as_deref() == Some("adapter")), "{errors}");
        let broken = DEPLOYMENT.replace("effect ", "efect ");
        let errors = check(&broken).expect_err("a fault");
        assert!(errors.iter().any(|error| error.suggestion.as_deref() == Some("effect")), "{errors}");
    }
}
