//! Reading the values of a credential set.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::SHORTEST;
use crate::config::CredentialSet;

/// Largest file of a secret.
const BOUND_BYTES: u64 = 64 * 1024;

/// Where values are, by name. No values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    /// Files that a command finds in its folder.
    pub files: BTreeMap<String, PathBuf>,
    /// Files with lines like `KEY=VALUE`.
    pub variables: Vec<PathBuf>,
}

/// Why a value can't be had. Names the source and never a value.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file can't be read.
    #[error("credential file {path} can't be read: {source}")]
    Read {
        /// Which.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// It is no secret's size.
    #[error("credential file {path} is larger than {BOUND_BYTES} bytes")]
    TooLarge {
        /// Which.
        path: String,
    },
    /// It is no list of variables.
    #[error(
        "line {line} of {path} is not KEY=VALUE with a key of letters, digits and _ that does not begin with HOLDFAST_"
    )]
    NotAVariable {
        /// Which file.
        path: String,
        /// Which line, from 1.
        line: usize,
    },
}

/// The sources of a set as configured. A systemd credential is a file in `$CREDENTIALS_DIRECTORY`.
pub fn sources(set: &CredentialSet) -> Result<Sources, String> {
    let mut files = set.files.clone();
    if let Some(name) = &set.systemd {
        let folder = std::env::var_os("CREDENTIALS_DIRECTORY").ok_or_else(|| {
            format!("systemd credential {name}: CREDENTIALS_DIRECTORY is not set, so systemd handed over none")
        })?;
        files.insert(name.clone(), Path::new(&folder).join(name));
    }
    if let Some(name) = files.keys().find(|name| !is_name(name)) {
        return Err(format!("{name:?} is no name of a credential: letters, digits, '.', '_' and '-'"));
    }
    Ok(Sources { files, variables: set.environment_file.iter().cloned().collect() })
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain)
}

impl Sources {
    /// Every file.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.values().chain(&self.variables).map(PathBuf::as_path)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.variables.is_empty()
    }

    /// Reads every value.
    pub fn read(&self) -> Result<Secrets, Error> {
        let mut secrets = Secrets::default();
        for (name, path) in &self.files {
            secrets.files.insert(name.clone(), content(path)?);
        }
        for path in &self.variables {
            secrets.variables.extend(parse(path, &content(path)?)?);
        }
        Ok(secrets)
    }
}

/// Values by name. Never shown, never stored.
#[derive(Clone, Default)]
pub struct Secrets {
    files: BTreeMap<String, Vec<u8>>,
    variables: BTreeMap<String, String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.files.keys().chain(self.variables.keys())).finish()
    }
}

impl Secrets {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.variables.is_empty()
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&String, &Vec<u8>)> {
        self.files.iter()
    }

    /// For the environment of a command.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&String, &String)> {
        self.variables.iter()
    }

    /// What is looked for in outputs. A file's last line feed is not part of its secret, and each of its lines is one too.
    pub(super) fn values(&self) -> Vec<(&str, &[u8])> {
        let mut values: Vec<(&str, &[u8])> = Vec::new();
        for (name, content) in &self.files {
            let whole = content.trim_ascii_end();
            values.push((name, whole));
            let lines = whole.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
            values.extend(
                lines
                    .filter(|line| line.len() < whole.len() && !line.starts_with(b"-----"))
                    .map(|line| (name.as_str(), line)),
            );
        }
        values.extend(self.variables.iter().map(|(name, value)| (name.as_str(), value.as_bytes())));
        values.retain(|(_, value)| value.len() >= SHORTEST);
        values
    }

    /// Names of those that are too short to be redacted.
    pub(crate) fn names_of_short(&self) -> Vec<&str> {
        let files = self.files.iter().map(|(name, content)| (name.as_str(), content.trim_ascii_end().len()));
        let variables = self.variables.iter().map(|(name, value)| (name.as_str(), value.len()));
        files.chain(variables).filter(|(_, bytes)| *bytes < SHORTEST).map(|(name, _)| name).collect()
    }
}

fn content(path: &Path) -> Result<Vec<u8>, Error> {
    let shown = || path.display().to_string();
    let failed = |source| Error::Read { path: shown(), source };
    if std::fs::metadata(path).map_err(failed)?.len() > BOUND_BYTES {
        return Err(Error::TooLarge { path: shown() });
    }
    std::fs::read(path).map_err(failed)
}

fn parse(path: &Path, content: &[u8]) -> Result<BTreeMap<String, String>, Error> {
    let text = String::from_utf8_lossy(content);
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let said = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    said.map(|(line, text)| {
        variable(text).ok_or_else(|| Error::NotAVariable { path: path.display().to_string(), line })
    })
    .collect()
}

fn variable(line: &str) -> Option<(String, String)> {
    let (key, value) = line.split_once('=')?;
    let starts = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_key = starts && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !key.starts_with("HOLDFAST_");
    let quoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    let value = quoted.unwrap_or(value);
    (is_key && !value.contains('\0')).then(|| (key.to_owned(), value.to_owned()))
}
