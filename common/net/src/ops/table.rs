//! Metrics as a table: one row per name, from which it is registered and against which a test holds what is served.
//!
//! Names have the prefix `holdfast_` and base units, and no label is an identity: what is counted must stay few.

use prometheus_client::registry::{Metric, Registry, Unit};

use super::Form;

/// What every name begins with.
pub const PREFIX: &str = "holdfast_";

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, from 0 at each start.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts values by size.
    Histogram,
    /// Always 1; its labels are what it says.
    Info,
}

impl Kind {
    /// As in a `# TYPE` line of the Prometheus form.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge | Kind::Info => "gauge",
            Kind::Histogram => "histogram",
        }
    }

    fn ending(self) -> &'static str {
        match self {
            Kind::Counter => "_total",
            Kind::Gauge | Kind::Histogram => "",
            Kind::Info => "_info",
        }
    }
}

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum In {
    /// Things.
    Number,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
}

impl In {
    /// As in a name and in the reference page.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            In::Number => "",
            In::Seconds => "seconds",
            In::Bytes => "bytes",
        }
    }

    fn unit(self) -> Option<Unit> {
        match self {
            In::Number => None,
            In::Seconds => Some(Unit::Seconds),
            In::Bytes => Some(Unit::Bytes),
        }
    }
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// As it is served, with prefix, unit and `_total`.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// What its values count.
    pub unit: In,
    /// Its labels, and the values that each may have; empty where a build or the protocol gives them.
    pub labels: &'static [(&'static str, &'static [&'static str])],
    /// One sentence without its full stop.
    pub help: &'static str,
}

impl Row {
    /// A row.
    #[must_use]
    pub const fn new(name: &'static str, kind: Kind, unit: In, help: &'static str) -> Self {
        Self { name, kind, unit, labels: &[], help }
    }

    /// With labels.
    #[must_use]
    pub const fn by(mut self, labels: &'static [(&'static str, &'static [&'static str])]) -> Self {
        self.labels = labels;
        self
    }

    /// The name without what the encoder adds: prefix, unit and `_total`.
    #[must_use]
    pub fn stem(&self) -> &'static str {
        let stem = self.name.strip_prefix(PREFIX).unwrap_or(self.name);
        let stem = stem.strip_suffix(self.kind.ending()).unwrap_or(stem);
        stem.strip_suffix(self.unit.word()).map_or(stem, |stem| stem.trim_end_matches('_'))
    }
}

/// A registry that gives every name the prefix.
#[must_use]
pub fn registry() -> Registry {
    Registry::with_prefix(PREFIX.trim_end_matches('_'))
}

/// Registers a metric as its row says.
///
/// # Panics
///
/// Where the table has no such row: a programmer's mistake that every start would show.
pub fn register(registry: &mut Registry, table: &[Row], name: &str, metric: impl Metric) {
    let row = table.iter().find(|row| row.name == name).expect("every metric has its row");
    match row.unit.unit() {
        Some(unit) => registry.register_with_unit(row.stem(), row.help, unit, metric),
        None => registry.register(row.stem(), row.help, metric),
    }
}

/// The text of a registry.
#[must_use]
pub fn text(registry: &Registry, form: Form) -> String {
    let mut text = String::new();
    let written = match form {
        Form::Prometheus => prometheus_client::encoding::prometheus_text::encode(&mut text, registry),
        Form::OpenMetrics => prometheus_client::encoding::text::encode(&mut text, registry),
    };
    // Writing to a string fails only where a metric's own encoding does; then half a text is worse than none.
    if written.is_err() {
        tracing::error!("the metrics could not be encoded");
        text.clear();
    }
    text
}

/// The reference page's rows for a table, in Markdown.
#[must_use]
pub fn markdown(table: &[Row]) -> String {
    let mut lines = vec!["| name | kind | labels | meaning |".to_owned(), "| --- | --- | --- | --- |".to_owned()];
    for row in table {
        let labels: Vec<String> = row
            .labels
            .iter()
            .map(|(label, values)| match values {
                [] => format!("`{label}`"),
                values => format!("`{label}`: {}", values.join(", ")),
            })
            .collect();
        let kind = match row.kind {
            Kind::Info => "info",
            Kind::Counter | Kind::Gauge | Kind::Histogram => row.kind.word(),
        };
        lines.push(format!("| `{}` | {kind} | {} | {} |", row.name, labels.join("; "), row.help));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::histogram::Histogram;

    use super::*;

    const TABLE: &[Row] = &[
        Row::new("holdfast_deployments_total", Kind::Counter, In::Number, "Deployments that ended"),
        Row::new("holdfast_log_bytes_total", Kind::Counter, In::Bytes, "Bytes of outputs"),
        Row::new("holdfast_store_commit_seconds", Kind::Histogram, In::Seconds, "How long a commit took"),
    ];

    #[test]
    fn what_is_served_has_the_name_of_its_row() {
        let mut registry = registry();
        register(&mut registry, TABLE, "holdfast_deployments_total", Counter::<u64>::default());
        register(&mut registry, TABLE, "holdfast_log_bytes_total", Counter::<u64>::default());
        register(&mut registry, TABLE, "holdfast_store_commit_seconds", Histogram::new([0.1]));
        for form in [Form::Prometheus, Form::OpenMetrics] {
            let text = text(&registry, form);
            for line in [
                "holdfast_deployments_total 0",
                "holdfast_log_bytes_total 0",
                "holdfast_store_commit_seconds_count 0",
                "holdfast_store_commit_seconds_bucket{le=\"+Inf\"} 0",
            ] {
                assert!(text.lines().any(|found| found == line), "{form:?}: no {line} in\n{text}");
            }
        }
    }
}
