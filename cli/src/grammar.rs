//! What can be typed. Reading it never touches the network.

use clap::{Parser, Subcommand};

use crate::command::{
    agent, agents, audit, cancel, check, completion, contexts, deploy, events, evidence, explain, list, login, logs,
    man, plan, reconcile, rollback, show, target, targets, token, version, wait, watch, whoami,
};
use crate::dev;
use crate::output::Options;
use crate::settings::Connection;

/// Deployments that stay truthful when the connection is cut
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "\
Deployments are named TARGET#N (shop@prod#12) or by UUID; commands that only read take a unique beginning of it.

Exit codes: 0 done, 1 unexpected, 2 usage, 3 not found, 4 not allowed, 5 no answer, 10 failed, 11 cancelled, \
12 somebody must decide, 13 the cancel came too late, 14 --timeout passed, 15 target held, 16 refused, \
17 waiting for approval (no command of this version), 130 left by Ctrl-C.

More on any code or state: holdfast explain HF-2031, holdfast explain uncertain")]
pub struct Cli {
    /// Which coordinator.
    #[command(flatten)]
    pub connection: Connection,
    /// How answers are written.
    #[command(flatten)]
    pub output: Options,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// What the grammar itself can't say.
    pub fn checked(self) -> Result<Self, clap::Error> {
        match &self.command {
            Command::Dev(args) => args.check().map(|()| self),
            _ => Ok(self),
        }
    }
}

/// Every command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Submit a deployment and watch it
    Deploy(deploy::Args),
    /// Show what a deployment would do, and where it would stand if contact were lost; changes nothing
    Plan(plan::Args),
    /// Validate a deployment's or a target's file, without a coordinator
    Check(check::Args),
    /// List deployments, newest first
    List(list::Args),
    /// Show a deployment: what was asked, what is known, what is not
    Show(show::Args),
    /// Follow a deployment until it has ended or somebody must decide
    Watch(watch::Args),
    /// Wait for a deployment without a word: the exit code tells
    Wait(wait::Args),
    /// Print what a deployment's steps wrote
    Logs(logs::Args),
    /// Print a deployment's events
    Events(events::Args),
    /// Ask for a stop: a request, not an outcome
    Cancel(cancel::Args),
    /// List what is kept as evidence, late reports among it
    Evidence(evidence::Args),
    /// Find out what happened, and decide
    Reconcile {
        /// What to do about it.
        #[command(subcommand)]
        command: reconcile::Command,
    },
    /// List where a target can go back to and why not, or go back: a deployment of its own
    Rollback(rollback::Args),
    /// List targets: who holds what, since when, why, who waits
    Targets(targets::Args),
    /// Declare, show or read one target, or put it on hold
    Target {
        /// What to do with it.
        #[command(subcommand)]
        command: target::Command,
    },
    /// List agents
    Agents(agents::Args),
    /// Show, drain, resume, unlock or remove an agent, and let hosts join as agents
    Agent {
        /// What to do with it.
        #[command(subcommand)]
        command: agent::Command,
    },
    /// Show what people did, export the record, check an exported file
    Audit {
        /// What to do with it.
        #[command(subcommand)]
        command: audit::Command,
    },
    /// Sign in to a coordinator: pin its CA, try a token, and keep both as a context
    Login(login::Args),
    /// List, choose, show and remove contexts: coordinators that you signed in to
    Context {
        /// What to do with contexts.
        #[command(subcommand)]
        command: contexts::Command,
    },
    /// Make, list and revoke tokens
    Token {
        /// What to do with tokens.
        #[command(subcommand)]
        command: token::Command,
    },
    /// Show who you are to the coordinator
    Whoami(whoami::Args),
    /// Explain a code or a state, without a coordinator
    Explain(explain::Args),
    /// Run a whole Holdfast on this machine: a coordinator and two agents, to try things out and to break them
    Dev(dev::Args),
    /// Print a shell's completion script
    Completion(completion::Args),
    /// Print the manual page, or write those of every command
    Man(man::Args),
    /// Show the version
    Version(version::Args),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use holdfast_common::code::ExitCode;

    use super::*;

    fn accepts(line: &str) -> bool {
        let words = std::iter::once("holdfast").chain(line.split_whitespace());
        Cli::try_parse_from(words).map_err(|error| error.kind()).is_ok()
    }

    #[test]
    fn the_grammar_has_no_contradictions() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_lines_of_the_reference_are_understood() {
        for line in [
            "check a.toml",
            "deploy a.toml --set revision=v2 --set x= --target shop@prod --detach --no-queue",
            "deploy a.toml --request-id 0193a1b2-0000-7000-8000-000000000001 --timeout 1m30s",
            "deploy a.toml --target shop@* --set revision=v2",
            "plan a.toml --set revision=v2 --target shop@prod --json",
            "list",
            "list shop@prod --state uncertain --state held -o name",
            "show shop@prod#12 --json",
            "watch 0193a1b2",
            "wait shop@prod#12 --for terminal",
            "wait shop@prod#12 --for settled --timeout 5m",
            "logs shop@prod#12 -f --step switch --attempt 2",
            "logs shop@prod#12 --stream stderr --since-offset 4096 --raw",
            "events shop@prod#12 --since 40 -f -o jsonl",
            "cancel shop@prod#12 --reason wrong --wait",
            "evidence shop@prod#12",
            "reconcile list",
            "reconcile show shop@prod#12",
            "reconcile inspect shop@prod#12",
            "reconcile fence-off shop@prod#12 --confirm shop@prod --reason lost",
            "reconcile decide shop@prod#12 --as accept-failed --reason seen --confirm shop@prod --shown 3",
            "reconcile attest shop@prod#12 --runner host-gone --target-state not-applied --observed v1 --how seen --confirm shop@prod",
            "rollback shop@prod",
            "rollback shop@prod --json",
            "rollback shop@prod --to v1 --reason broken --confirm shop@prod --detach",
            "rollback shop@prod --to v1 --reason broken --attest seen --request-id 0193a1b2-0000-7000-8000-000000000001",
            "targets",
            "target apply a.toml",
            "target show shop@prod",
            "target inspect shop@prod",
            "target hold shop@prod --reason freeze",
            "target hold shop@prod --reason freeze --until 2h30m",
            "target hold shop@prod --reason freeze --until 2026-11-29T18:00:00+01:00",
            "target attest shop@prod --resource db --observed v1 --how seen --confirm shop@prod",
            "target unhold shop@prod",
            "agents --ascii",
            "agent token create",
            "agent token create --label role=shop --label env=prod --ttl 1h --name web-01",
            "agent token list --json",
            "agent token revoke 0a1b",
            "agent remove web-01 --confirm web-01 --reason gone",
            "agent revoke --fingerprint 0000000000000000000000000000000000000000000000000000000000000000 --reason lost --confirm web-01",
            "agent show web-07 --json",
            "agent unlock web-07 --reason found --admit-new-journal --confirm web-07",
            "agent drain web-01 --reason disk",
            "agent resume web-01 --json",
            "audit list",
            "audit list --target shop@prod --limit 20 --json",
            "audit export",
            "audit export --target shop@prod --to audit.jsonl",
            "audit verify audit.jsonl",
            "audit verify audit.jsonl --after earlier.jsonl --json",
            "whoami --context prod",
            "login deploy.example:7443 --context prod --ca ca.pem",
            "login deploy.example:7443 --fingerprint 0000000000000000000000000000000000000000000000000000000000000000",
            "login",
            "context list",
            "context use prod",
            "context remove prod",
            "context show",
            "token create --name bot --role deployer:shop@* --role viewer --ttl 12h",
            "token list --json",
            "token revoke bot",
            "completion bash",
            "completion zsh",
            "completion fish",
            "man",
            "man --dir pages",
            "explain HF-2031",
            "version",
            "dev --tour --exit",
            "dev cut web-01 --silent",
            "dev --data A cut web-01",
            "dev pause web-01",
            "dev resume web-01 --data A",
            "dev kill web-02",
            "dev start web-02",
            "--address a:1 --ca ca.pem --token-file t --server-name a whoami",
            "whoami --address a:1",
        ] {
            assert!(accepts(line), "{line}");
        }
    }

    #[test]
    fn what_is_not_in_the_reference_is_refused() {
        for line in [
            "reconcile decide shop@prod#12 --as unlock",
            "wait shop@prod#12 --for ever",
            "deploy a.toml --set revision",
            "deploy a.toml --set =v2",
            "deploy a.toml --request-id x",
            "deploy a.toml --timeout 5",
            "whoami --token secret",
            "target hold shop@prod --reason freeze --until tomorrow",
            "target hold shop@prod --reason freeze --until 30",
            "target unhold shop@prod --reason over",
            "agent drain",
            "agent resume web-01 --reason over",
            "plan a.toml --detach",
            "rollback",
            "rollback shop@prod --reason broken",
            "login a:1 --fingerprint 00",
            "login a:1 --ca ca.pem --fingerprint 0000000000000000000000000000000000000000000000000000000000000000",
            "token create --name bot",
            "token create --name bot --role root",
            "completion powershell",
            "agent remove",
            "agent revoke --fingerprint 00 --reason lost",
            "agent token create --label role",
            "agent",
            "agent unlock",
            "agent unlock web-07 --force",
            "audit",
            "audit verify",
            "audit delete shop@prod",
        ] {
            assert!(!accepts(line), "{line}");
        }
    }

    #[test]
    fn help_names_every_exit_code_and_leaves_the_breaking_of_lines_to_the_terminal() {
        let after = Cli::command().get_after_help().expect("an epilogue").to_string();
        let codes = after.lines().find_map(|line| line.strip_prefix("Exit codes: ")).expect("on one line");
        let named: Vec<&str> = codes.split(", ").filter_map(|one| one.split(' ').next()).collect();
        let all: Vec<String> = ExitCode::ALL.iter().map(|code| (*code as u8).to_string()).collect();
        assert_eq!(named, all);
        // A line of a paragraph that the source breaks would be broken again where the terminal is narrower.
        let mut commands = vec![Cli::command()];
        while let Some(command) = commands.pop() {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let mut lines = after.lines().peekable();
            while let Some(line) = lines.next() {
                let goes_on = lines.peek().is_some_and(|next| next.starts_with(|c: char| c.is_ascii_lowercase()));
                assert!(!goes_on || line.is_empty(), "{}: {line}", command.get_name());
            }
            commands.extend(command.get_subcommands().cloned());
        }
    }

    #[test]
    fn help_says_nothing_of_this_process_environment() {
        let help = Cli::command().render_long_help().to_string();
        for name in holdfast_net::config::OPERATOR_VARIABLES {
            assert!(help.contains(name), "{name}");
        }
    }
}
