//! What stops a call: a word of the remote's, or the state of our own cache.

use std::io;

use super::run;
use crate::adapters::system::Failure;
use crate::archive;

/// Why a call did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// Said for good.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The cache may be damaged or gone: made anew, it may go well.
    #[error("{0}")]
    Cache(String),
    /// The refs are not what they were a moment ago.
    #[error("the repository kept changing while it was read")]
    Moved,
}

/// What git says of our own repository speaks of the cache.
impl From<run::Error> for Error {
    fn from(error: run::Error) -> Self {
        Error::Cache(error.to_string())
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Cache(format!("could not use the cache: {error}"))
    }
}

impl From<archive::Error> for Error {
    fn from(error: archive::Error) -> Self {
        let said = crate::internal::with_causes(&error);
        if error.is_refusal() { Error::Failure(Failure::Content(said)) } else { Error::Cache(said) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Failure(failure) => failure,
            Error::Cache(why) => Failure::NotBegun(why),
            Error::Moved => Failure::Transient(error.to_string()),
        }
    }
}

/// Words by which git tells that it was not let in, and that there is nothing: another try would hear the same.
const SHUT: [&str; 10] = [
    "authentication failed",
    "could not read username",
    "could not read password",
    "permission denied",
    "host key verification failed",
    "returned error: 401",
    "returned error: 403",
    "access denied",
    "dubious ownership",
    "certificate",
];
const ABSENT: [&str; 7] = [
    "not found",
    "does not appear to be a git repository",
    "not a git repository",
    "does not exist",
    "returned error: 404",
    // A redirect is not followed: it would lead elsewhere than the target's file says.
    "returned error: 30",
    "unable to update url base from redirection",
];

/// What a remote's words come to before anything was pushed.
pub(super) fn of_remote(error: run::Error) -> Failure {
    let run::Error::Said { said, .. } = &error else { return Failure::Transient(error.to_string()) };
    let lower = said.to_lowercase();
    let speaks_of = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if speaks_of(&SHUT) {
        Failure::Resource(format!("the repository does not let us in: {said}"))
    } else if speaks_of(&ABSENT) {
        Failure::Resource(format!("there is no such repository: {said}"))
    } else {
        Failure::Transient(format!("the repository can't be read now: {said}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Failure {
        of_remote(run::Error::Said { name: "fetch", said: text.to_owned() })
    }

    #[test]
    fn what_heals_is_transient_and_what_does_not_is_refused() {
        for text in [
            "fatal: Authentication failed for 'https://git.example/a/'",
            "fatal: could not read Username for 'https://git.example': terminal prompts disabled",
            "git@git.example: Permission denied (publickey).; fatal: Could not read from remote repository.",
            "fatal: '/srv/none.git' does not appear to be a git repository",
            "fatal: repository 'https://git.example/a/' not found",
            "fatal: unable to access 'https://git.example/a/': The requested URL returned error: 301",
        ] {
            assert!(matches!(said(text), Failure::Resource(_)), "{text}");
        }
        for text in [
            "fatal: unable to access 'https://a/': Failed to connect to a port 443: Connection refused",
            "fatal: unable to access 'https://a/': The requested URL returned error: 503",
            "",
        ] {
            assert!(matches!(said(text), Failure::Transient(_)), "{text}");
        }
    }
}
