//! How the coordinator is: the parts that `/livez` and `/readyz` count.
//!
//! | part | counts for | is not ok while |
//! | --- | --- | --- |
//! | work loop | both | a turn of the driver takes too long, or it does not take up what waits |
//! | backlog | ready | as much waits for the driver as may |
//! | disk | ready | there is no room for new work: see [`crate::room`] |
//! | descriptors | ready | there are too few for new work |
//! | store | ready | the store's file is gone, another one, or can't be written |
//! | audit | ready | the store is not what its events lead to: see [`crate::verify::auditor`] |
//! | serving | ready | it starts, or drains because it is to stop |

use std::io;
use std::time::Duration;

use holdfast_net::ops::{self, Health, Pulse, State};
use holdfast_net::tls::ServerTls;
use tokio::sync::watch;

use crate::config::Config;
use crate::driver::Handle;

/// Where the process is between its start and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It opens its store.
    Starting,
    /// Calls are answered.
    Serving,
    /// It is to stop: what is open gets its time.
    Stopping,
}

impl Stage {
    /// A stage that moves on, as a part.
    #[must_use]
    pub fn register(health: &Health) -> watch::Sender<Self> {
        let stage = watch::Sender::new(Stage::Starting);
        let is = stage.subscribe();
        health.ready("serving", move || match *is.borrow() {
            Stage::Starting => State::Not("starting".to_owned()),
            Stage::Serving => State::Ok,
            Stage::Stopping => State::Not("draining: it is to stop".to_owned()),
        });
        stage
    }
}

/// What is worth knowing of the certificates: whether the newest files count.
pub fn certificates(health: &Health, tls: &ServerTls) {
    let tls = tls.clone();
    health.note("certificates", move || match tls.trouble() {
        None => "the files count as they are".to_owned(),
        Some(why) => format!("the newest files can't be used, the ones before still count: {why}"),
    });
}

/// The parts that stand once the store is open and the driver runs.
pub fn register(health: &Health, config: &Config, pulse: &Pulse, driver: &Handle) -> io::Result<()> {
    const WORK_LOOP: &str = "work loop";
    let (live, ready) = (Duration::from(config.ops.live_within.0), Duration::from(config.ops.ready_within.0));
    let (turns, queue) = (pulse.clone(), driver.clone());
    health.alive(WORK_LOOP, move || turns.state(live, queue.waiting()));
    let (turns, queue) = (pulse.clone(), driver.clone());
    health.ready(WORK_LOOP, move || turns.state(ready, queue.waiting()));
    let queue = driver.clone();
    health.ready("backlog", move || {
        State::of(queue.has_room(), || format!("{} messages wait for the work loop: callers wait", queue.waiting()))
    });
    health.ready("store", ops::kept(&config.store())?);
    Ok(())
}
