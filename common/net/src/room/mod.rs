//! Whether there is room on a disk to promise something, and the reserve that such promises stand on.
//!
//! ```text
//!   Plenty   the reserve stands, and as much again is free      new work is taken
//!   Low      the reserve stands, less is free beside it         no new work; what runs goes on
//!   Full     the reserve does not stand: a write took it        no new work, no new permit; results are stored from it
//! ```
//!
//! Whoever promises to record an end first puts aside what that takes. [`next`] is the whole decision, pure;
//! [`Reserve`] is the file that is put aside; [`Gauge`] joins both and makes them known.

mod descriptors;
mod gauge;
mod reserve;
#[cfg(test)]
mod tests;

use std::fmt;

use tokio::sync::watch;

use crate::ops::{Health, State};

pub use descriptors::{Descriptors, Spare, watch_descriptors};
pub use gauge::Gauge;
pub use reserve::{Reserve, allocate};

/// Registers the parts `disk` and `descriptors`: not ready while no new work is taken.
pub fn register(health: &Health, room: watch::Receiver<Room>, descriptors: watch::Receiver<Descriptors>) {
    health.ready("disk", move || {
        let room = *room.borrow();
        State::of(room.takes_new_work(), || room.to_string())
    });
    health.ready("descriptors", move || {
        let descriptors = *descriptors.borrow();
        State::of(descriptors.are_enough(), || descriptors.to_string())
    });
}

/// What the reserve is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// In bytes.
    pub bytes: u64,
    /// Names of files.
    pub inodes: u64,
}

/// What a look at the disk shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Bytes that are free beside the reserve.
    pub free_bytes: u64,
    /// Files that can be made beside the reserve. `None` where the file system has no such bound.
    pub free_inodes: Option<u64>,
    /// Whether the reserve holds all that is wanted.
    pub reserve_stands: bool,
}

/// Whether there is room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Room {
    /// For everything.
    #[default]
    Plenty,
    /// For what runs, not for new work.
    Low(Lack),
    /// Only what the reserve left. No promise may be made on it.
    Full(Lack),
}

/// What is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// Bytes.
    Bytes {
        /// Free beside the reserve.
        free: u64,
        /// Wanted beside it.
        wanted: u64,
    },
    /// Names of files.
    Inodes {
        /// Free beside the reserve.
        free: u64,
        /// Wanted beside it.
        wanted: u64,
    },
    /// Bytes, and the reserve was given up: what is free counts for nothing before it is there again.
    Reserve {
        /// Free now.
        free: u64,
        /// Wanted for the reserve and beside it.
        wanted: u64,
    },
}

impl Room {
    /// Whether work may be taken that nobody has begun.
    #[must_use]
    pub fn takes_new_work(&self) -> bool {
        match self {
            Room::Plenty => true,
            Room::Low(_) | Room::Full(_) => false,
        }
    }

    /// Whether the end of what begins now can be recorded for certain.
    #[must_use]
    pub fn can_promise(&self) -> bool {
        match self {
            Room::Plenty | Room::Low(_) => true,
            Room::Full(_) => false,
        }
    }

    /// Why not everything is taken.
    #[must_use]
    pub fn lack(&self) -> Option<Lack> {
        match self {
            Room::Plenty => None,
            Room::Low(lack) | Room::Full(lack) => Some(*lack),
        }
    }
}

/// What follows from a reading. New work is taken again only when a quarter more than what stops it is free, so that it does
/// not flap.
#[must_use]
pub fn next(room: Room, reading: Reading, wanted: Wanted) -> Room {
    let factor = if room.takes_new_work() { 4 } else { 5 };
    let enough = |amount: u64| amount.saturating_mul(factor) / 4;
    let (bytes, inodes) = (enough(wanted.bytes), enough(wanted.inodes));
    let lack = match reading.free_inodes {
        _ if reading.free_bytes < bytes => Some(Lack::Bytes { free: reading.free_bytes, wanted: bytes }),
        Some(free) if free < inodes => Some(Lack::Inodes { free, wanted: inodes }),
        Some(_) | None => None,
    };
    match (reading.reserve_stands, lack) {
        (true, None) => Room::Plenty,
        (true, Some(lack)) => Room::Low(lack),
        (false, Some(lack @ Lack::Inodes { .. })) => Room::Full(lack),
        (false, Some(Lack::Bytes { .. } | Lack::Reserve { .. }) | None) => {
            Room::Full(Lack::Reserve { free: reading.free_bytes, wanted: wanted.bytes.saturating_add(bytes) })
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::Bytes { free, wanted } => {
                write!(f, "{} KiB are free beside the reserve, {} KiB are wanted", free / 1024, wanted / 1024)
            }
            Lack::Inodes { free, wanted } => {
                write!(f, "{free} files can be made beside the reserve, {wanted} are wanted")
            }
            Lack::Reserve { free, wanted } => write!(
                f,
                "the reserve is not there, {} KiB are free, {} KiB are wanted for it and beside it",
                free / 1024,
                wanted / 1024
            ),
        }
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Room::Plenty => write!(f, "there is room"),
            Room::Low(lack) => write!(f, "the disk is nearly full: {lack}; no new work is taken"),
            Room::Full(lack) => {
                write!(f, "the disk is full: {lack}; only results are stored, in what the reserve left")
            }
        }
    }
}
