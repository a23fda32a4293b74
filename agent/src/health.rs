//! How the agent is: the parts that `/livez` and `/readyz` count.
//!
//! | part | counts for | is not ok while |
//! | --- | --- | --- |
//! | work loop | both | a turn of the driver takes too long, or it does not turn |
//! | disk | ready | there is no room for new work: see [`crate::room`] |
//! | descriptors | ready | there are too few for new work |
//! | journal | ready | the journal's file is gone, another one, or can't be written |
//! | identity | ready | the coordinator refuses this agent: as a copy, or as one that was removed |
//! | certificate | ready | its own is not good now, by this host's clock: no coordinator lets it in |
//! | serving | ready | it starts, or is to stop |
//!
//! Contact with the coordinator is no part: an agent without it carries on with what it holds. It is a note, as is what is held and
//! whether an operator has drained the agent.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use holdfast_net::ops::{self, Health, Pages, Pulse, State};
use holdfast_net::tls::ClientTls;

use crate::config::Config;
use crate::metrics::Metrics;
use crate::places::Places;
use crate::run::Requests;
use crate::standing::Standing;

/// Where health and metrics are, on loopback, if nothing else is configured.
pub const DEFAULT_OPS_PORT: u16 = 7445;

/// What is worth knowing of the certificates: whether the newest files count.
pub(crate) fn certificates(health: &Health, tls: &ClientTls) {
    let own = tls.clone();
    health.ready("certificate", move || {
        own.must_be_good_now().map_or_else(|why| State::Not(why.to_string()), |()| State::Ok)
    });
    let tls = tls.clone();
    health.note("certificates", move || match (tls.trouble(), tls.must_be_good_now()) {
        (Some(why), _) => format!("the newest files can't be used, the ones before still count: {why}"),
        (None, Err(error)) => error.to_string(),
        (None, Ok(())) => "the files count as they are".to_owned(),
    });
}

/// Registers every part.
pub(crate) fn register(
    health: &Health,
    config: &Config,
    pulse: &Pulse,
    metrics: &Arc<Metrics>,
    standing: &Standing,
    requests: Requests,
) -> io::Result<()> {
    let (live, ready) = (Duration::from(config.ops.live_within.0), Duration::from(config.ops.ready_within.0));
    // The loop turns several times a second, also when nothing is to do: a long rest is an end.
    const ALWAYS: usize = 1;
    let turns = pulse.clone();
    health.alive("work loop", move || turns.state(live, ALWAYS));
    let turns = pulse.clone();
    health.ready("work loop", move || turns.state(ready, ALWAYS));
    health.ready("journal", ops::kept(&Places::below(&config.state_dir).journal())?);
    let told = Arc::clone(metrics);
    health.ready("identity", move || told.refusal().map_or(State::Ok, State::Not));
    health.ready("serving", move || State::of(*requests.borrow() == 0, || "it is to stop".to_owned()));
    let metrics = Arc::clone(metrics);
    health.note("coordinator", move || metrics.contact());
    let (held, drained) = (standing.clone(), standing.clone());
    health.note("held", move || held.held());
    health.note("drained", move || drained.drained());
    health.note("version", || env!("CARGO_PKG_VERSION").to_owned());
    Ok(())
}

/// Serves health and metrics, where that is on.
pub(crate) async fn serve(
    config: &Config,
    health: Health,
    metrics: Arc<Metrics>,
) -> Result<Option<ops::Server>, ops::Error> {
    let listener = ops::listen(&config.ops, DEFAULT_OPS_PORT).await?;
    let pages = Pages::new(health, move |form| metrics.text(form));
    Ok(listener.map(|listener| ops::Server::start(listener, pages)))
}
