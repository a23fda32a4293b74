//! Reading a secret from whoever sits there, or from a pipe, without showing it.

use std::io::{BufRead, IsTerminal, Read, stdin};

use holdfast_common::code::{Code, ExitCode};
use holdfast_common::problem::Problem;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::Context;
use super::watching::interrupted;
use crate::failure::Failure;

/// Longest line that is read, in bytes.
const MAX_LINE: u64 = 64 * 1024;

/// One line: asked for where a person sits there, and then not echoed; else the first of the input.
pub(super) fn line(question: &str, what: &str, context: &mut Context) -> Result<String, Failure> {
    if context.surroundings.interactive {
        context.printer.ask(question)?;
    }
    let quiet = Quiet::begin();
    let mut line = Vec::new();
    let read = context.surroundings.input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
    if quiet.is_some() {
        drop(quiet);
        // The person's own line feed was not shown either.
        context.printer.talk("")?;
    }
    read?;
    let text = String::from_utf8_lossy(&line).trim().to_owned();
    if !text.is_empty() {
        return Ok(text);
    }
    Err(Problem::new(Code::NotSignedIn, format!("no {what} was given"))
        .so("nothing was sent, and nothing was written")
        .next(format!("type it when asked, pipe it in, or give --token-file FILE: the {what} itself is no option"))
        .into())
}

/// The terminal does not echo while this lives.
struct Quiet {
    before: Termios,
}

impl Quiet {
    /// `None` where the input is no terminal.
    fn begin() -> Option<Self> {
        let input = stdin();
        if !input.is_terminal() {
            return None;
        }
        let before = tcgetattr(&input).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&input, OptionalActions::Now, &quiet).ok()?;
        // Ctrl-C in the middle must not leave a terminal that shows nothing.
        let restored = before.clone();
        tokio::spawn(async move {
            interrupted().await;
            let _gone = tcsetattr(stdin(), OptionalActions::Now, &restored);
            std::process::exit(ExitCode::Interrupted as i32);
        });
        Some(Self { before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // A terminal that is gone needs no echo.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}
