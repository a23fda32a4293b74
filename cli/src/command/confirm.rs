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

/// What was given by options, and how the reason's option is called.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given<'a> {
    /// Whose name it is: `target`.
    pub(super) what: &'a str,
    /// The target's name, by `--confirm`.
    pub(super) name: Option<&'a str>,
    /// The reason, by its option.
    pub(super) reason: Option<&'a str>,
    /// Like `--reason`.
    pub(super) option: &'a str,
}

/// Says what will follow, and gets the target's name.
///
/// What is missing and can't be asked for is refused first: nobody is warned of what does not happen.
pub(super) fn name(
    given: Given<'_>,
    target: &str,
    consequences: &[String],
    context: &mut Context,
) -> Result<String, Failure> {
    possible(given, target, context)?;
    let target = one_line(target);
    // The coordinator may refuse it yet: nothing of this has happened.
    context.printer.talk("what would follow:")?;
    for line in consequences {
        let line = Tone::Strong.paint(&one_line(line), context.printer.talk_terminal());
        context.printer.talk(&format!("  {line}"))?;
    }
    let typed = match given.name {
        Some(name) => name.to_owned(),
        None => ask(&format!("type the {}'s name to go on ({target}): ", given.what), context)?,
    };
    if typed == target { Ok(typed) } else { Err(not_confirmed(given, &typed, &target)) }
}

/// Refuses what can't be confirmed, whoever is asked.
pub(super) fn possible(given: Given<'_>, target: &str, context: &Context) -> Result<(), Failure> {
    let target = one_line(target);
    let asks = context.surroundings.interactive;
    match given.name {
        Some(name) if name != target => return Err(not_confirmed(given, name, &target)),
        None if !asks => return Err(not_confirmed(given, "", &target)),
        Some(_) | None => {}
    }
    if !asks && given.reason.is_none_or(|reason| reason.trim().is_empty()) {
        return Err(no_reason(given.option));
    }
    Ok(())
}

fn not_confirmed(given: Given<'_>, typed: &str, target: &str) -> Failure {
    let Given { what, option, .. } = given;
    let title = match typed {
        "" => format!("this is severe, and the {what}'s name was not given: {target}"),
        typed => format!("this is severe, and {typed:?} is not the {what}'s name: {target}"),
    };
    Problem::new(Code::NotConfirmed, title)
        .so("nothing was sent, and nothing was changed")
        .next(format!("--confirm {target} {option} TEXT, after reading what follows from it"))
        .with(what, target)
        .into()
}

fn no_reason(option: &str) -> Failure {
    Problem::without_reason(option).so("nothing was sent, and nothing was changed").into()
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
    Err(no_reason(option))
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
        Context { printer: printer.boxed(), connection: Connection::default(), token_from: None, surroundings }
    }

    fn code(failure: &Failure) -> Option<Code> {
        failure.problem().map(|problem| problem.code)
    }

    #[test]
    fn only_the_exact_name_confirms_whether_typed_or_given() {
        let confirm = |given, typed, interactive| {
            let given = Given { what: "target", name: given, reason: Some("seen"), option: "--reason" };
            name(given, "shop@prod", &[], &mut context(typed, interactive))
        };
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
    fn nobody_is_warned_of_what_is_refused_at_once() {
        let told = Told::default();
        let printer = Printer::over(Format::Table, Terminal::PLAIN, Terminal::PLAIN, std::io::sink(), told.clone());
        let mut context = Context { printer: printer.boxed(), ..context("", false) };
        let consequences = ["it can't be taken back".to_owned()];
        for (given, reason) in [(None, Some("seen")), (Some("shop"), Some("seen")), (Some("shop@prod"), None)] {
            let given = Given { what: "target", name: given, reason, option: "--reason" };
            name(given, "shop@prod", &consequences, &mut context).expect_err("refused");
        }
        assert_eq!(told.text(), "");
        let given = Given { what: "target", name: Some("shop@prod"), reason: Some("seen"), option: "--reason" };
        name(given, "shop@prod", &consequences, &mut context).expect("confirmed");
        assert_eq!(told.text(), "what would follow:\n  it can't be taken back\n");
    }

    /// What was written, to be looked at while it is still written to.
    #[derive(Clone, Default)]
    struct Told(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

    impl Told {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("no panic").clone()).expect("text")
        }
    }

    impl std::io::Write for Told {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
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
