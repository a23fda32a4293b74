//! What people did and were refused.

use holdfast_common::text::one_line;
use holdfast_proto::v1;

use super::{Canvas, stamp};
use crate::output::{Table, Tone};

/// As a table.
#[must_use]
pub fn audit(entries: &[v1::AuditEntry], canvas: Canvas<'_>) -> Table {
    let mut table = Table::new(&["when", "who", "what", "about", "told"]);
    for entry in entries {
        let (what, tone) = match entry.refused {
            true => (format!("refused: {}", one_line(&entry.what)), Tone::Hazard),
            false => (one_line(&entry.what), Tone::Plain),
        };
        table.row_in_tones([
            (stamp::near(entry.at.as_ref(), canvas).unwrap_or_default(), Tone::Quiet),
            (one_line(&entry.by), Tone::Strong),
            (what, tone),
            (one_line(&entry.about), Tone::Plain),
            (one_line(&entry.sentence), Tone::Plain),
        ]);
    }
    table
}
