//! The raw ceilings: what the disk and the wire do when nothing is decided.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use holdfast_tests::folder::Folder;
use serde_json::{Value, json};

use crate::messages::{self, SHAPES};
use crate::options::Options;
use crate::report::{Figure, Report};
use crate::scene::Scene;

/// Rows of a batched commit: about as many as a coordinator's commit has at work.
const BATCH: usize = 16;

/// What the disk did, just then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disk {
    /// Commits per second of one row each, with a write-ahead log and `synchronous = FULL`.
    pub(crate) commits: f64,
    /// Rows per second in such commits of [`BATCH`] rows.
    pub(crate) batched: f64,
    /// Appends of 4 KiB per second, each followed by fdatasync.
    pub(crate) appends: f64,
}

/// One of the ceilings.
type Pick = fn(&Disk) -> f64;

impl Disk {
    /// Each by its name.
    pub(crate) const ALL: [(&'static str, Pick); 3] = [
        ("SQLite FULL commits of one row", |disk| disk.commits),
        ("SQLite FULL rows in commits of 16", |disk| disk.batched),
        ("fsync'd appends of 4 KiB", |disk| disk.appends),
    ];

    /// Looks for about three seconds.
    pub(crate) fn look() -> anyhow::Result<Self> {
        let folder = Folder::new();
        Ok(Self {
            commits: sqlite_commits(&folder.join("raw.sqlite"), 1)?,
            batched: sqlite_commits(&folder.join("raw16.sqlite"), BATCH)? * BATCH as f64,
            appends: fsynced_appends(&folder.join("raw.log"))?,
        })
    }

    /// Between this look and a later one.
    pub(crate) fn and(self, later: Self) -> Self {
        let mean = |pick: Pick| f64::midpoint(pick(&self), pick(&later));
        Self { commits: mean(|d| d.commits), batched: mean(|d| d.batched), appends: mean(|d| d.appends) }
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "commits": self.commits, "batched_rows": self.batched, "appends": self.appends })
    }
}

pub(crate) async fn measure(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let disk = report.disk(Disk::look()?);
    for (what, pick) in Disk::ALL {
        report.put(Figure::new(format!("raw: {what}"), pick(&disk), "/s"));
    }
    let scene = Scene::new(options).await;
    for (shape, rate) in SHAPES.into_iter().zip(messages::echoed(&scene, options.span() / 2).await?) {
        report.put(Figure::new(format!("raw: bare echo, {shape}"), rate, "messages/s"));
    }
    Ok(())
}

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
    const SPAN: Duration = Duration::from_secs(1);
    let start = Instant::now();
    let mut count = 0_u32;
    while start.elapsed() < SPAN {
        once()?;
        count += 1;
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64())
}
