//! A bad line between two hosts: packets are carried from one TUN device to another, late, and some not at all.
//!
//! ```text
//!   hub: tun 192.0.2.1 ── read ─▶ lost? ─▶ queue, until due ─▶ write ── tun 192.0.2.2 :edge
//! ```
//!
//! Which packets are lost follows from a seed and from the packets' order, which the two kernels' TCP decides.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::netns::{Host, LINE};

/// Largest packet, in bytes.
const PACKET: usize = 2048;
/// Packets that are under way in one direction; more are lost, as on every line.
const QUEUE: usize = 4096;

/// How bad.
#[derive(Clone, Copy, Debug)]
pub struct Badness {
    /// Of a thousand packets, how many are lost in each direction.
    pub lost_of_thousand: u32,
    /// How much later a packet arrives.
    pub late: Duration,
    /// Which ones are lost.
    pub seed: u64,
}

/// The line. It is taken away with this value.
#[derive(Debug)]
pub struct BadLine<'a> {
    hosts: [&'a Host; 2],
    threads: Vec<JoinHandle<()>>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    carried: AtomicU64,
    lost: AtomicU64,
}

impl<'a> BadLine<'a> {
    /// Joins two hosts by it.
    #[must_use]
    pub fn between(hosts: [&'a Host; 2], addresses: [Ipv4Addr; 2], badness: Badness) -> Self {
        let ends = hosts.map(|host| host.inside(|| holdfast_tests_tun::open(LINE)).expect("a TUN device"));
        for (host, address) in hosts.iter().zip(addresses) {
            host.address("add", address);
            host.ip(&["link", "set", LINE, "up"]);
        }
        let counts = Arc::new(Counts::default());
        let [one, two] = &ends;
        let mut threads = Vec::new();
        for (index, (from, to)) in [(0, (one, two)), (1, (two, one))] {
            let (from, to) = (from.try_clone().expect("a descriptor"), to.try_clone().expect("a descriptor"));
            let (queue, due) = mpsc::sync_channel(QUEUE);
            let (random, counts) = (StdRng::seed_from_u64(badness.seed ^ index), Arc::clone(&counts));
            threads.push(std::thread::spawn(move || lose(from, &queue, badness, random, &counts)));
            threads.push(std::thread::spawn(move || deliver(to, &due)));
        }
        Self { hosts, threads, counts }
    }

    /// Packets that were carried, and that were lost, so far.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.counts.carried.load(Ordering::Relaxed), self.counts.lost.load(Ordering::Relaxed))
    }
}

/// Ends when the device is gone.
fn lose(
    mut from: File,
    queue: &mpsc::SyncSender<(Instant, Vec<u8>)>,
    badness: Badness,
    mut random: StdRng,
    counts: &Counts,
) {
    let mut packet = [0; PACKET];
    while let Ok(length) = from.read(&mut packet) {
        let lost = random.random_ratio(badness.lost_of_thousand, 1000);
        let due = Instant::now() + badness.late;
        if lost || queue.try_send((due, packet[..length].to_vec())).is_err() {
            counts.lost.fetch_add(1, Ordering::Relaxed);
        } else {
            counts.carried.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Ends with the queue.
fn deliver(mut to: File, due: &mpsc::Receiver<(Instant, Vec<u8>)>) {
    for (due, packet) in due {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let _a_device_that_is_down_loses_it = to.write_all(&packet);
    }
}

impl Drop for BadLine<'_> {
    fn drop(&mut self) {
        // A read of a device that is gone ends.
        for host in self.hosts {
            host.ip(&["link", "del", LINE]);
        }
        for thread in self.threads.drain(..) {
            let _did_not_panic = thread.join();
        }
    }
}
