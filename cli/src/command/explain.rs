//! `holdfast explain [WORD]`: never asks a coordinator.

use holdfast_common::code::{Code, ExitCode};
use holdfast_common::explain::{Explanation, explain, explain_exit, explain_state, words};
use holdfast_common::file::nearest;
use holdfast_common::problem::Problem;
use holdfast_common::text::{bounded, one_line};
use serde_json::{Value, json};

use super::{Context, Outcome};
use crate::output::{Listing, Record, Table, Terminal, Tone};

/// What it takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A code like HF-2031, an exit code like `exit 12`, or a word: a state, a reason, a decision, a role. Without one,
    /// everything that is explained is listed
    #[arg(value_name = "CODE|WORD", num_args = 0..)]
    pub word: Vec<String>,
}

pub(super) fn run(args: &Args, context: &mut Context) -> Outcome {
    if args.word.is_empty() {
        context.printer.listing(&all())?;
        return Ok(ExitCode::Done);
    }
    let word = args.word.join(" ");
    let terminal = context.printer.terminal();
    let record = match (Code::parse(&word.to_uppercase()), exit(&word), explain_state(&word)) {
        (Some(code), _, _) => of_code(code, terminal),
        (None, Some(exit), _) => of_exit(exit, terminal),
        (None, None, Some(explanation)) => of_state(&word, explanation, terminal),
        (None, None, None) => return Err(unknown(&word).into()),
    };
    context.printer.record(&record)?;
    Ok(ExitCode::Done)
}

/// `exit 12`, `exit-12` or just `12`.
fn exit(word: &str) -> Option<ExitCode> {
    let number = word.trim().strip_prefix("exit").unwrap_or(word).trim_start_matches([' ', '-', '_']);
    ExitCode::from_number(number.parse().ok()?)
}

fn of_exit(exit: ExitCode, terminal: &Terminal) -> Record {
    let explanation = explain_exit(exit);
    let name = format!("exit {}", exit as u8);
    let mut whole = as_json(explanation);
    whole["exit"] = json!(exit as u8);
    Record { whole, text: text(&Tone::Strong.paint(&name, terminal), explanation), name }
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

/// Codes, exit codes and words, each with the first sentence of what it means.
fn all() -> Listing {
    let mut table = Table::new(&["kind", "word", "meaning"]);
    let mut items = Vec::new();
    let mut names = Vec::new();
    let mut add = |kind: &str, word: String, meaning: &str, more: Value| {
        table.row([kind.to_owned(), word.clone(), meaning.to_owned()]);
        let mut item = json!({ "kind": kind, "word": word, "meaning": meaning });
        if let (Some(item), Value::Object(more)) = (item.as_object_mut(), more) {
            item.extend(more);
        }
        items.push(item);
        names.push(word);
    };
    for code in Code::ALL {
        add("code", code.to_string(), code.title(), json!({ "exit": code.exit() as u8 }));
    }
    for exit in ExitCode::ALL {
        add("exit", format!("exit {}", exit as u8), first_sentence(explain_exit(exit).what), json!({}));
    }
    for (kind, word, explanation) in words() {
        add(kind.words(), word.replace('_', " "), first_sentence(explanation.what), json!({}));
    }
    Listing { whole: json!({ "explained": items }), items, names, table, nothing: "nothing is explained" }
}

fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.')
}

fn unknown(word: &str) -> Problem {
    let words: Vec<String> = words().into_iter().map(|(_, word, _)| word.replace('_', " ")).collect();
    let problem = Problem::new(
        Code::InvalidValue,
        format!("{:?} is neither a code nor a word that is explained", bounded(word, 100)),
    );
    let problem = match nearest(&bounded(word, 100), words.iter().map(String::as_str)) {
        Some(meant) => problem.next(format!("did you mean {meant:?}? then: holdfast explain {meant}")),
        None => problem,
    };
    problem.next("holdfast explain lists everything that is explained")
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
    }

    #[test]
    fn a_mistyped_word_is_told_with_the_one_that_was_meant() {
        assert_eq!(unknown("uncertian").next[0], "did you mean \"uncertain\"? then: holdfast explain uncertain");
        assert!(unknown("fenced ovf").next[0].ends_with("holdfast explain fenced off"));
        assert_eq!(unknown("frobnicate").next.len(), 1);
    }

    #[test]
    fn exit_codes_are_explained_by_number() {
        for word in ["exit 12", "exit-12", "12"] {
            assert_eq!(exit(word), Some(ExitCode::NeedsDecision), "{word}");
        }
        for word in ["exit 42", "exit", "uncertain", "2031"] {
            assert_eq!(exit(word), None, "{word}");
        }
        assert!(of_exit(ExitCode::NoAnswer, &Terminal::PLAIN).text.starts_with("exit 5\n  what "));
    }

    #[test]
    fn whatever_is_listed_is_explained() {
        let listed = all().names;
        assert!(listed.len() > 150, "{}", listed.len());
        for word in listed {
            let known = Code::parse(&word).is_some() || exit(&word).is_some() || explain_state(&word).is_some();
            assert!(known, "{word}");
        }
    }
}
