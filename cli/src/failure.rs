//! Why a command did not do what it was asked to.

use std::io;

use holdfast_common::code::{Code, ExitCode};
use holdfast_common::file::Errors;
use holdfast_common::problem::Problem;
use holdfast_common::text::{chain, printable};

use crate::output::{BoxedPrinter, json_line};

/// Told on stderr. What it exits with stands beside it.
#[derive(Debug)]
pub enum Failure {
    /// Refusals, in the shape of errors.
    Refused {
        /// At least one.
        problems: Vec<Problem>,
        /// What the command exits with.
        exit: ExitCode,
    },
    /// Stdout or stderr could not be written.
    Output(io::Error),
    /// Anything else, with its causes.
    Unexpected(anyhow::Error),
}

impl Failure {
    /// With another exit code than the problem's own.
    #[must_use]
    pub fn exiting(problem: Problem, exit: ExitCode) -> Self {
        Self::Refused { problems: vec![problem], exit }
    }

    /// Everything that is wrong with a file.
    #[must_use]
    pub fn of_file(errors: &Errors, file: &str) -> Self {
        let told = errors.iter().count();
        let with_rest = |(index, problem): (usize, Problem)| match errors.untold() {
            more @ 1.. if index + 1 == told => problem.known(format!("and {more} more")),
            _ => problem,
        };
        let problems = errors.iter().map(|error| error.problem(file)).enumerate().map(with_rest).collect();
        Self::Refused { problems, exit: errors.code().exit() }
    }

    /// A broken promise of the coordinator's: an answer without what it must have.
    #[must_use]
    pub fn incomplete(field: &'static str) -> Self {
        Problem::new(Code::Internal, format!("the coordinator's answer has no {field}"))
            .so("the request was answered, so it was taken")
            .next("holdfast whoami tells which version answers")
            .into()
    }

    /// With each refusal as `change` makes it.
    #[must_use]
    pub fn map(self, change: impl FnMut(Problem) -> Problem) -> Self {
        match self {
            Self::Refused { problems, exit } => {
                Self::Refused { problems: problems.into_iter().map(change).collect(), exit }
            }
            Self::Output(_) | Self::Unexpected(_) => self,
        }
    }

    /// What the command exits with.
    #[must_use]
    pub fn exit(&self) -> ExitCode {
        match self {
            Self::Refused { exit, .. } => *exit,
            Self::Output(_) | Self::Unexpected(_) => ExitCode::Unexpected,
        }
    }

    /// The first refusal, where it is one.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused { problems, .. } => problems.first(),
            Self::Output(_) | Self::Unexpected(_) => None,
        }
    }

    /// Whether nobody answered, so that the same question may be asked again.
    #[must_use]
    pub fn is_no_answer(&self) -> bool {
        self.exit() == ExitCode::NoAnswer
    }

    /// Tells it on stderr: for people, or one JSON object per line. A reader that has gone has had enough.
    pub fn tell(&self, printer: &mut BoxedPrinter) {
        let told = match self {
            Self::Refused { problems, .. } => problems.iter().try_for_each(|problem| {
                if printer.format().is_json() {
                    let json = serde_json::to_value(problem).expect("a problem is plain data");
                    printer.talk(&json_line(&json))
                } else {
                    printer.talk(&problem.to_string())
                }
            }),
            Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Self::Output(error) => printer.talk(&format!("error: could not write the answer: {error}")),
            Self::Unexpected(error) => printer.talk(&format!("error: {}", printable(&chain(error.as_ref())))),
        };
        // Where stderr is gone too there is nobody to tell.
        let _ = told;
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let exit = problem.code.exit();
        Self::exiting(problem, exit)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use holdfast_common::file::DeploymentFile;

    use super::*;
    use crate::output::{Format, Printer, Terminal};

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("one thread").write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn told(format: Format, failure: &Failure) -> String {
        let err = Shared::default();
        failure.tell(&mut Printer::over(format, Terminal::PLAIN, Terminal::PLAIN, io::sink(), err.clone()).boxed());
        let bytes = err.0.lock().expect("one thread").clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn all_faults_of_a_file_are_told_at_once_with_line_and_column() {
        let errors =
            DeploymentFile::parse("schema = \"holdfast/v1\"\ntargt = \"x\"\nfoo = 1\n").expect_err("two faults");
        let failure = Failure::of_file(&errors, "a.toml");
        assert_eq!(failure.exit(), ExitCode::Usage);
        let text = told(Format::Table, &failure);
        assert_eq!(text.matches("error[HF-").count(), errors.iter().count());
        assert!(text.contains("a.toml:2:1"), "{text}");
        assert!(text.contains("did you mean \"target\"?"), "{text}");
        let json = told(Format::Json, &failure);
        for line in json.lines() {
            let value: serde_json::Value = serde_json::from_str(line).expect("one object per line");
            assert_eq!(value["metadata"]["file"], "a.toml");
        }
        assert_eq!(json.lines().count(), errors.iter().count());
    }

    #[test]
    fn a_reader_that_has_gone_is_no_reason_to_complain() {
        assert_eq!(told(Format::Table, &io::Error::from(io::ErrorKind::BrokenPipe).into()), "");
        assert!(told(Format::Table, &io::Error::from(io::ErrorKind::StorageFull).into()).starts_with("error: "));
    }
}
