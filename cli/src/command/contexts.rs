//! `holdfast context list|use|remove|show`: the contexts of the configuration file. Never asks a coordinator.

use clap::Subcommand;
use holdfast_common::code::{Code, ExitCode};
use holdfast_common::problem::Problem;
use holdfast_common::text::one_line;
use serde_json::{Value, json};

use super::{Context, Outcome};
use crate::failure::Failure;
use crate::output::{Listing, Record, Table, Tone};
use crate::settings::{About, Contexts, Source};

/// What to do with contexts.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the contexts
    List,
    /// Make one the current: it is taken where none is named
    Use {
        /// Its name
        name: String,
    },
    /// Forget one, with the CA and the token that `login` wrote for it; the token itself stays good
    Remove {
        /// Its name
        name: String,
    },
    /// Show one, or what commands would use now and what says so
    Show {
        /// Its name
        name: Option<String>,
    },
}

pub(super) fn run(command: Command, context: &mut Context) -> Outcome {
    let contexts = Contexts::of(&context.surroundings.environment)?;
    match command {
        Command::List => list(&contexts, context)?,
        Command::Use { name } => {
            let about = contexts.choose(&name)?;
            let text = format!("{} at {} is the current context\n", one_line(&name), one_line(&about.address));
            print(&about, text, context)?;
            note(context)?;
        }
        Command::Remove { name } => {
            let about = contexts.remove(&name)?;
            let left = if about.current { ", and none is current now" } else { "" };
            let text = format!("the context {} is removed{left}; its token is not revoked by that\n", one_line(&name));
            print(&about, text, context)?;
        }
        Command::Show { name: Some(name) } => {
            let about = contexts.named(&name)?;
            let text = text(&about);
            print(&about, text, context)?;
        }
        Command::Show { name: None } => show_taken(&contexts, context)?,
    }
    Ok(ExitCode::Done)
}

/// What commands would use now. With an address of its own the environment chooses, and no context is taken.
fn show_taken(contexts: &Contexts, context: &mut Context) -> Result<(), Failure> {
    let chosen = contexts.chosen(&context.connection, &context.surroundings.environment);
    if chosen.is_none() && context.surroundings.environment.text("HOLDFAST_ADDRESS").is_none() {
        return Err(none_chosen().into());
    }
    let settings = context.settings()?;
    let (name, head) = match &settings.address_from {
        Source::Context(name) => (name.clone(), one_line(name)),
        Source::Option(_) | Source::Variable(_) | Source::Typed => {
            (String::new(), format!("no context: {} comes first", settings.address_from))
        }
    };
    let mut whole = match contexts.find(&name) {
        Some(about) => whole(&about),
        None => json!({ "name": null, "current": false }),
    };
    whole["address"] = json!(settings.address);
    whole["ca"] = json!(settings.ca);
    whole["serverName"] = json!(settings.server_name);
    whole["addressFrom"] = json!(settings.address_from.to_string());
    whole["tokenFrom"] = json!(settings.token_from.to_string());
    let lines = [
        ("address", format!("{}, said by {}", settings.address, settings.address_from)),
        ("ca", settings.ca.display().to_string()),
        ("token", format!("said by {}", settings.token_from)),
    ];
    let server_name = settings.server_name.map(|name| ("server name", name));
    let body: String = lines
        .into_iter()
        .chain(server_name)
        .map(|(label, line)| format!("  {label:<12} {}\n", one_line(&line)))
        .collect();
    Ok(context.printer.record(&Record { whole, name, text: format!("{head}\n{body}") })?)
}

fn none_chosen() -> Problem {
    Problem::new(Code::Config, "no context is chosen")
        .so("nothing was sent")
        .next("holdfast context list")
        .next("holdfast login HOST:PORT makes one")
}

fn print(about: &About, text: String, context: &mut Context) -> std::io::Result<()> {
    context.printer.record(&Record { whole: whole(about), name: one_line(&about.name), text })
}

fn whole(about: &About) -> Value {
    json!({
        "name": about.name, "current": about.current, "address": about.address, "ca": about.ca,
        "serverName": about.server_name, "token": about.token,
    })
}

fn text(about: &About) -> String {
    let mut lines = vec![
        ("address", about.address.clone()),
        ("ca", about.ca.display().to_string()),
        ("token", about.token.clone()),
    ];
    lines.extend(about.server_name.clone().map(|name| ("server name", name)));
    let current = if about.current { "  (current)" } else { "" };
    let body: String = lines.iter().map(|(label, line)| format!("  {label:<12} {}\n", one_line(line))).collect();
    format!("{}{current}\n{body}", one_line(&about.name))
}

fn note(context: &mut Context) -> std::io::Result<()> {
    match context.surroundings.environment.comes_before_contexts() {
        Some(note) => context.printer.talk(&note),
        None => Ok(()),
    }
}

/// The one that is marked is the one that commands take: none where the environment has an address of its own.
fn list(contexts: &Contexts, context: &mut Context) -> std::io::Result<()> {
    let all = contexts.all();
    let environment = &context.surroundings.environment;
    let taken = contexts.chosen(&context.connection, environment).filter(|_| {
        context.connection.context.is_some()
            || (context.connection.address.is_none() && environment.text("HOLDFAST_ADDRESS").is_none())
    });
    let mut table = Table::new(&["", "context", "address", "ca", "token"]);
    for about in &all {
        let mark = if taken.as_ref() == Some(&about.name) { "*" } else { "" };
        table.row_in_tones([
            (mark.to_owned(), Tone::Good),
            (about.name.clone(), Tone::Strong),
            (about.address.clone(), Tone::Plain),
            (about.ca.display().to_string(), Tone::Quiet),
            (about.token.clone(), Tone::Quiet),
        ]);
    }
    let items: Vec<Value> = all.iter().map(whole).collect();
    context.printer.listing(&Listing {
        whole: json!({ "contexts": items }),
        items,
        names: all.iter().map(|about| one_line(&about.name)).collect(),
        table,
        nothing: "no contexts: holdfast login HOST:PORT makes one",
    })?;
    note(context)
}
