//! Severe actions: their consequences are said, and the target's name is typed or given by `--confirm`.
//!
//! Off a terminal nothing is asked; what is missing is refused before anything is sent.

use std::io::{BufRead, Read};

use holdfast_common::code::Code;
use holdfast_common::problem::Problem;
use holdfast_common::text::one_line;

use super::Context;
use crate::failure::Failure;
use crate::output::Tone;

/// Longest line that is read from a person, in bytes.
const MAX_LINE: u64 = 64 * 1024;

/// Says what will follow, and gets the target's name. `reason` is the option that is needed beside it.
pub(super) fn name(
    given: Option<&str>,
    target: &str,
    consequences: &[String],
    reason: &str,
    context: &mut Context,
) -> Result<String, Failure> {
    for line in consequences {
        let line = Tone::Strong.paint(&one_line(line), context.printer.talk_terminal());
        context.printer.talk(&line)?;
    }
    let target = one_line(target);
    let typed = match given {
        Some(given) => given.to_owned(),
        None if context.surroundings.interactive => {
            ask(&format!("type the target's name to go on ({target}): "), context)?
        }
        None => String::new(),
    };
    if typed == target {
        return Ok(typed);
    }
    let title = match typed.as_str() {
        "" => format!("this is severe, and the target's name was not given: {target}"),
        typed => format!("this is severe, and {typed:?} is not the target's name: {target}"),
    };
    Err(Problem::new(Code::NotConfirmed, title)
        .so("nothing was sent, and nothing was changed")
        .next(format!("--confirm {target} {reason} TEXT, after reading what follows from it"))
        .with("target", &target)
        .into())
}

/// Whether the person says yes. Anything else is no.
pub(super) fn yes(question: &str, context: &mut Context) -> Result<bool, Failure> {
    let answer = ask(question, context)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// A reason that says something.
pub(super) fn reason(
    given: Option<String>,
    option: &str,
    question: &str,
    context: &mut Context,
) -> Result<String, Failure> {
    let reason = match given {
        Some(given) => given,
        None if context.surroundings.interactive => ask(question, context)?,
        None => String::new(),
    };
    if !reason.trim().is_empty() {
        return Ok(reason);
    }
    Err(Problem::new(Code::ReasonMissing, "this is recorded for ever and needs a reason")
        .so("nothing was sent, and nothing was changed")
        .next(format!("{option} TEXT"))
        .into())
}

fn ask(question: &str, context: &mut Context) -> Result<String, Failure> {
    context.printer.ask(question)?;
    let mut line = Vec::new();
    context.surroundings.input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use holdfast_common::code::ExitCode;

    use super::*;
    use crate::command::Surroundings;
    use crate::output::{Format, Printer, Terminal};
    use crate::settings::{Connection, Environment};

    fn context(typed: &str, interactive: bool) -> Context {
        let printer = Printer::over(Format::Table, Terminal::PLAIN, Terminal::PLAIN, std::io::sink(), std::io::sink());
        let input = Box::new(Cursor::new(typed.to_owned().into_bytes()));
        let surroundings = Surroundings { environment: Environment::default(), input, interactive };
        Context { printer: printer.boxed(), connection: Connection::default(), surroundings }
    }

    fn code(failure: &Failure) -> Option<Code> {
        failure.problem().map(|problem| problem.code)
    }

    #[test]
    fn only_the_exact_name_confirms_whether_typed_or_given() {
        let confirm =
            |given, typed, interactive| name(given, "shop@prod", &[], "--reason", &mut context(typed, interactive));
        assert_eq!(confirm(Some("shop@prod"), "", false).expect("given"), "shop@prod");
        assert_eq!(confirm(None, "shop@prod\n", true).expect("typed"), "shop@prod");
        for (given, typed, interactive) in [
            (None, "shop@prod\n", false),
            (None, "\n", true),
            (None, "y\n", true),
            (None, "", true),
            (None, " shop@prod\n", true),
            (Some("shop"), "shop@prod\n", true),
            (Some(""), "shop@prod\n", true),
        ] {
            let failure = confirm(given, typed, interactive).expect_err("not confirmed");
            assert_eq!(code(&failure), Some(Code::NotConfirmed), "{given:?} {typed:?}");
            assert_eq!(failure.exit(), ExitCode::Usage);
        }
    }

    #[test]
    fn a_reason_must_say_something() {
        let ask = |given: Option<&str>, typed, interactive| {
            reason(given.map(str::to_owned), "--reason", "why? ", &mut context(typed, interactive))
        };
        assert_eq!(ask(Some("because"), "", false).expect("given"), "because");
        assert_eq!(ask(None, "because\n", true).expect("typed"), "because");
        for (given, typed, interactive) in [(None, "because\n", false), (Some("  "), "", false), (None, " \n", true)] {
            let failure = ask(given, typed, interactive).expect_err("no reason");
            assert_eq!(code(&failure), Some(Code::ReasonMissing), "{given:?} {typed:?}");
        }
    }
}
