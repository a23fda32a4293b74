//! `~/.config/holdfast/config.toml`:
//!
//! ```toml
//! current = "prod"
//!
//! [context.prod]
//! address    = "deploy.example:7443"
//! ca         = "prod-ca.pem"       # relative to this file's folder
//! token_file = "prod.token"        # or: token = "..."
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use holdfast_common::code::Code;
use holdfast_common::problem::Problem;
use serde::Deserialize;

use super::{Source, Token};
use crate::failure::Failure;

const MAX_BYTES: u64 = 1024 * 1024;

/// The whole file. One that is not there is empty.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) current: Option<String>,
    #[serde(default)]
    pub(super) context: BTreeMap<String, Context>,
    #[serde(skip)]
    path: Option<PathBuf>,
}

/// One coordinator, and who the operator is there.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Context {
    pub(super) address: String,
    pub(super) ca: PathBuf,
    pub(super) server_name: Option<String>,
    token: Option<String>,
    token_file: Option<PathBuf>,
    #[serde(skip)]
    place: Place,
}

/// Where a context stands, for messages.
#[derive(Clone, Debug, Default)]
struct Place {
    name: String,
    file: PathBuf,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("address", &self.address).field("ca", &self.ca).finish_non_exhaustive()
    }
}

impl File {
    pub(super) fn read(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self::default()) };
        let text = match text(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { path: Some(path.to_owned()), ..Self::default() });
            }
            Err(error) => return Err(unreadable(path, &error).into()),
        };
        let mut file: File = toml::from_str(&text).map_err(|error| broken(path, &text, &error))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        for (name, context) in &mut file.context {
            context.ca = folder.join(&context.ca);
            context.token_file = context.token_file.take().map(|token| folder.join(token));
            context.place = Place { name: name.clone(), file: path.to_owned() };
        }
        file.path = Some(path.to_owned());
        Ok(file)
    }

    pub(super) fn named(&self, name: &str) -> Result<Context, Failure> {
        self.context.get(name).cloned().ok_or_else(|| {
            let problem = Problem::new(Code::Config, format!("there is no context {name:?}")).so("nothing was sent");
            let problem = match self.names() {
                names if names.is_empty() => problem.next(format!("add [context.{name}] to {}", self.shown())),
                names => problem.known(format!("{} has {names}", self.shown())).next("holdfast --context NAME ..."),
            };
            problem.into()
        })
    }

    pub(super) fn names(&self) -> String {
        self.context.keys().cloned().collect::<Vec<_>>().join(", ")
    }

    pub(super) fn shown(&self) -> String {
        self.path
            .as_ref()
            .map_or_else(|| "~/.config/holdfast/config.toml".to_owned(), |path| path.display().to_string())
    }
}

/// Where a context's token is.
pub(super) enum TokenPlace<'a> {
    Here,
    File(&'a Path),
    Nowhere,
}

impl Context {
    pub(super) fn token_place(&self) -> TokenPlace<'_> {
        match (&self.token, &self.token_file) {
            (Some(_), _) => TokenPlace::Here,
            (None, Some(path)) => TokenPlace::File(path),
            (None, None) => TokenPlace::Nowhere,
        }
    }

    pub(super) fn source(&self) -> Source {
        Source::Context(self.place.name.clone())
    }

    pub(super) fn token(&self, warnings: &mut Vec<String>) -> Result<Token, Failure> {
        let Place { name, file } = &self.place;
        match (&self.token, &self.token_file) {
            (Some(token), None) => {
                warn_if_open(file, warnings);
                Ok(Token(token.clone()))
            }
            (None, Some(path)) => token(path, warnings),
            (None, None) => Err(Problem::new(Code::NotSignedIn, format!("the context {name} has no token"))
                .so("nothing was sent")
                .next(format!(
                    "add token_file = \"FILE\" to [context.{name}] in {}, or set HOLDFAST_TOKEN",
                    file.display()
                ))
                .into()),
            (Some(_), Some(_)) => {
                Err(Problem::new(Code::Config, format!("the context {name} has both token and token_file"))
                    .so("nothing was sent")
                    .next(format!("take one of them out of {}", file.display()))
                    .into())
            }
        }
    }
}

/// A file that holds nothing but a token.
pub(super) fn token(path: &Path, warnings: &mut Vec<String>) -> Result<Token, Failure> {
    let text = text(path).map_err(|error| unreadable(path, &error))?;
    warn_if_open(path, warnings);
    match text.trim() {
        "" => Err(Problem::new(Code::NotSignedIn, format!("the token file {} is empty", path.display()))
            .so("nothing was sent")
            .next("put the token into it, and nothing else")
            .into()),
        token => Ok(Token(token.to_owned())),
    }
}

fn text(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it has more than {MAX_BYTES} bytes")));
    }
    fs::read_to_string(path)
}

fn warn_if_open(path: &Path, warnings: &mut Vec<String>) {
    let open = fs::metadata(path).is_ok_and(|about| about.permissions().mode() & 0o077 != 0);
    if open {
        let path = path.display();
        warnings.push(format!("warning: others on this machine can read the token in {path}: chmod 600 {path}"));
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    Problem::new(Code::Config, format!("could not read {}: {error}", path.display())).so("nothing was sent")
}

/// Without the line itself: it may hold a token.
fn broken(path: &Path, text: &str, error: &toml::de::Error) -> Problem {
    let place = error.span().map(|span| {
        let before = text.get(..span.start).unwrap_or(text);
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!(":{}:{column}", before.matches('\n').count() + 1)
    });
    Problem::new(Code::Config, format!("{}{}: {}", path.display(), place.unwrap_or_default(), error.message()))
        .so("nothing was sent")
        .next("correct the file")
}
