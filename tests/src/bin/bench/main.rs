//! How fast Holdfast is on this machine, beside the raw ceilings of the same minute.
//!
//! `cargo run --release -p holdfast-tests --bin bench [-- --seconds 10 --targets 16 --submissions 200]`
//!
//! A coordinator and two agents as processes of their own, over mutual TLS on loopback, stores and journals with
//! `synchronous = FULL`. Each deployment is one mutating step that runs `/bin/true` under a shim, with one permit. Nothing is
//! asserted; the figures mean something only beside the ceilings that are printed with them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use holdfast_proto::v1::{DeploymentState, Event, WatchEventsRequest};
use holdfast_tests::api::{Operator, id_of};
use holdfast_tests::cluster::{Cluster, Plan};
use holdfast_tests::files::{DeploymentFile, command_target};
use holdfast_tests::folder::Folder;

const LEASE: Duration = Duration::from_secs(30);

struct Options {
    seconds: u64,
    targets: usize,
    submissions: usize,
}

fn main() -> anyhow::Result<()> {
    let options = options()?;
    let program = std::env::current_exe()?.with_file_name("holdfast-under-test");
    if !program.exists() {
        bail!("{} is not built: cargo build --release -p holdfast-tests --bins", program.display());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(&options, &program))
}

fn options() -> anyhow::Result<Options> {
    let mut given = BTreeMap::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().with_context(|| format!("{word} needs a number"))?;
        given.insert(word, value.parse::<usize>().context("a number")?);
    }
    let mut take = |name: &str, default| given.remove(name).unwrap_or(default);
    let options = Options {
        seconds: take("--seconds", 10) as u64,
        targets: take("--targets", 16),
        submissions: take("--submissions", 200),
    };
    match given.keys().next() {
        Some(unknown) => bail!("unknown option {unknown}: there are --seconds, --targets and --submissions"),
        None => Ok(options),
    }
}

async fn measure(options: &Options, program: &Path) -> anyhow::Result<()> {
    let folder = Folder::new();
    let sqlite = sqlite_commits(&folder.join("raw.sqlite"), 1)?;
    let batched = sqlite_commits(&folder.join("raw16.sqlite"), 16)? * 16.0;
    let appends = fsynced_appends(&folder.join("raw.log"))?;
    row("raw: SQLite, FULL, one row per commit", sqlite, "commits/s");
    row("raw: SQLite, FULL, 16 rows per commit", batched, "rows/s");
    row("raw: fsync'd appends of 4 KiB", appends, "appends/s");

    let cluster = Plan::new(program).start().await;
    let mut begun = latencies(&cluster, options.submissions).await?;
    begun.sort();
    row("submit -> begun, p50", millis(percentile(&begun, 50)), "ms");
    row("submit -> begun, p99", millis(percentile(&begun, 99)), "ms");
    row("submit -> begun, p50 in fsync'd appends", millis(percentile(&begun, 50)) * appends / 1000.0, "fsyncs");

    let complete = throughput(&cluster, options).await?;
    row("complete durable deployments", complete, "/s");
    row("complete, as a part of the one-row commit rate", complete / sqlite, "");
    Ok(())
}

fn row(what: &str, figure: f64, unit: &str) {
    let line = format!("{what:<48} {figure:>12.3} {unit}\n");
    let _closed = std::io::stdout().write_all(line.as_bytes());
}

fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1000.0
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// Commits per second of so many rows each, with a write-ahead log and `synchronous = FULL`.
fn sqlite_commits(path: &Path, rows: usize) -> anyhow::Result<f64> {
    let mut connection = rusqlite::Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch("CREATE TABLE raw (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")?;
    let body = "x".repeat(400);
    per_second(|| {
        let transaction = connection.transaction()?;
        for _row in 0..rows {
            transaction.prepare_cached("INSERT INTO raw (body) VALUES (?1)")?.execute([&body])?;
        }
        Ok(transaction.commit()?)
    })
}

fn fsynced_appends(path: &Path) -> anyhow::Result<f64> {
    let mut file = File::create(path)?;
    let page = [0_u8; 4096];
    per_second(|| {
        file.write_all(&page)?;
        Ok(file.sync_data()?)
    })
}

fn per_second(mut once: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    const SPAN: Duration = Duration::from_secs(2);
    let start = Instant::now();
    let mut count = 0_u32;
    while start.elapsed() < SPAN {
        once()?;
        count += 1;
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}

/// From the call to Submit until the operator sees that the step has begun, one deployment after the other.
async fn latencies(cluster: &Cluster, submissions: usize) -> anyhow::Result<Vec<Duration>> {
    let operator = cluster.operator();
    operator.apply_target(&command_target("bench@latency", false)).await;
    let file = file("bench@latency");
    let mut spans = Vec::with_capacity(submissions);
    for _submission in 0..submissions {
        let start = Instant::now();
        let id = id_of(&operator.submit(&file).await);
        until(&operator, &id, |event| event.kind == "report_accepted").await?;
        spans.push(start.elapsed());
        until(&operator, &id, |event| event.kind == "deployment_ended").await?;
    }
    Ok(spans)
}

/// Complete deployments per second, one after the other on each of many targets.
async fn throughput(cluster: &Cluster, options: &Options) -> anyhow::Result<f64> {
    let span = Duration::from_secs(options.seconds);
    let start = Instant::now();
    let mut lanes = Vec::new();
    for lane in 0..options.targets {
        let (operator, target) = (cluster.operator(), format!("bench@{lane}"));
        operator.apply_target(&command_target(&target, false)).await;
        lanes.push(tokio::spawn(async move {
            let file = file(&target);
            let mut complete = 0_u32;
            while start.elapsed() < span {
                let id = id_of(&operator.submit(&file).await);
                let last = until(&operator, &id, |event| event.kind == "deployment_ended").await?;
                if last.state_after != DeploymentState::Succeeded as i32 {
                    bail!("{id} did not succeed: {}", last.sentence);
                }
                complete += 1;
            }
            Ok(complete)
        }));
    }
    let mut complete = 0;
    for lane in lanes {
        complete += lane.await??;
    }
    Ok(f64::from(complete) / start.elapsed().as_secs_f64())
}

fn file(target: &str) -> String {
    let argv = ["/bin/true".to_owned()];
    DeploymentFile::new(target, LEASE).mutates("change", "idempotent", &argv).text().to_owned()
}

async fn until(operator: &Operator, deployment: &str, fits: impl Fn(&Event) -> bool) -> anyhow::Result<Event> {
    let request = WatchEventsRequest { deployment: deployment.to_owned(), from_sequence: 0, follow: true };
    let mut stream = operator.client.clone().watch_events(request).await?.into_inner();
    while let Some(response) = stream.message().await? {
        if let Some(event) = response.event.filter(&fits) {
            return Ok(event);
        }
    }
    bail!("the events of {deployment} ended early")
}
