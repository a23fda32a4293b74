//! What ends a command, with its code and what to do.
//!
//! ```text
//! what went wrong                              code
//! the file, a variable, the policy, identity   HF-6003: as `check-config` says it
//! another agent on the same folder             HF-6003
//! the journal                                  HF-6002
//! a running agent that does not answer         HF-5001
//! anything else                                HF-6001
//! ```

use std::path::Path;

use holdfast_common::code::Code;
use holdfast_common::problem::Problem;
use holdfast_common::text::chain;
use holdfast_net::{config, telemetry};

use crate::journal;
use crate::run;
use crate::status;

/// As it is told.
pub(crate) fn problem(error: &anyhow::Error, config: Option<&Path>) -> Problem {
    match (error.downcast_ref::<run::Error>(), error.downcast_ref::<status::Error>()) {
        (Some(run::Error::Policy(wrong)), _) => {
            let problem = Problem::new(Code::Config, "the host's policy can't be kept").so("the agent does not start");
            wrong.iter().fold(problem, Problem::known)
        }
        (Some(missing @ run::Error::NotJoined { .. }), _) => Problem::new(Code::Config, missing.to_string())
            .so("no coordinator knows this host yet, and the agent does not start")
            .next(joins(config)),
        (Some(error), _) => Problem::new(of_run(error), chain(error)),
        (None, Some(error)) => of_status(error),
        (None, None) => Problem::new(of_rest(error), chain(error.as_ref())),
    }
}

/// An operator has the rest of the line from who made the token.
fn joins(config: Option<&Path>) -> String {
    let config = config.map(|file| format!(" --config {}", file.display())).unwrap_or_default();
    format!(
        "holdfast-agent join --coordinator ADDRESS --ca-pin sha256:PIN --name NAME --token-file -{config}, as holdfast agent \
         token create --name NAME tells an operator"
    )
}

fn of_run(error: &run::Error) -> Code {
    match error {
        run::Error::Journal(error) => of_journal(error),
        run::Error::Tls(_)
        | run::Error::Identity(_)
        | run::Error::NotJoined { .. }
        | run::Error::Ops(_)
        | run::Error::Policy(_)
        | run::Error::Cgroup(_) => Code::Config,
        run::Error::Threads(_) => Code::Internal,
    }
}

fn of_journal(error: &journal::Error) -> Code {
    if matches!(error, journal::Error::InUse { .. }) { Code::Config } else { Code::StoreFailed }
}

fn of_status(error: &status::Error) -> Problem {
    let problem = |code| Problem::new(code, chain(error));
    match error {
        status::Error::Journal(cause) => problem(of_journal(cause)),
        status::Error::Unanswered { .. } | status::Error::Unasked { .. } => problem(Code::NoAnswer)
            .not_known("whether the agent works: what runs is not touched by that")
            .next("systemctl status holdfast-agent; a process that is stopped (state T) answers nobody"),
        status::Error::Off { .. } => problem(Code::Config).next("in [ops] name an address, then start the agent again"),
    }
}

fn of_rest(error: &anyhow::Error) -> Code {
    let of_configuration = error.chain().any(|cause| cause.is::<config::Error>() || cause.is::<telemetry::Error>());
    if of_configuration { Code::Config } else { Code::Internal }
}

#[cfg(test)]
mod tests {
    use std::io;

    use anyhow::Context as _;
    use holdfast_common::code::ExitCode;

    use super::*;

    fn configured(identity: &str) -> crate::config::Config {
        let file = std::env::temp_dir().join(format!("holdfast-fault-{}.toml", uuid::Uuid::new_v4()));
        let text =
            "state_dir = \"/nowhere/state\"\n[coordinator]\naddress = \"127.0.0.1:1\"\nca = \"/nowhere/ca.pem\"\n";
        std::fs::write(&file, format!("{text}[identity]\n{identity}\n")).expect("written");
        let config = config::load(Some(&file), []).expect("a configuration");
        std::fs::remove_file(&file).expect("removed");
        config
    }

    fn told(identity: &str) -> Problem {
        let Err(error) = run::tls(&configured(identity)) else { panic!("there are no files") };
        problem(&anyhow::Error::from(error).context("could not run the agent"), Some(Path::new("/nowhere/agent.toml")))
    }

    #[test]
    fn a_host_that_has_not_joined_is_told_how_to() {
        let told = told("dir = \"/nowhere/identity\"");
        assert_eq!((told.code, told.code.exit()), (Code::Config, ExitCode::Usage));
        assert_eq!(told.title, "this host has not joined a coordinator: no identity is in /nowhere/identity");
        assert!(told.next[0].starts_with("holdfast-agent join --coordinator"), "{told}");
        assert!(told.next[0].contains(" --config /nowhere/agent.toml,"), "{told}");
    }

    #[test]
    fn a_certificate_that_is_missing_is_named_and_its_cause_is_said_once() {
        let told = told("certificate = \"/nowhere/agent.pem\"\nkey = \"/nowhere/agent.key\"");
        assert_eq!(told.code, Code::Config);
        assert_eq!(
            (told.title.matches("No such file").count(), told.title.matches("/nowhere").count()),
            (1, 1),
            "{told}"
        );
    }

    #[test]
    fn every_rule_that_is_wrong_is_a_line_of_its_own() {
        let wrong = vec!["policy.commands: sh is no absolute path".to_owned(), "policy.run_as: nobody".to_owned()];
        let told = problem(&anyhow::Error::from(run::Error::Policy(wrong.clone())), None);
        assert_eq!((told.code, told.known), (Code::Config, wrong));
    }

    #[test]
    fn what_is_no_fault_of_the_configuration_is_not_told_as_one() {
        let error = Err::<(), _>(io::Error::other("full")).context("could not write").expect_err("one");
        let told = problem(&error, None);
        assert_eq!((told.code, told.title.as_str()), (Code::Internal, "could not write: full"));
    }
}
