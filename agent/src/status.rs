//! `holdfast-agent status`: what a running agent says of itself, or what the journal of a stopped one holds.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use holdfast_common::id::IncarnationId;
use holdfast_net::ops::Address;
use uuid::Uuid;

use crate::config::Config;
use crate::health::DEFAULT_OPS_PORT;
use crate::journal::{self, Journal};
use crate::places::Places;

/// Longest wait for the running agent.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest answer that is read.
const ANSWER_BYTES: u64 = 64 * 1024;

/// Why there is nothing to tell.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The journal can't be read.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// An agent runs on the folder, and does not answer.
    #[error("an agent runs on {state}, and did not answer at {address} within {} s", PATIENCE.as_secs())]
    Unanswered {
        /// Its state folder.
        state: String,
        /// Where it should answer.
        address: SocketAddr,
    },
    /// An agent runs on the folder, and can't be asked.
    #[error("an agent runs on {state}, and could not be asked at {address}: {source}")]
    Unasked {
        /// Its state folder.
        state: String,
        /// Where it should answer.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// An agent runs on the folder, and serves no health.
    #[error("an agent runs on {state}, and its [ops] address is off: nothing can be asked")]
    Off {
        /// Its state folder.
        state: String,
    },
}

/// In lines.
pub fn lines(config: &Config) -> Result<Vec<String>, Error> {
    let state = config.state_dir.display().to_string();
    if !Places::below(&config.state_dir).journal().exists() {
        return Ok(vec![format!("agent        has never run on {state}")]);
    }
    match Journal::open(&config.state_dir, IncarnationId(Uuid::new_v4())) {
        Ok(journal) => stopped(&journal),
        Err(journal::Error::InUse { .. }) => {
            let address = address(config).ok_or_else(|| Error::Off { state: state.clone() })?;
            ask(address).map_err(|source| silent(state, address, source))
        }
        Err(error) => Err(error.into()),
    }
}

/// A wait that ran out is told as one, not as the system tells it.
fn silent(state: String, address: SocketAddr, source: io::Error) -> Error {
    match source.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::Unanswered { state, address },
        _ => Error::Unasked { state, address, source },
    }
}

fn stopped(journal: &Journal) -> Result<Vec<String>, Error> {
    let mut lines = vec!["agent        stopped".to_owned(), format!("incarnation  {}", journal.incarnation())];
    for remembered in journal.attempts()? {
        let claim = remembered.assignment.claim;
        lines.push(format!("attempt      {} of {} fence {}", claim.attempt, remembered.assignment.target, claim.fence));
    }
    lines.push(format!("unanswered   {} reports", journal.unanswered()?.len()));
    Ok(lines)
}

/// Where the running agent serves: as it announced, as configured, else the usual place.
fn address(config: &Config) -> Option<SocketAddr> {
    let announced = config.ops.address_file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    match (announced.and_then(|text| text.trim().parse().ok()), config.ops.address) {
        (_, Some(Address::Off)) => None,
        (Some(announced), _) => Some(announced),
        (None, Some(Address::At(address))) => Some(address),
        (None, None) => Some(SocketAddr::from(([127, 0, 0, 1], DEFAULT_OPS_PORT))),
    }
}

fn ask(address: SocketAddr) -> io::Result<Vec<String>> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /readyz?verbose HTTP/1.1\r\nHost: agent\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES).read_to_string(&mut answer)?;
    let Some((_, body)) = answer.split_once("\r\n\r\n") else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no answer over HTTP"));
    };
    Ok(running(body))
}

/// The notes of the answer, then what is wrong.
fn running(body: &str) -> Vec<String> {
    let ready = body.lines().next().unwrap_or_default();
    let mut lines = vec![format!("agent        runs, {ready}")];
    let note = |line: &str| {
        let (name, text) = line.strip_prefix("[note] ")?.split_once(": ")?;
        Some(format!("{name:<12} {text}"))
    };
    lines.extend(body.lines().filter_map(note));
    lines.extend(
        body.lines().filter_map(|line| line.strip_prefix("[not]  ").map(|wrong| format!("not ready    {wrong}"))),
    );
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_does_not_answer_in_time_is_told_so_and_by_no_number_of_the_system() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let waited = TcpStream::connect(address).and_then(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_millis(1)))?;
            stream.read(&mut [0])
        });
        let told = silent("/s".to_owned(), address, waited.expect_err("nobody answers"));
        assert_eq!(told.to_string(), format!("an agent runs on /s, and did not answer at {address} within 5 s"));
        let refused = silent("/s".to_owned(), address, io::ErrorKind::ConnectionRefused.into());
        assert!(refused.to_string().contains("could not be asked"), "{refused}");
    }

    #[test]
    fn notes_are_told_by_name_and_then_what_is_wrong() {
        let body =
            "not ready\n[ok]   work loop\n[not]  disk: no room\n[note] coordinator: in contact\n[note] held: nothing\n";
        let told = [
            "agent        runs, not ready",
            "coordinator  in contact",
            "held         nothing",
            "not ready    disk: no room",
        ];
        assert_eq!(running(body), told);
    }
}
