//! The command line.

use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::access::Tokens;
use crate::serve;
use crate::store::Store;

/// A deployment API with a resource of its own.
#[derive(Debug, Parser)]
#[command(name = "holdfast-example-deploy-api")]
struct Options {
    /// Where to listen. With port 0 a free one is taken. The address is the first line of the output.
    #[arg(long, default_value = "127.0.0.1:8099")]
    listen: SocketAddr,
    /// The SQLite file that holds everything.
    #[arg(long)]
    data: PathBuf,
    /// Who the resource belongs to, like `app@prod/service`. Counts when the file is made.
    #[arg(long)]
    owner: Option<String>,
    /// A file with the token that may deploy and read.
    #[arg(long)]
    deploy_token: PathBuf,
    /// A file with the token that may read.
    #[arg(long)]
    inspect_token: PathBuf,
    /// A file with the token that may raise the fence and read.
    #[arg(long)]
    fence_token: PathBuf,
}

/// What kept it from serving.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("could not read the token in {path}: {source}")]
    Token { path: String, source: std::io::Error },
    #[error("the token in {path} is empty")]
    NoToken { path: String },
    #[error("could not open the data: {0}")]
    Data(#[from] rusqlite::Error),
    #[error("could not serve: {0}")]
    Serve(#[from] std::io::Error),
}

/// Serves until it is killed, which it may be at any moment.
#[must_use]
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let options = match Options::try_parse_from(arguments) {
        Ok(options) => options,
        Err(error) => error.exit(),
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody may read it; the exit says the same.
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Error> {
    let tokens = Tokens {
        deploy: token(&options.deploy_token)?,
        inspect: token(&options.inspect_token)?,
        fence: token(&options.fence_token)?,
    };
    let store = Store::open(&options.data, options.owner.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    Ok(runtime.block_on(serve::forever(options.listen, store, tokens))?)
}

fn token(path: &PathBuf) -> Result<String, Error> {
    let shown = || path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| Error::Token { path: shown(), source })?;
    match text.trim() {
        "" => Err(Error::NoToken { path: shown() }),
        token => Ok(token.to_owned()),
    }
}
