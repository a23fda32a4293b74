//! What a process tells of itself over plain HTTP.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::wait;

/// One process's `/livez`, `/readyz` and `/metrics`.
#[derive(Clone, Debug)]
pub struct Ops {
    file: PathBuf,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The text.
    pub body: String,
}

/// Every sample of `/metrics`, by its name with its labels.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// As served.
    pub text: String,
    samples: BTreeMap<String, f64>,
}

impl Ops {
    /// Of a process that writes its address into this file.
    #[must_use]
    pub fn new(file: &Path) -> Self {
        Self { file: file.to_owned() }
    }

    /// Where it listens, once it has said so.
    pub async fn address(&self) -> SocketAddr {
        wait::until("the address of health and metrics", wait::SOON, async || {
            let text = std::fs::read_to_string(&self.file).map_err(|error| error.to_string())?;
            text.trim().parse().map_err(|error| format!("{text:?}: {error}"))
        })
        .await
    }

    /// Asks for a path.
    pub async fn get(&self, path: &str) -> Answer {
        self.try_get(path).await.expect("health and metrics are served")
    }

    /// Asks for a path, if anybody answers.
    pub async fn try_get(&self, path: &str) -> std::io::Result<Answer> {
        const PATIENCE: Duration = Duration::from_secs(15);
        let exchange = async {
            let mut socket = TcpStream::connect(self.address().await).await?;
            socket.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await?;
            let mut text = String::new();
            socket.read_to_string(&mut text).await?;
            std::io::Result::Ok(text)
        };
        let text = wait::within("an answer of health and metrics", PATIENCE, exchange).await?;
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_default();
        Ok(Answer { status, body: body.to_owned() })
    }

    /// Reads every figure.
    pub async fn metrics(&self) -> Metrics {
        let answer = self.get("/metrics").await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        Metrics::parse(answer.body)
    }

    /// Waits until a path answers with that status, and gives the answer.
    pub async fn until_status(&self, path: &str, status: u16) -> Answer {
        wait::until(&format!("{path} to answer {status}"), wait::SOON, async || {
            let answer = self.try_get(path).await.map_err(|error| error.to_string())?;
            if answer.status == status { Ok(answer) } else { Err(format!("{}: {}", answer.status, answer.body)) }
        })
        .await
    }

    /// Waits until the answer there is 503 for that reason. Others may be told first, and beside it.
    pub async fn until_refused(&self, path: &str, why: &str) -> Answer {
        wait::until(&format!("{path} to say {why:?}"), wait::SOON, async || {
            let answer = self.try_get(path).await.map_err(|error| error.to_string())?;
            let is_so = answer.status == 503 && answer.body.contains(why);
            if is_so { Ok(answer) } else { Err(format!("{}: {}", answer.status, answer.body)) }
        })
        .await
    }

    /// Waits until a figure has that value.
    pub async fn until_figure(&self, name: &str, value: f64) -> Metrics {
        self.until_figures(&format!("{name} to be {value}"), |metrics| metrics.of(name) == value).await
    }

    /// Waits until the figures are as described.
    pub async fn until_figures(&self, what: &str, is_so: impl Fn(&Metrics) -> bool) -> Metrics {
        wait::until(what, wait::SOON, async || {
            let metrics = self.metrics().await;
            if is_so(&metrics) { Ok(metrics) } else { Err(metrics.text) }
        })
        .await
    }
}

impl Metrics {
    fn parse(text: String) -> Self {
        let samples = text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
            .map(|line| {
                let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}"));
                (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("no number: {line}")))
            })
            .collect();
        Self { text, samples }
    }

    /// The value of a sample, like `holdfast_agents{contact="connected"}`. One that is not there fails the test.
    #[must_use]
    #[track_caller]
    pub fn of(&self, name: &str) -> f64 {
        *self.samples.get(name).unwrap_or_else(|| panic!("no {name} in\n{}", self.text))
    }

    /// Every sample, by name.
    pub fn samples(&self) -> impl Iterator<Item = (&str, f64)> {
        self.samples.iter().map(|(name, value)| (name.as_str(), *value))
    }
}
