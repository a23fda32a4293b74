//! The process's own figures, from `/proc/self`.

use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rustix::process::{Resource, getrlimit};

use super::table::{In, Kind, Row};

/// Its rows.
pub const TABLE: &[Row] = &[CPU, RESIDENT, OPEN_FDS, MAX_FDS, THREADS, START, TASKS];

const CPU: Row = Row::new(
    "holdfast_process_cpu_seconds_total",
    Kind::Counter,
    In::Seconds,
    "Processor time that the process has used, its own and the kernel's for it",
);
const RESIDENT: Row =
    Row::new("holdfast_process_resident_memory_bytes", Kind::Gauge, In::Bytes, "Memory that is in use now");
const OPEN_FDS: Row = Row::new("holdfast_process_open_fds", Kind::Gauge, In::Number, "Open file descriptors");
const MAX_FDS: Row =
    Row::new("holdfast_process_max_fds", Kind::Gauge, In::Number, "File descriptors that may be open at the same time");
const THREADS: Row = Row::new("holdfast_process_threads", Kind::Gauge, In::Number, "Threads");
const START: Row = Row::new(
    "holdfast_process_start_time_seconds",
    Kind::Gauge,
    In::Seconds,
    "When the process was started, since the Unix epoch",
);
const TASKS: Row =
    Row::new("holdfast_process_tasks", Kind::Gauge, In::Number, "Tasks of its runtimes that have not ended");

/// Reads them at each scrape. What can't be read is left out.
#[derive(Debug)]
pub struct Process {
    runtimes: Vec<tokio::runtime::Handle>,
}

impl Process {
    /// Of the process, and of the runtime that this is called in.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    #[must_use]
    pub fn here() -> Self {
        Self { runtimes: vec![tokio::runtime::Handle::current()] }
    }

    /// And of these runtimes.
    #[must_use]
    pub fn and(mut self, beside: Vec<tokio::runtime::Handle>) -> Self {
        self.runtimes.extend(beside);
        self
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        if let Some(stat) = Stat::read() {
            put(&mut encoder, &CPU, ConstCounter::new(stat.cpu_seconds))?;
            put(&mut encoder, &THREADS, ConstGauge::new(stat.threads))?;
            put(&mut encoder, &RESIDENT, ConstGauge::new(stat.resident_bytes))?;
            if let Some(booted) = booted() {
                put(&mut encoder, &START, ConstGauge::new(booted + stat.started_after_boot))?;
            }
        }
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            // One of them is the folder itself.
            put(&mut encoder, &OPEN_FDS, ConstGauge::new(count(open.count().saturating_sub(1))))?;
        }
        if let Some(most) = getrlimit(Resource::Nofile).current {
            put(&mut encoder, &MAX_FDS, ConstGauge::new(i64::try_from(most).unwrap_or(i64::MAX)))?;
        }
        let tasks = self.runtimes.iter().map(|runtime| runtime.metrics().num_alive_tasks()).sum();
        put(&mut encoder, &TASKS, ConstGauge::new(count(tasks)))
    }
}

fn put(encoder: &mut DescriptorEncoder<'_>, row: &Row, metric: impl EncodeMetric) -> Result<(), std::fmt::Error> {
    let unit = match row.unit {
        In::Number => None,
        In::Seconds => Some(&prometheus_client::registry::Unit::Seconds),
        In::Bytes => Some(&prometheus_client::registry::Unit::Bytes),
    };
    // What is registered gets its full stop from the registry.
    let help = format!("{}.", row.help);
    let descriptor = encoder.encode_descriptor(row.stem(), &help, unit, metric.metric_type())?;
    metric.encode(descriptor)
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

struct Stat {
    cpu_seconds: f64,
    threads: i64,
    resident_bytes: i64,
    started_after_boot: f64,
}

impl Stat {
    fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/self/stat").ok()?)
    }

    /// Fields are counted after the name in parentheses, which may hold anything.
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |index: usize| fields.get(index)?.parse::<u64>().ok();
        #[expect(clippy::cast_precision_loss, reason = "ticks of a process fit")]
        let seconds = |ticks: u64| ticks as f64 / rustix::param::clock_ticks_per_second().max(1) as f64;
        Some(Self {
            cpu_seconds: seconds(field(11)? + field(12)?),
            threads: i64::try_from(field(17)?).ok()?,
            started_after_boot: seconds(field(19)?),
            resident_bytes: i64::try_from(field(21)?).ok()? * count(rustix::param::page_size()),
        })
    }
}

/// When the machine was started, in seconds since the Unix epoch.
fn booted() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::super::Form;
    use super::super::table;
    use super::*;

    #[tokio::test]
    async fn the_process_tells_every_row_of_its_table() {
        let mut registry = table::registry();
        registry.register_collector(Box::new(Process::here()));
        let text = table::text(&registry, Form::Prometheus);
        for row in TABLE {
            let line = text.lines().find_map(|line| line.strip_prefix(row.name)?.strip_prefix(' '));
            let value: f64 = line.unwrap_or_else(|| panic!("no {} in\n{text}", row.name)).parse().unwrap();
            assert!(value >= 0.0 && (value > 0.0 || row.name != RESIDENT.name), "{}: {value}", row.name);
        }
    }

    #[test]
    fn a_name_with_spaces_and_parentheses_shifts_nothing() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 0 0 0 0 0 150 50 0 0 20 0 9 0 400 1000 25 1 1";
        let stat = Stat::parse(stat).unwrap();
        assert_eq!((stat.threads, stat.resident_bytes / count(rustix::param::page_size())), (9, 25));
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert!((stat.cpu_seconds - 200.0 / ticks).abs() < 1e-9);
    }
}
