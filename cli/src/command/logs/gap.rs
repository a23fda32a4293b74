//! What is missing of an output, in one line.

use holdfast_proto::convert::wall_from_wire;
use holdfast_proto::v1::{LogGap, LogGapReason};

use crate::output::{size, time};

/// In brackets, with its size where that is known.
pub(super) fn sentence(gap: &LogGap) -> String {
    let Some(length) = gap.length else {
        return match gap.reason() {
            LogGapReason::NotArrived => {
                "[the rest has not arrived from the host yet; how much it is is not known]".to_owned()
            }
            LogGapReason::Unspecified
            | LogGapReason::CutOnHost
            | LogGapReason::NoRoomOnHost
            | LogGapReason::LostOnHost
            | LogGapReason::CutByCoordinator
            | LogGapReason::LostByCoordinator
            | LogGapReason::Removed => "[its end was not seen: how much more there was is not known]".to_owned(),
        };
    };
    let size = size::bytes(length);
    match gap.reason() {
        LogGapReason::CutOnHost => format!("[{size} not kept: cut on the host]"),
        LogGapReason::NoRoomOnHost => format!("[{size} lost: the host's disk had no room for it]"),
        LogGapReason::LostOnHost => format!("[{size} lost on the host before it was sent]"),
        LogGapReason::CutByCoordinator => format!("[{size} not kept: cut by the coordinator]"),
        LogGapReason::LostByCoordinator => format!("[{size} lost by the coordinator]"),
        LogGapReason::Removed => match wall_from_wire("removed_at", gap.removed_at) {
            Ok(at) => format!("[removed by retention on {}: {size}]", time::instant(at)),
            Err(_) => format!("[removed by retention: {size}]"),
        },
        LogGapReason::NotArrived if length == 0 => {
            "[whether there is more is not known: its end has not arrived from the host yet]".to_owned()
        }
        LogGapReason::NotArrived => format!("[{size} not arrived from the host yet]"),
        LogGapReason::Unspecified => format!("[{size} missing, for a reason that this version does not know]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gap_says_its_size_and_its_reason() {
        let told = |reason: LogGapReason, length| {
            sentence(&LogGap { from: 0, length, reason: reason as i32, removed_at: None })
        };
        assert_eq!(told(LogGapReason::CutOnHost, Some(13_002_400)), "[12.4 MiB not kept: cut on the host]");
        assert_eq!(told(LogGapReason::NoRoomOnHost, Some(2048)), "[2.0 KiB lost: the host's disk had no room for it]");
        assert_eq!(told(LogGapReason::NotArrived, Some(2048)), "[2.0 KiB not arrived from the host yet]");
        assert!(told(LogGapReason::LostOnHost, None).contains("not known"));
        let at = Some(prost_timestamp(1_767_312_000));
        let removed = LogGap { from: 0, length: Some(5), reason: LogGapReason::Removed as i32, removed_at: at };
        assert_eq!(sentence(&removed), "[removed by retention on 2026-01-02T00:00:00Z: 5 B]");
    }

    fn prost_timestamp(seconds: i64) -> prost_types::Timestamp {
        prost_types::Timestamp { seconds, nanos: 0 }
    }
}
