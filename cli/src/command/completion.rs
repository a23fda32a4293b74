//! `holdfast completion SHELL`

use clap::{CommandFactory, ValueEnum};
use clap_complete::aot;
use holdfast_common::code::ExitCode;

use super::{Context, Outcome};
use crate::grammar::Cli;

/// What it takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Where each shell looks for it:
  bash  holdfast completion bash > ~/.local/share/bash-completion/completions/holdfast
  zsh   holdfast completion zsh  > \"${fpath[1]}/_holdfast\"
  fish  holdfast completion fish > ~/.config/fish/completions/holdfast.fish")]
pub struct Args {
    /// For which shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// Bash
    Bash,
    /// Zsh
    Zsh,
    /// Fish
    Fish,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Outcome {
    context.printer.raw(&script(args.shell))?;
    Ok(ExitCode::Done)
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    let (command, name) = (&mut Cli::command(), "holdfast");
    match shell {
        Shell::Bash => aot::generate(aot::Bash, command, name, &mut script),
        Shell::Zsh => aot::generate(aot::Zsh, command, name, &mut script),
        Shell::Fish => aot::generate(aot::Fish, command, name, &mut script),
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(command: &clap::Command, into: &mut Vec<String>) {
        for each in command.get_subcommands().filter(|each| !each.is_hide_set()) {
            into.push(each.get_name().to_owned());
            names(each, into);
        }
    }

    #[test]
    fn the_script_of_every_shell_names_every_command_and_common_option() {
        let mut all = Vec::new();
        names(&Cli::command(), &mut all);
        assert!(all.len() > 30, "{all:?}");
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell)).expect("text");
            for name in all.iter().map(String::as_str).chain(["context", "token-file", "reason"]) {
                assert!(script.contains(name), "{shell:?} lacks {name}");
            }
        }
    }
}
