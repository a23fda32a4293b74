//! `holdfast explain [CODE|STATE]`: never asks a coordinator.

use holdfast_common::code::{Code, ExitCode};
use holdfast_common::explain::{Explanation, explain, explain_state, state_words};
use holdfast_common::problem::Problem;
use holdfast_common::text::{bounded, one_line};
use serde_json::{Value, json};

use super::{Context, Outcome};
use crate::output::{Listing, Record, Table, Terminal, Tone};

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A code like HF-2031, or a state like `uncertain`; without one, all codes are listed
    #[arg(value_name = "CODE|STATE", num_args = 0..)]
    pub word: Vec<String>,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Outcome {
    if args.word.is_empty() {
        context.printer.listing(&all())?;
        return Ok(ExitCode::Done);
    }
    let word = args.word.join(" ");
    let record = match (Code::parse(&word.to_uppercase()), explain_state(&word)) {
        (Some(code), _) => of_code(code, context.printer.terminal()),
        (None, Some(explanation)) => of_state(&word, explanation, context.printer.terminal()),
        (None, None) => return Err(unknown(&word).into()),
    };
    context.printer.record(&record)?;
    Ok(ExitCode::Done)
}

fn of_code(code: Code, terminal: &Terminal) -> Record {
    let explanation = explain(code);
    let exit = code.exit() as u8;
    let head = format!("{}: {} (exit code {exit})", Tone::Strong.paint(&code.to_string(), terminal), code.title());
    let mut whole = as_json(explanation);
    whole["code"] = json!(code.to_string());
    whole["title"] = json!(code.title());
    whole["exit"] = json!(exit);
    Record { whole, name: code.to_string(), text: text(&head, explanation) }
}

fn of_state(word: &str, explanation: Explanation, terminal: &Terminal) -> Record {
    let word = one_line(&word.trim().to_lowercase());
    let mut whole = as_json(explanation);
    whole["state"] = json!(word);
    Record { whole, text: text(&Tone::Strong.paint(&word, terminal), explanation), name: word }
}

fn as_json(explanation: Explanation) -> Value {
    serde_json::to_value(explanation).expect("plain data serializes")
}

fn text(head: &str, explanation: Explanation) -> String {
    let Explanation { what, still_true, next } = explanation;
    format!("{head}\n  what        {what}\n  still true  {still_true}\n  next        {next}\n")
}

fn all() -> Listing {
    let mut table = Table::new(&["code", "exit", "title"]);
    for code in Code::ALL {
        table.row([code.to_string(), (code.exit() as u8).to_string(), code.title().to_owned()]);
    }
    let items: Vec<Value> = Code::ALL
        .iter()
        .map(|code| json!({ "code": code.to_string(), "exit": code.exit() as u8, "title": code.title() }))
        .collect();
    let names = Code::ALL.iter().map(ToString::to_string).collect();
    Listing { whole: json!({ "codes": items }), items, names, table, nothing: "no codes" }
}

fn unknown(word: &str) -> Problem {
    let states: Vec<&str> = state_words().collect();
    Problem::new(Code::InvalidValue, format!("{:?} is neither a code nor a state", bounded(word, 100)))
        .known(format!("states: {}", states.join(", ")))
        .next("holdfast explain lists all codes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_states_are_explained() {
        let record = of_code(Code::TargetUncertain, &Terminal::PLAIN);
        assert!(
            record.text.starts_with("HF-2031: the target is held by a deployment that is uncertain (exit code 15)\n")
        );
        assert_eq!(record.whole["exit"], 15);
        let state = explain_state("uncertain").expect("a state");
        assert!(of_state("Uncertain", state, &Terminal::PLAIN).text.starts_with("uncertain\n  what "));
        assert_eq!(all().names.len(), Code::ALL.len());
    }
}
