//! What is wrong with a file, and where.

use std::fmt;

use crate::code::Code;
use crate::file::MAX_FILE;
use crate::file::reader::Fault;
use crate::problem::Problem;
use crate::text::{bounded, one_line};

/// Most errors that are told at once.
const MAX_TOLD: usize = 20;

/// A place in a file. Both count from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

impl Position {
    /// The place of a byte offset. An offset inside a character is that character; past the end is the end.
    pub(super) fn of(text: &str, offset: usize) -> Self {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line_start = before.rfind('\n').map_or(0, |feed| feed + 1);
        Self {
            line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One thing that is wrong. All its texts are printable on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Its stable code.
    pub code: Code,
    /// Where it is.
    pub position: Position,
    /// The dotted key path, like `step[0].with.sha256`, where known. Lists count from 0.
    pub key: Option<String>,
    /// What is wrong.
    pub message: String,
    /// The key or value that was probably meant.
    pub suggestion: Option<String>,
    /// It is about a value that was given for an input: the file itself is sound.
    pub about_given: bool,
}

impl Error {
    fn of(text: &str, fault: Fault) -> Self {
        Self {
            code: fault.code,
            position: Position::of(text, fault.place.at),
            key: (!fault.place.path.is_empty()).then(|| bounded(&one_line(&fault.place.path), 200)),
            message: one_line(&fault.message),
            suggestion: fault.suggestion,
            about_given: fault.about_given,
        }
    }

    /// The error as it is shown, for the file of that name.
    #[must_use]
    pub fn problem(&self, file: &str) -> Problem {
        let place = match &self.key {
            Some(key) => format!("{file}:{}, at {key}", self.position),
            None => format!("{file}:{}", self.position),
        };
        let next = match (&self.suggestion, self.about_given) {
            (Some(word), true) => format!("did you mean --set {word}=VALUE?"),
            (None, true) => format!("--set NAME=VALUE, for the inputs that {file} declares under [inputs]"),
            (Some(word), false) => format!("did you mean {word:?}? then: holdfast check {file}"),
            (None, false) => format!("holdfast check {file}"),
        };
        let problem =
            Problem::new(self.code, &self.message).known(place).so("nothing was recorded and nothing was started");
        let problem = match self.code == Code::DataDestroyed {
            true => problem
                .so("a rollback would start the previous image on data that it does not know")
                .next("split it where you can: a file that expands, and a later one that contracts")
                .next("else test a recovery, and declare it: data_recovery = \"restore:WHAT WAS TESTED, AND WHEN\"")
                .next("let [[rollback.step]] do it, and name a [[verify]] that sees it done"),
            false => problem,
        };
        problem
            .next(next)
            .with("file", file)
            .with("line", self.position.line.to_string())
            .with("column", self.position.column.to_string())
            .with("key", self.key.as_deref().unwrap_or_default())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.position)?;
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.message)?;
        match &self.suggestion {
            Some(word) => write!(f, "; did you mean {word:?}?"),
            None => Ok(()),
        }
    }
}

/// Everything that was found wrong at once, in file order. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors {
    told: Vec<Error>,
    untold: usize,
}

impl Errors {
    pub(super) fn of(text: &str, mut faults: Vec<Fault>) -> Self {
        faults.sort_by_key(|fault| fault.place.at);
        let untold = faults.len().saturating_sub(MAX_TOLD);
        faults.truncate(MAX_TOLD);
        assert!(!faults.is_empty(), "errors are made of at least one fault");
        Self { told: faults.into_iter().map(|fault| Error::of(text, fault)).collect(), untold }
    }

    pub(super) fn one(text: &str, fault: Fault) -> Self {
        Self::of(text, vec![fault])
    }

    pub(super) fn too_large(length: usize) -> Self {
        Self::one("", Fault::at(Code::TooLarge, 0, format!("the file has {length} bytes, at most {MAX_FILE} are read")))
    }

    pub(super) fn not_utf8(bytes: &[u8], offset: usize) -> Self {
        let valid = std::str::from_utf8(&bytes[..offset]).expect("checked: valid up to the offset");
        Self::one(
            valid,
            Fault::at(Code::FileSyntax, offset, format!("the file is not UTF-8: bad byte at offset {offset}")),
        )
    }

    /// The errors in file order, at most twenty.
    pub fn iter(&self) -> std::slice::Iter<'_, Error> {
        self.told.iter()
    }

    /// How many more there are.
    #[must_use]
    pub fn untold(&self) -> usize {
        self.untold
    }

    /// The code for all of them: the first that is wrong in any version, else
    /// [`Code::NotSupported`](crate::code::Code::NotSupported).
    #[must_use]
    pub fn code(&self) -> Code {
        self.told.iter().map(|error| error.code).find(|code| *code != Code::NotSupported).unwrap_or(Code::NotSupported)
    }
}

impl<'a> IntoIterator for &'a Errors {
    type Item = &'a Error;
    type IntoIter = std::slice::Iter<'a, Error>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.told.iter().enumerate() {
            let feed = if index == 0 { "" } else { "\n" };
            write!(f, "{feed}{error}")?;
        }
        match self.untold {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for Errors {}
