//! Carrying out one call: the way from an order to an adapter, and from its answer to an exit.

use std::io::{Read, Write};
use std::process::ExitCode;

use holdfast_common::fence::Fence;
use holdfast_common::outcome::Reading;
use holdfast_common::system::System;
use serde::{Deserialize, Serialize};

use super::{Call, Credentials, Failure, Order};
use crate::adapters::external::External;
use crate::adapters::git::Git;
use crate::adapters::halt::{self, Who};
use crate::adapters::http::Api;
use crate::adapters::postgres;

/// How a change went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Applied {
    /// The resource was changed by this call.
    Now,
    /// The operation had been applied before, and nothing was changed.
    Before,
}

/// How it came that a fence stands. Each way is good: what counts is that it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[must_use]
pub enum Raised {
    /// The resource was asked, and took it.
    Now,
    /// It stood there before, so the resource was not asked.
    Before,
    /// The resource was asked and does not let in who asked, in its words. It stood there before.
    NotLetIn(String),
    /// The resource was asked, and what came back says nothing of it. That it stands was read.
    Unsaid(String),
}

/// What a raise answers: the reading, and beside it how it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterRaise {
    /// How it came that the fence stands.
    pub raised: Raised,
    /// The resource after it.
    #[serde(flatten)]
    pub reading: Reading,
}

/// What an adapter does. It is made for one order with one credential set, and blocks.
pub trait Adapter {
    /// Says what would be refused, without the means to change anything.
    fn examine(&self) -> Result<(), Failure>;
    /// Makes the change under its fence, once, however often it is called.
    fn apply(&self, fence: Fence) -> Result<Applied, Failure>;
    /// Reads. What can't be read is an error, never "not there".
    fn inspect(&self) -> Result<Reading, Failure>;
    /// Raises the highest fence: repeatable, and never down. When it returns every lower fence is refused for good.
    fn raise(&self, fence: Fence) -> Result<Raised, Failure>;
}

/// Carries out the order on standard input.
pub(crate) fn main() -> ExitCode {
    let mut text = String::new();
    if let Err(error) = std::io::stdin().read_to_string(&mut text) {
        return told(&Failure::NotBegun(format!("could not read the order: {error}")));
    }
    match serde_json::from_str::<Order>(&text) {
        Ok(order) => run(&order),
        Err(error) => told(&Failure::NotBegun(format!("could not read the order: {error}"))),
    }
}

fn run(order: &Order) -> ExitCode {
    let done = match adapter(order, Credentials::of_process()) {
        Ok(adapter) => carry_out(order, adapter.as_ref()),
        Err(failure) => Err(failure),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => told(&failure),
    }
}

fn adapter(order: &Order, credentials: Credentials) -> Result<Box<dyn Adapter + '_>, Failure> {
    match &order.system {
        System::Postgres(system) => postgres::adapter(order, system, &credentials),
        System::Git(git) => Ok(Box::new(Git::new(order, git, &credentials)?)),
        System::Http(http) => Ok(Box::new(Api::new(order, http, &credentials)?)),
        System::External(declared) => Ok(Box::new(External::new(order, declared, credentials)?)),
    }
}

fn carry_out(order: &Order, adapter: &dyn Adapter) -> Result<(), Failure> {
    match order.call {
        Call::Examine { .. } => adapter.examine(),
        Call::Apply { fence, .. } => {
            halt::set_who(Who::Apply);
            let said = match adapter.apply(fence)? {
                Applied::Now => "applied",
                Applied::Before => "applied before, nothing changed",
            };
            say(said);
            Ok(())
        }
        Call::Inspect => {
            halt::set_who(Who::Inspect);
            answer(&adapter.inspect()?)
        }
        Call::Raise { fence } => {
            halt::set_who(Who::Raise);
            let raised = adapter.raise(fence)?;
            answer(&AfterRaise { raised, reading: adapter.inspect()? })
        }
    }
}

fn answer(answer: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(answer).expect("plain data serializes");
    writeln!(std::io::stdout(), "{text}").map_err(|error| Failure::Machinery(format!("could not answer: {error}")))
}

fn told(failure: &Failure) -> ExitCode {
    say(&failure.to_string());
    ExitCode::from(failure.exit())
}

/// A failed write to a log that nobody reads changes nothing about the exit.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
