//! Health checks: looks that change nothing, until one has held for long enough or its time is up.
//!
//! ```text
//! shim ─ check (this, a process of its own) ─ look ─ look ─ … ─ exit 0: held · exit 1: not held · exit 2: could not look
//! ```
//!
//! A check runs as the body of its step, under the same shim as everything else: it lives on while the agent restarts, it is
//! stopped with everything that it started, and what it saw is its output. Its last line on standard error is what is
//! reported. When it has held is decided by the core.

mod command;
mod http;
mod tcp;

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use holdfast_agent_core::health::{Elapsed, Next, Watch};
use holdfast_common::spec::{CheckSpec, Probe};

/// Its exit when it held.
pub const HELD: u8 = 0;
/// Its exit when its time was up.
pub const NOT_HELD: u8 = 1;
/// Its exit when it could not even look: this host's fault, and no word on what it was to look at.
pub const COULD_NOT_LOOK: u8 = 2;

/// Looks until it has held, or until its time is up. Blocks meanwhile.
#[must_use]
pub fn run(spec: CheckSpec) -> ExitCode {
    let looker = match Looker::for_probe(&spec.probe) {
        Ok(looker) => looker,
        Err(why) => return over(&format!("could not look: {why}"), COULD_NOT_LOOK),
    };
    note(&format!("looking: {spec}"));
    let (probe, began) = (spec.probe.clone(), Instant::now());
    let now = || Elapsed(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
    let mut watch = Watch::new(spec);
    let mut told: Option<Option<String>> = None;
    loop {
        let begins = now();
        let wrong = looker.look(&probe, watch.bound(begins).into()).err();
        if told.as_ref() != Some(&wrong) {
            note(&format!("{}: {}", probe, wrong.as_deref().unwrap_or("ok")));
            told = Some(wrong.clone());
        }
        match watch.saw(begins, now(), wrong.as_deref()) {
            Next::Look(at) => std::thread::sleep(Duration::from_millis(at.0.saturating_sub(now().0))),
            Next::Held { detail } => return over(&detail, HELD),
            Next::NotHeld { detail } => return over(&detail, NOT_HELD),
        }
    }
}

/// What looks.
struct Looker {
    runtime: tokio::runtime::Runtime,
    client: Option<reqwest::Client>,
}

impl Looker {
    fn for_probe(probe: &Probe) -> Result<Self, String> {
        command::adopt_orphans().map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let client = match probe {
            Probe::Http { url, .. } => Some(http::client(url)?),
            Probe::Tcp { .. } | Probe::Command { .. } => None,
        };
        Ok(Self { runtime, client })
    }

    /// Looks once. What is wrong is told in words for people.
    fn look(&self, probe: &Probe, bound: Duration) -> Result<(), String> {
        match probe {
            Probe::Http { url, expect_status, expect_body } => {
                let wanted = http::Wanted { status: *expect_status, body: expect_body.as_deref() };
                let client = self.client.as_ref().ok_or("there is no client")?;
                self.within(bound, http::look(client, url, wanted))
            }
            Probe::Tcp { address } => self.within(bound, tcp::look(address)),
            Probe::Command { argv } => command::look(argv, bound),
        }
    }

    fn within(&self, bound: Duration, look: impl Future<Output = Result<(), String>>) -> Result<(), String> {
        self.runtime.block_on(async {
            match tokio::time::timeout(bound, look).await {
                Ok(result) => result,
                Err(_) => Err(no_answer(bound)),
            }
        })
    }
}

fn no_answer(bound: Duration) -> String {
    format!("no answer within {} s", bound.as_secs_f32())
}

/// A line of the step's output. A pipe that nobody reads changes nothing about the check.
fn note(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn over(detail: &str, exit: u8) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{detail}");
    ExitCode::from(exit)
}
