//! Which coordinator to ask, and as whom.
//!
//! ```text
//! options  >  HOLDFAST_*  >  ~/.config/holdfast/config.toml
//! ```
//!
//! Two rules keep a command from the wrong coordinator, and a token from a stranger. A context that is chosen by
//! `--context` is taken whole: no `HOLDFAST_*` changes it. And the CA and token of a context go to that context's address
//! only: whoever gives another address gives those too.

mod contexts;
mod environment;
mod file;
mod source;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;
use holdfast_common::code::Code;
use holdfast_common::problem::Problem;

use crate::failure::Failure;
pub use contexts::{About, Contexts, New};
pub use environment::Environment;
use file::{Context, File};
pub use source::Source;

/// The options that choose a coordinator. Every command has them.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    /// Context of the configuration file, taken whole: no HOLDFAST_* changes it [env: HOLDFAST_CONTEXT, of which
    /// HOLDFAST_CA, HOLDFAST_TOKEN and HOLDFAST_SERVER_NAME replace their part]
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// The coordinator, like `deploy.example:7443` [env: HOLDFAST_ADDRESS]
    #[arg(long, global = true, value_name = "HOST:PORT")]
    pub address: Option<String>,
    /// CA that signs the coordinator's certificate, PEM [env: HOLDFAST_CA]
    #[arg(long, global = true, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Name in the coordinator's certificate, where it is not the host's [env: HOLDFAST_SERVER_NAME]
    #[arg(long, global = true, value_name = "NAME")]
    pub server_name: Option<String>,
    /// File with the operator's token; a token itself is only taken from HOLDFAST_TOKEN, because everybody on the
    /// machine can read options [env: HOLDFAST_TOKEN_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

/// All that a connection needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Host and port, with or without `https://`.
    pub address: String,
    /// PEM file.
    pub ca: PathBuf,
    /// What the coordinator's certificate must be valid for, where that is not the host.
    pub server_name: Option<String>,
    /// The operator's token.
    pub token: Token,
    /// Who said the address.
    pub address_from: Source,
    /// Who said the token.
    pub token_from: Source,
    /// What a person should know, like a token that others can read.
    pub warnings: Vec<String>,
}

/// An operator's token. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// As it was typed or read.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// For the header.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token([hidden])")
    }
}

impl Settings {
    /// Of options, environment and file. Reads the file only where the others leave something open.
    pub fn find(options: &Connection, environment: &Environment) -> Result<Self, Failure> {
        Search { options, environment, file: None }.run()
    }

    /// The token in a file that holds nothing else. A file that others can read is used, with a warning.
    pub fn token_of(path: &Path, warnings: &mut Vec<String>) -> Result<Token, Failure> {
        file::token(path, warnings)
    }
}

struct Search<'a> {
    options: &'a Connection,
    environment: &'a Environment,
    file: Option<File>,
}

impl Search<'_> {
    fn run(mut self) -> Result<Settings, Failure> {
        let given = self.given_address()?;
        let (address, address_from, context) = match given {
            Some((address, from)) => {
                let context = self.context_at(&address)?;
                (address, from, context)
            }
            None => {
                let context = self.chosen_context()?;
                (context.address.clone(), context.source(), Some(context))
            }
        };
        let ca = self.ca(context.as_ref(), &address)?;
        let mut warnings = Vec::new();
        let (token, token_from) = self.token(context.as_ref(), &address, &mut warnings)?;
        let server_name = self
            .options
            .server_name
            .clone()
            .or_else(|| self.variable("HOLDFAST_SERVER_NAME"))
            .or_else(|| context.and_then(|context| context.server_name));
        Ok(Settings { address, ca, server_name, token, address_from, token_from, warnings })
    }

    /// A `HOLDFAST_*` that may have a say: none has once `--context` was given.
    fn variable(&self, name: &str) -> Option<String> {
        if self.options.context.is_some() { None } else { self.environment.text(name) }
    }

    fn given_address(&self) -> Result<Option<(String, Source)>, Failure> {
        if let Some(address) = &self.options.address {
            return Ok(Some((address.clone(), Source::Option("--address"))));
        }
        match (self.variable("HOLDFAST_ADDRESS"), self.variable("HOLDFAST_CONTEXT")) {
            (Some(_), Some(_)) => Err(Problem::new(
                Code::Config,
                "HOLDFAST_ADDRESS and HOLDFAST_CONTEXT are both set, so it is not clear which coordinator is meant",
            )
            .so("nothing was sent")
            .next("unset one of them, or say --context NAME or --address HOST:PORT")
            .into()),
            (address, _) => Ok(address.map(|address| (address, Source::Variable("HOLDFAST_ADDRESS")))),
        }
    }

    fn file(&mut self) -> Result<&File, Failure> {
        if self.file.is_none() {
            self.file = Some(File::read(self.environment.config_file().as_deref())?);
        }
        Ok(self.file.as_ref().expect("read just now"))
    }

    /// The context whose address it is, if one is chosen and has that address.
    fn context_at(&mut self, address: &str) -> Result<Option<Context>, Failure> {
        let complete = (self.options.ca.is_some() || self.variable("HOLDFAST_CA").is_some())
            && (self.options.token_file.is_some()
                || self.variable("HOLDFAST_TOKEN").is_some()
                || self.variable("HOLDFAST_TOKEN_FILE").is_some());
        let Some(name) = self.options.context.clone().or_else(|| self.variable("HOLDFAST_CONTEXT")) else {
            if complete {
                return Ok(None);
            }
            let file = self.file()?;
            let current = file.current.as_ref().and_then(|name| file.context.get(name)).cloned();
            return Ok(current.filter(|context| context.address == address));
        };
        Ok(Some(self.file()?.named(&name)?).filter(|context| context.address == address))
    }

    fn chosen_context(&mut self) -> Result<Context, Failure> {
        let name = self.options.context.clone().or_else(|| self.variable("HOLDFAST_CONTEXT"));
        let file = self.file()?;
        match name.or_else(|| file.current.clone()) {
            Some(name) => file.named(&name),
            None => Err(nothing_chosen(file).into()),
        }
    }

    fn ca(&self, context: Option<&Context>, address: &str) -> Result<PathBuf, Failure> {
        self.options
            .ca
            .clone()
            .or_else(|| self.variable("HOLDFAST_CA").map(PathBuf::from))
            .or_else(|| context.map(|context| context.ca.clone()))
            .ok_or_else(|| {
                Problem::new(Code::Config, format!("no CA is given for {address}"))
                    .known("the CA of a context is used for that context's address only")
                    .so("nothing was sent")
                    .next("set HOLDFAST_CA or give --ca FILE: the CA that signs the coordinator's certificate")
                    .into()
            })
    }

    fn token(
        &self,
        context: Option<&Context>,
        address: &str,
        warnings: &mut Vec<String>,
    ) -> Result<(Token, Source), Failure> {
        if let Some(path) = &self.options.token_file {
            return Ok((file::token(path, warnings)?, Source::Option("--token-file")));
        }
        if let Some(token) = self.variable("HOLDFAST_TOKEN") {
            return Ok((Token(token), Source::Variable("HOLDFAST_TOKEN")));
        }
        if let Some(path) = self.variable("HOLDFAST_TOKEN_FILE") {
            return Ok((file::token(path.as_ref(), warnings)?, Source::Variable("HOLDFAST_TOKEN_FILE")));
        }
        match context {
            Some(context) => Ok((context.token(warnings)?, context.source())),
            None => Err(Problem::new(Code::NotSignedIn, format!("no token is given for {address}"))
                .known("the token of a context is sent to that context's address only")
                .so("nothing was sent")
                .next("set HOLDFAST_TOKEN, or give --token-file FILE")
                .into()),
        }
    }
}

fn nothing_chosen(file: &File) -> Problem {
    let problem = Problem::new(Code::Config, "no coordinator is chosen").so("nothing was sent");
    let problem = match file.names() {
        names if names.is_empty() => problem,
        names => problem.known(format!("{} has the contexts {names}", file.shown())),
    };
    problem
        .next("set HOLDFAST_ADDRESS, HOLDFAST_CA and HOLDFAST_TOKEN")
        .next(format!("or sign in, which writes a context to {}: holdfast login HOST:PORT", file.shown()))
        .next("or try it all on this machine: holdfast dev")
}
