//! What each command does, one file per group.
//!
//! A command is a function of its arguments and a [`Context`]; [`run`] finds the one that was asked for and tells what went
//! wrong. Nothing here knows of the process: streams, variables and the person at the keyboard are given.

pub mod agent;
pub mod agents;
pub mod audit;
pub mod cancel;
pub mod check;
pub mod completion;
pub mod contexts;
pub mod deploy;
pub mod events;
pub mod evidence;
pub mod explain;
pub mod list;
pub mod login;
pub mod logs;
pub mod man;
pub mod plan;
pub mod reconcile;
pub mod rollback;
pub mod show;
pub mod target;
pub mod targets;
pub mod token;
pub mod version;
pub mod wait;
pub mod watch;
pub mod whoami;

mod confirm;
mod file;
mod hidden;
mod several;
mod watching;

use std::io::BufRead;

use holdfast_common::code::ExitCode;
use holdfast_proto::v1;
use serde_json::Value;

use crate::client::Client;
use crate::dev;
use crate::failure::Failure;
use crate::grammar::{Cli, Command};
use crate::output::{BoxedPrinter, Options, Record, time};
use crate::settings::{Connection, Environment, Settings, Source};
use crate::view::{self, Canvas};

/// What a command works with.
pub struct Context {
    /// Stdout and stderr.
    pub printer: BoxedPrinter,
    connection: Connection,
    /// Who said the token that was sent, once one was.
    token_from: Option<Source>,
    surroundings: Surroundings,
}

/// What is around the process.
pub struct Surroundings {
    /// The variables.
    pub environment: Environment,
    /// Where answers to questions, and files named `-`, are read.
    pub input: Box<dyn BufRead + Send>,
    /// A person sits at `input` and sees stderr. Without one, nothing is ever asked.
    pub interactive: bool,
}

/// What a command came to.
pub type Outcome = Result<ExitCode, Failure>;

/// Does what was asked for, and tells what went wrong.
pub async fn run(cli: Cli, surroundings: Surroundings, printer: BoxedPrinter) -> ExitCode {
    let mut context = Context { printer, connection: cli.connection, token_from: None, surroundings };
    let outcome = dispatch(cli.command, &cli.output, &mut context).await;
    // A line that was only passing must not stay; where stderr is gone there is none.
    let _ = context.printer.clear();
    outcome.unwrap_or_else(|failure| {
        let failure = match &context.token_from {
            Some(source) => failure.map(|problem| source.of_refused_token(problem)),
            None => failure,
        };
        failure.tell(&mut context.printer);
        failure.exit()
    })
}

async fn dispatch(command: Command, output: &Options, context: &mut Context) -> Outcome {
    match command {
        Command::Deploy(args) => deploy::run(args, context).await,
        Command::Plan(args) => plan::run(args, context).await,
        Command::Check(args) => check::run(args, context),
        Command::List(args) => list::run(&args, context).await,
        Command::Show(args) => show::run(&args, context).await,
        Command::Watch(args) => watch::run(args, context).await,
        Command::Wait(args) => wait::run(args, context).await,
        Command::Logs(args) => logs::run(args, context).await,
        Command::Events(args) => events::run(args, context).await,
        Command::Cancel(args) => cancel::run(args, context).await,
        Command::Evidence(args) => evidence::run(&args, context).await,
        Command::Reconcile { command } => reconcile::run(command, context).await,
        Command::Rollback(args) => rollback::run(args, context).await,
        Command::Targets(args) => targets::run(&args, context).await,
        Command::Target { command } => target::run(command, context).await,
        Command::Agent { command } => agent::run(command, context).await,
        Command::Agents(args) => agents::run(&args, context).await,
        Command::Audit { command } => audit::run(command, context).await,
        Command::Login(args) => login::run(args, context).await,
        Command::Context { command } => contexts::run(command, context),
        Command::Token { command } => token::run(command, context).await,
        Command::Whoami(args) => whoami::run(&args, context).await,
        Command::Explain(args) => explain::run(&args, context),
        Command::Dev(args) => dev::run(&args, output).await.map_err(Failure::Unexpected),
        Command::Completion(args) => completion::run(&args, context),
        Command::Man(args) => man::run(&args, context),
        Command::Version(args) => version::run(&args, context),
    }
}

impl Context {
    fn settings(&self) -> Result<Settings, Failure> {
        Settings::find(&self.connection, &self.surroundings.environment)
    }

    /// Finds the settings and connects.
    async fn client(&mut self) -> Result<Client, Failure> {
        let settings = self.settings()?;
        for warning in &settings.warnings {
            self.printer.talk(warning)?;
        }
        self.token_from = Some(settings.token_from.clone());
        Client::connect(&settings).await
    }

    /// For drawing on stdout.
    fn canvas(&self) -> Canvas<'_> {
        Canvas { terminal: self.printer.terminal(), now: time::now() }
    }

    /// For drawing on stderr.
    fn talk_canvas(&self) -> Canvas<'_> {
        Canvas { terminal: self.printer.talk_terminal(), now: time::now() }
    }

    /// A deployment as it stands, whole.
    fn print_deployment(&mut self, deployment: &v1::Deployment) -> Result<(), Failure> {
        let text = view::deployment(deployment, self.canvas());
        Ok(self.printer.record(&record("Deployment", deployment, label(deployment), text))?)
    }
}

/// An answer of the API with its name and text.
fn record<M: prost::Message>(kind: &str, message: &M, name: String, text: String) -> Record {
    Record { whole: crate::output::answer(kind, message), name, text }
}

/// `shop@prod#12`, or the identity where no label was told.
fn label(deployment: &v1::Deployment) -> String {
    deployment.summary.as_ref().map(|summary| summary.label.clone()).unwrap_or_default()
}

/// The items of a list in an answer's JSON.
fn items(whole: &Value, field: &str) -> Vec<Value> {
    whole.get(field).and_then(Value::as_array).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::output::{Format, Printer, Terminal};

    /// What was written to one of the streams.
    #[derive(Clone, Default)]
    pub(super) struct Written(Arc<Mutex<Vec<u8>>>);

    impl Written {
        pub(super) fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("one thread").clone()).expect("text")
        }
    }

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("one thread").write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Context {
        /// In an empty environment, with nobody there, and what it writes to stdout and stderr.
        pub(super) fn in_test() -> (Self, Written, Written) {
            let (out, err) = (Written::default(), Written::default());
            let printer =
                Printer::over(Format::Table, Terminal::PLAIN, Terminal::PLAIN, out.clone(), err.clone()).boxed();
            let surroundings =
                Surroundings { environment: Environment::default(), input: Box::new(io::empty()), interactive: false };
            (Self { printer, connection: Connection::default(), token_from: None, surroundings }, out, err)
        }
    }
}
