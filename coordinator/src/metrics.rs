//! What is measured of the coordinator.

use holdfast_net::ops::Form;
use holdfast_net::ops::process::Process;
use holdfast_net::ops::table;
use prometheus_client::registry::Registry;

/// Every metric.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
}

impl Metrics {
    /// All at zero. Needs a tokio runtime.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = table::registry();
        registry.register_collector(Box::new(Process::here()));
        Self { registry }
    }

    /// The text of `/metrics`.
    #[must_use]
    pub fn text(&self, form: Form) -> String {
        table::text(&self.registry, form)
    }
}
