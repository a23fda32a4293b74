use std::fmt;

use holdfast_common::code::Code;
use holdfast_common::problem::Problem;
use holdfast_common::text::one_line;

/// Who said a part of the settings. A person whose command goes elsewhere than expected looks there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// An option of the command line.
    Option(&'static str),
    /// A variable of the environment.
    Variable(&'static str),
    /// A context of the configuration file, by its name.
    Context(String),
    /// The person at the keyboard, or the input.
    Typed,
}

impl Source {
    /// A refusal of the token that this said: where it came from, and what replaces it. To sign in writes a context,
    /// which an option or a variable would still come before.
    #[must_use]
    pub fn of_refused_token(&self, mut problem: Problem) -> Problem {
        if !matches!(problem.code, Code::NotSignedIn | Code::TokenExpired) {
            return problem;
        }
        problem.next.retain(|line| !line.contains("holdfast login ADDRESS"));
        let problem = problem.known(format!("the token came from {self}"));
        match self {
            Source::Option(name) => {
                problem.next(format!("put a good token of this coordinator into the file of {name}"))
            }
            Source::Variable(name) => {
                problem.next(format!("set {name} to a good token of this coordinator, or unset it"))
            }
            Source::Context(name) => {
                problem.next(format!("holdfast login --context {name}, with a token of this coordinator"))
            }
            Source::Typed => problem
                .next("sign in with a token of this coordinator: whoever runs it makes them, holdfast token create"),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Option(name) | Source::Variable(name) => f.write_str(name),
            Source::Context(name) => write!(f, "the context {}", one_line(name)),
            Source::Typed => f.write_str("what was typed or piped in"),
        }
    }
}
