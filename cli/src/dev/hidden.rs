//! What a process of this binary is when dev or an agent started it.

use std::ffi::OsString;
use std::process::ExitCode;

use super::child;

/// Runs a service, or an agent's internal subcommand, where the arguments name one:
///
/// ```text
/// holdfast coordinator ...       what holdfast-coordinator does
/// holdfast agent run|join ...    what holdfast-agent does
/// holdfast internal ...          the agent's own helpers
/// ```
///
/// To be called first in `main`, before any runtime or thread is made.
#[must_use]
pub fn dispatch(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let word = |at: usize| arguments.get(at).and_then(|word| word.to_str());
    match (word(1), word(2)) {
        (Some("coordinator"), _) => Some(tied(|| holdfast_coordinator::cli::main(service(&arguments)))),
        (Some("agent"), Some("run" | "join")) => Some(tied(|| holdfast_agent::cli::main(service(&arguments)))),
        (Some(holdfast_agent::internal::INTERNAL), _) => holdfast_agent::internal::dispatch(arguments),
        (Some(_) | None, _) => None,
    }
}

/// The arguments as the service's own program has them: `holdfast-agent run ...`.
fn service(arguments: &[OsString]) -> Vec<OsString> {
    let mut name = OsString::from("holdfast-");
    name.push(&arguments[1]);
    std::iter::once(name).chain(arguments[2..].iter().cloned()).collect()
}

fn tied(run: impl FnOnce() -> ExitCode) -> ExitCode {
    match child::tie_to_parent() {
        Ok(()) => run(),
        Err(error) => {
            anstream::eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_sees_the_arguments_of_its_own_program() {
        let arguments = ["holdfast", "agent", "run", "--config", "web-01.toml"].map(OsString::from);
        assert_eq!(service(&arguments), ["holdfast-agent", "run", "--config", "web-01.toml"].map(OsString::from));
    }

    #[test]
    fn what_people_type_is_not_taken() {
        for line in
            [&["holdfast"][..], &["holdfast", "dev"], &["holdfast", "agent", "show", "web-01"], &["holdfast", "agents"]]
        {
            assert!(dispatch(line.iter().map(OsString::from)).is_none(), "{line:?}");
        }
    }
}
