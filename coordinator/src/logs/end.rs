//! How a stream ended, and what of it is not here.
//!
//! ```text
//! 0 ........ stored ........ kept - lost ........ kept ........ kept + cut
//!   here            cut here              lost there      cut there
//! ```

use std::path::Path;

use holdfast_common::time::Wall;
use serde::{Deserialize, Serialize};

use super::{Error, read_file, write_durably};

/// How a stream ended. Sizes are bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Here when it ended.
    pub stored: u64,
    /// Kept by the host, ever.
    pub kept: u64,
    /// Of these, lost by the host before they were sent.
    pub lost: u64,
    /// Read by the host and not kept.
    pub cut: u64,
    /// Not for its bound, but because its disk was full.
    #[serde(default)]
    pub cut_for_room: bool,
    /// Nobody saw the end: there may have been more.
    pub unknown: bool,
}

/// Bytes of a stream that are not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first of them.
    pub from: u64,
    /// How many; `None` where nobody knows.
    pub length: Option<u64>,
    /// Why.
    pub reason: GapReason,
}

/// Why bytes are not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapReason {
    /// Behind the host's bound.
    CutOnHost,
    /// The host's disk had no room for them.
    NoRoomOnHost,
    /// Gone on the host before they could be sent, or never seen.
    LostOnHost,
    /// Behind the coordinator's bound for one output.
    CutByCoordinator,
    /// Gone from the coordinator's disk.
    LostByCoordinator,
    /// Removed by retention.
    Removed {
        /// When.
        at: Wall,
    },
    /// Still on the host.
    NotArrived,
}

impl End {
    /// What there is not, from `offset` on, in order. `offset` is behind the last byte that is here.
    #[must_use]
    pub fn gaps(&self, offset: u64) -> Vec<Gap> {
        let sent = self.kept.saturating_sub(self.lost);
        let cut = if self.cut_for_room { GapReason::NoRoomOnHost } else { GapReason::CutOnHost };
        let borders = [
            (self.stored, GapReason::LostByCoordinator),
            (sent, GapReason::CutByCoordinator),
            (self.kept, GapReason::LostOnHost),
            (self.kept.saturating_add(self.cut), cut),
        ];
        let mut from = offset;
        let mut gaps = Vec::new();
        for (until, reason) in borders {
            if until > from {
                gaps.push(Gap { from, length: Some(until - from), reason });
                from = until;
            }
        }
        if self.unknown {
            gaps.push(Gap { from, length: None, reason: GapReason::LostOnHost });
        }
        gaps
    }

    pub(super) fn read(folder: &Path) -> Result<Option<Self>, Error> {
        // Only ever written whole: what does not read back is damage, and the host is asked for the end again.
        Ok(read_file(&folder.join("end.json"))?.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), Error> {
        write_durably(&folder.join("end.json"), &serde_json::to_vec(self).expect("plain data serializes"))
    }
}
