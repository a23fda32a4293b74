//! What the kernel says of processes and connections. Counters of connections are the whole machine's.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process, and what it starts from now on, have as many descriptors as it may.
pub fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let _as_before = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    /// Resident pages, each shared one in full.
    pub resident: u64,
    /// Resident pages, each shared one in parts.
    pub proportional: u64,
    /// Resident pages that nobody shares and no file holds: what the process has written.
    pub private: u64,
}

/// What a process has in memory now; nothing where there is no such process.
#[must_use]
pub fn memory(pid: u32) -> Memory {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let bytes = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() * 1024
    };
    Memory { resident: bytes("Rss"), proportional: bytes("Pss"), private: bytes("Private_Dirty") }
}

/// Processor time that a process has used, all its threads together.
#[must_use]
pub fn processor_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_millis((ticks(11) + ticks(12)) * 1000 / per_second)
}

/// Processes that wanted a processor in the last minute.
#[must_use]
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or_default()
}

/// Processors.
#[must_use]
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The machine's counters of TCP connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct Connections {
    /// Connects that were tried.
    pub tried: u64,
    /// Connections that reached a listener.
    pub arrived: u64,
    /// Connections that were dropped because a listener's queue was full.
    pub overflowed: u64,
}

/// What they are now.
#[must_use]
pub fn connections() -> Connections {
    let (plain, extended) = (counters("/proc/net/snmp", "Tcp:"), counters("/proc/net/netstat", "TcpExt:"));
    let take = |counters: &BTreeMap<String, u64>, name: &str| counters.get(name).copied().unwrap_or_default();
    Connections {
        tried: take(&plain, "ActiveOpens"),
        arrived: take(&plain, "PassiveOpens"),
        overflowed: take(&extended, "ListenOverflows"),
    }
}

/// Such a file has a line of names for each line of numbers.
fn counters(file: &str, group: &str) -> BTreeMap<String, u64> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group));
    let (names, numbers) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let numbers = numbers.split_whitespace().map(|number| number.parse().unwrap_or_default());
    names.split_whitespace().map(str::to_owned).zip(numbers).collect()
}

/// Connections that wait to be accepted on that port of 127.0.0.1.
#[must_use]
pub fn waiting_to_be_accepted(port: u16) -> u64 {
    const LISTENS: &str = "0A";
    let queue = sockets(port, LISTENS).into_iter().next().unwrap_or_default();
    queue.split_once(':').and_then(|(_, received)| u64::from_str_radix(received, 16).ok()).unwrap_or_default()
}

/// Connections that were made to that port of 127.0.0.1 and stand.
#[must_use]
pub fn connected_to(port: u16) -> usize {
    const ESTABLISHED: &str = "01";
    sockets(port, ESTABLISHED).len()
}

/// The queues of every socket of that port that is in that state.
fn sockets(port: u16, state: &str) -> Vec<String> {
    let text = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let local = format!("0100007F:{port:04X}");
    let queues = text.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (address, _peer, found, queues) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        (address == local && found == state).then(|| queues.to_owned())
    });
    queues.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_seen_with_its_memory_and_time() {
        let own = memory(std::process::id());
        assert!(own.private > 0 && own.proportional >= own.private && own.resident >= own.proportional, "{own:?}");
        let before = processor_time(std::process::id());
        let mut sum = 0_u64;
        while processor_time(std::process::id()) == before {
            sum = std::hint::black_box(sum + 1);
        }
    }

    #[test]
    fn connections_are_counted_and_those_that_wait_are_seen() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let before = connections();
        let held: Vec<_> = (0..3).map(|_| std::net::TcpStream::connect(address).expect("it listens")).collect();
        let after = connections();
        assert!(after.tried >= before.tried + 3 && after.arrived >= before.arrived + 3, "{before:?} {after:?}");
        assert_eq!(waiting_to_be_accepted(address.port()), 3);
        assert_eq!(connected_to(address.port()), 3);
        drop(held);
    }
}
