//! Hosts of a network of the test's own: network namespaces, joined by cables.
//!
//! ```text
//!   hub: the test itself, the coordinator, operators          edge: agents, with a hosts file of their own
//!        line 192.0.2.1/24 ─────────────── a cable ─────────────── line 192.0.2.2/24
//! ```
//!
//! No namespace has a way out: nothing of a test reaches another network. They need root and the `ip` of iproute2.

use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// What the names of namespaces begin with, before the process that made them.
const PREFIX: &str = "holdfast-";
/// Where `ip` keeps the names.
const NAMES: &str = "/run/netns";
/// The interface at either end of a cable.
pub const LINE: &str = "line";
/// Nobody has this Ethernet address.
const NOBODY: &str = "02:00:00:00:00:99";

/// Whether this process may make namespaces. Says so where it may not.
#[must_use]
#[expect(clippy::print_stderr, reason = "who reads the test's output must know that nothing was tested")]
pub fn can_be_had(tests: usize) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("SKIPPED: {tests} tests need root to make network namespaces");
    }
    root
}

/// A network namespace. It goes with this value; what runs in it is the test folder's to end.
#[derive(Debug)]
pub struct Host {
    name: String,
}

impl Host {
    /// A host without a cable.
    #[must_use]
    pub fn new(role: &str) -> Self {
        remove_abandoned();
        let name = format!("{PREFIX}{}-{role}-{:08x}", std::process::id(), rand::random::<u32>());
        ip(&["netns", "add", &name]);
        let host = Self { name };
        host.ip(&["link", "set", "lo", "up"]);
        host
    }

    /// `ip` on this host.
    pub fn ip(&self, words: &[&str]) {
        ip(&[&["-n", &self.name], words].concat());
    }

    /// Joins two hosts.
    pub fn cable(&self, own: Ipv4Addr, other: &Host, others: Ipv4Addr) {
        let (here, there) = (self.name.as_str(), other.name.as_str());
        ip(&["link", "add", LINE, "netns", here, "type", "veth", "peer", "name", LINE, "netns", there]);
        for (host, address) in [(self, own), (other, others)] {
            host.address("add", address);
            host.ip(&["link", "set", LINE, "up"]);
        }
    }

    /// Gives its line an address, or takes it away: `add` or `del`.
    pub fn address(&self, verb: &str, address: Ipv4Addr) {
        self.ip(&["address", verb, &format!("{address}/24"), "dev", LINE]);
    }

    /// What this host sends there goes to nobody from now on, and nobody tells it so. What comes from there still arrives.
    pub fn misdirect(&self, there: Ipv4Addr) {
        self.ip(&["neighbour", "replace", &there.to_string(), "lladdr", NOBODY, "dev", LINE, "nud", "permanent"]);
    }

    /// The end of [`Self::misdirect`].
    pub fn direct(&self, there: Ipv4Addr) {
        self.ip(&["neighbour", "del", &there.to_string(), "dev", LINE]);
    }

    /// Moves the calling thread here, and with it every thread and process that it starts from now on.
    pub fn enter(&self) {
        let name = std::fs::File::open(Path::new(NAMES).join(&self.name)).expect("the namespace was made");
        move_into_link_name_space(name.as_fd(), Some(LinkNameSpaceType::Network)).expect("root may enter it");
    }

    /// Does something here, on a thread of its own.
    pub fn inside<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                self.enter();
                work()
            });
            thread.join().expect("work on a host does not panic")
        })
    }

    /// What starts a program here, with that file as its `/etc/hosts`.
    #[must_use]
    pub fn wrapper(&self, hosts: &Path) -> Vec<String> {
        let hosts = hosts.to_str().expect("a test's paths are plain text");
        // `ip` gives the program mounts of its own.
        let mount = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
        ["ip", "netns", "exec", &self.name, "sh", "-c", mount, hosts].map(str::to_owned).into()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _best_effort = Command::new("ip").args(["netns", "del", &self.name]).output();
    }
}

#[track_caller]
fn ip(words: &[&str]) {
    let output = Command::new("ip").args(words).output().expect("iproute2 is installed: ./test does that");
    assert!(output.status.success(), "ip {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
}

/// Removes what tests have left that were killed themselves: a name tells the process that made it.
fn remove_abandoned() {
    let entries = std::fs::read_dir(NAMES).into_iter().flatten().flatten();
    for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-')).map(|(owner, _)| owner);
        let owner = owner.and_then(|owner| owner.parse::<u32>().ok());
        if owner.is_some_and(|owner| !Path::new(&format!("/proc/{owner}")).exists()) {
            drop(Host { name });
        }
    }
}
