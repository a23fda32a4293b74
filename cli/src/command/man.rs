//! `holdfast man [--dir DIR]`

use std::io;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_mangen::Man;
use holdfast_common::code::{Code, ExitCode};
use holdfast_common::problem::Problem;

use super::{Context, Outcome};
use crate::grammar::Cli;

/// What it takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Read it with: holdfast man | man -l -")]
pub struct Args {
    /// Write the pages of every command into this folder instead
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// A page, and the name of its file.
struct Page {
    name: String,
    text: Vec<u8>,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Outcome {
    let pages = pages()?;
    match &args.dir {
        None => context.printer.raw(&pages.first().expect("the program itself has a page").text)?,
        Some(folder) => {
            write(folder, &pages).map_err(|error| {
                Problem::new(Code::Config, format!("could not write into {}: {error}", folder.display()))
            })?;
            context.printer.talk(&format!("{} pages are in {}", pages.len(), folder.display()))?;
        }
    }
    Ok(ExitCode::Done)
}

fn write(folder: &Path, pages: &[Page]) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    pages.iter().try_for_each(|page| std::fs::write(folder.join(&page.name), &page.text))
}

/// The program's page first, then those of its commands.
fn pages() -> io::Result<Vec<Page>> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    add(&root, &mut pages)?;
    Ok(pages)
}

/// The service is a program of this name, and `man` of a program's name must not show another's page.
const SERVICE: &str = "holdfast-agent";
/// The page of the commands about agents.
const AGENT_COMMANDS: &str = "holdfast-agent-commands";

fn add(command: &clap::Command, pages: &mut Vec<Page>) -> io::Result<()> {
    let page = Man::new(command.clone()).manual("Holdfast");
    let mut text = Vec::new();
    page.render(&mut text)?;
    let is_service = command.get_display_name() == Some(SERVICE);
    let name = if is_service { format!("{AGENT_COMMANDS}.1") } else { page.get_filename() };
    pages.push(Page { name, text: apart(&String::from_utf8_lossy(&text)).into_bytes() });
    command.get_subcommands().filter(|each| !each.is_hide_set()).try_for_each(|each| add(each, pages))
}

/// Under the page's own name where it would be called as the service: in its head, and where others point to it.
fn apart(text: &str) -> String {
    let roff = |name: &str| name.replace('-', "\\-");
    let (service, commands) = (roff(SERVICE), roff(AGENT_COMMANDS));
    text.replace(&format!(".TH {SERVICE} 1"), &format!(".TH {AGENT_COMMANDS} 1"))
        .replace(&format!("{service} \\- "), &format!("{commands} \\- "))
        .replace(&format!("{service}(1)"), &format!("{commands}(1)"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The requests that the pages use, all of them of the man macros or of every roff.
    const REQUESTS: [&str; 14] =
        [".TH", ".SH", ".SS", ".PP", ".TP", ".RS", ".RE", ".br", ".ie", ".el", ".IP", ".nf", ".fi", ".sp"];

    #[test]
    fn every_command_has_a_page_that_roff_understands() {
        let pages = pages().expect("in memory");
        let names: BTreeSet<&str> = pages.iter().map(|page| page.name.as_str()).collect();
        assert_eq!(names.len(), pages.len());
        for name in ["holdfast.1", "holdfast-deploy.1", "holdfast-reconcile-decide.1", "holdfast-token-create.1"] {
            assert!(names.contains(name), "{name}: {names:?}");
        }
        assert_eq!(pages[0].name, "holdfast.1");
        for service in ["holdfast-agent.1", "holdfast-coordinator.1"] {
            assert!(!names.contains(service), "{service} is a program of its own");
        }
        assert!(names.contains("holdfast-agent-commands.1") && names.contains("holdfast-agent-show.1"), "{names:?}");
        for Page { name, text } in &pages {
            let text = std::str::from_utf8(text).expect("text");
            for pointed in text.lines().filter_map(|line| line.strip_suffix("(1)")) {
                let page = format!("{}.1", pointed.replace("\\-", "-"));
                assert!(names.contains(page.as_str()), "{name} points to {page}");
            }
            let title = text.lines().find_map(|line| line.strip_prefix(".TH ")?.split(' ').next());
            assert_eq!(title, name.strip_suffix(".1"));
            let heads: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
            assert!(heads.starts_with(&["NAME", "SYNOPSIS"]), "{name}: {heads:?}");
            assert!(text.lines().any(|line| line.starts_with(".TH ")), "{name}");
            for line in text.lines().filter(|line| line.starts_with(['.', '\''])) {
                let request = line.split(' ').next().unwrap_or_default();
                assert!(REQUESTS.contains(&request) || line.starts_with(".\\\""), "{name}: {line}");
            }
        }
    }

    #[test]
    fn pages_are_written_into_a_folder() {
        let folder = std::env::temp_dir().join(format!("holdfast-man-{}", uuid::Uuid::new_v4()));
        write(&folder, &pages().expect("in memory")).expect("written");
        assert!(std::fs::read_to_string(folder.join("holdfast-watch.1")).expect("there").contains("watch"));
        std::fs::remove_dir_all(&folder).expect("ours");
    }
}
