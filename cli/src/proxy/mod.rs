//! A TCP proxy that breaks connections on purpose, each fault at run time and undone by [`Proxy::heal`].
//!
//! ```text
//!   agent ──────── up ────────▶ ┌───────┐ ──────────▶ coordinator
//!                               │ proxy │
//!   agent ◀─────── down ─────── └───────┘ ◀────────── coordinator
//! ```
//!
//! | fault | open connections | new connections | after `heal` |
//! | --- | --- | --- | --- |
//! | cut | reset, both ends | refused | accepted |
//! | black hole | bytes vanish, also ends and resets | accepted, bytes vanish | reset if they lost anything |
//! | stall | bytes wait | accepted, bytes wait | the bytes arrive, late |
//! | delay | each byte arrives that much later | the same | at once |
//! | reset | reset, both ends, once | accepted | |
//! | half-close | one direction ends, once | not touched | |
//! | recycle | ended at an age, or when nothing came for a time | the same | not touched |
//!
//! A connection that lost bytes can't go on, since TCP never leaves a hole; so it is reset when contact returns, as the
//! peer's own stack would do. What a black hole did not touch lives on.

mod connection;
mod listener;
mod state;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

pub use state::Ways;
use state::{Fault, Recycle, State};

/// The control of a running proxy. Clones control the same one; it ends, and resets what is open, with the last.
#[derive(Clone, Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<watch::Sender<State>>,
    status: watch::Receiver<Status>,
}

/// What a proxy does now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Status {
    listening: bool,
    open: usize,
}

impl Proxy {
    /// Listens on a free port of 127.0.0.1 and carries connections to `upstream`.
    pub async fn start(upstream: SocketAddr) -> io::Result<Self> {
        let (listener, address) = listener::Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let (state, control) = watch::channel(State::new(upstream));
        let (report, status) = watch::channel(Status::default());
        tokio::spawn(listener.run(control, report));
        let proxy = Self { address, state: Arc::new(state), status };
        proxy.until(|status| status.listening).await;
        Ok(proxy)
    }

    /// Where clients connect to. The same for as long as the proxy lives, also while it is cut.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends cut, black hole, stall and delay. Returns when new connections are accepted.
    pub async fn heal(&self) {
        self.state.send_modify(|state| state.fault = Fault::None);
        self.until(|status| status.listening).await;
    }

    /// Resets every connection and refuses new ones. Returns when that is so.
    pub async fn cut(&self) {
        self.state.send_modify(|state| {
            state.fault = Fault::Cut;
            state.resets += 1;
        });
        self.until(|status| !status.listening && status.open == 0).await;
    }

    /// Resets every connection, once. New ones are accepted.
    pub fn reset(&self) {
        self.state.send_modify(|state| state.resets += 1);
    }

    /// Swallows what is sent, silently.
    pub fn black_hole(&self, ways: Ways) {
        self.state.send_modify(|state| state.fault = Fault::BlackHole(ways));
    }

    /// Holds back what is sent until [`Self::heal`].
    pub fn stall(&self, ways: Ways) {
        self.state.send_modify(|state| state.fault = Fault::Stall(ways));
    }

    /// Delivers everything, in both directions, this much later.
    pub fn delay(&self, delay: Duration) {
        self.state.send_modify(|state| state.fault = Fault::Delay(delay));
    }

    /// Ends a direction of every open connection, once: its receiver reads the end while the other direction lives.
    pub fn half_close(&self, ways: Ways) {
        self.state.send_modify(|state| state.end(ways));
    }

    /// Ends every connection, both ways and in good order, when it is that old, or when nothing came on it for that long. As
    /// load balancers do. `None` for never; it lasts beyond [`Self::heal`].
    pub fn recycle(&self, age: Option<Duration>, idle: Option<Duration>) {
        self.state.send_modify(|state| state.recycle = Recycle { age, idle });
    }

    /// Where new connections go from now on.
    pub fn redirect(&self, upstream: SocketAddr) {
        self.state.send_modify(|state| state.upstream = upstream);
    }

    /// Connections that are open now.
    #[must_use]
    pub fn open(&self) -> usize {
        self.status.borrow().open
    }

    /// Waits until as many connections are open. The caller bounds the time.
    pub async fn until_open(&self, count: usize) {
        self.until(|status| status.open == count).await;
    }

    async fn until(&self, condition: impl Fn(&Status) -> bool) {
        // An error means that the proxy's task is gone, with its runtime: then nothing is listening or open any more.
        let _ = self.status.clone().wait_for(|status| condition(status)).await;
    }
}
