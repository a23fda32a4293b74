//! A thread and a runtime of their own for what moves many bytes: outputs out, archives in.
//!
//! The session's runtime does nothing but the session, so that its heartbeats wait for no chunk's encryption; and where the
//! processors are short, bulk waits for everything else.

use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

/// How far below the agent's other threads.
const NICE: i32 = 10;

/// The runtime. What runs in it is left behind when this is dropped.
#[derive(Debug)]
pub struct Bulk(Option<Runtime>);

impl Bulk {
    /// Starts it.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .max_blocking_threads(4)
            .thread_name("bulk")
            .on_thread_start(|| {
                // Of this thread alone. Nobody is refused a lower one.
                if let Err(error) = rustix::process::nice(NICE) {
                    tracing::debug!(%error, "bulk runs like everything else");
                }
            })
            .enable_all()
            .build()?;
        Ok(Self(Some(runtime)))
    }

    /// The way in.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.as_ref().expect("it is taken out only to be dropped").handle().clone()
    }
}

impl Drop for Bulk {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
