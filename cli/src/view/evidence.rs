//! Evidence: what is kept and is not authority.

use holdfast_common::text::one_line;
use holdfast_proto::v1;

use super::{Canvas, stamp, word};
use crate::output::{Table, Tone};

/// As a table. Late reports are marked with why they are evidence only.
#[must_use]
pub fn evidence(pieces: &[v1::Evidence], canvas: Canvas<'_>) -> Table {
    let mut table = Table::new(&["no", "received", "said", "by", "kind", "fence", "filed as", "what"]);
    for piece in pieces {
        let said = stamp::near(piece.said_at.as_ref(), canvas);
        let filed = word::filed(piece.filed_as);
        let tone = if filed.is_empty() { Tone::Plain } else { Tone::Hazard };
        table.row_in_tones([
            (piece.sequence.to_string(), Tone::Quiet),
            (stamp::near(piece.received_at.as_ref(), canvas).unwrap_or_default(), Tone::Plain),
            (said.unwrap_or_default(), Tone::Plain),
            (piece.by.clone(), Tone::Plain),
            (piece.kind.replace('_', " "), Tone::Plain),
            (piece.fence_text.clone(), Tone::Plain),
            (filed, tone),
            (what(piece), Tone::Plain),
        ]);
    }
    table
}

/// The sentence without what stands in the other columns.
fn what(piece: &v1::Evidence) -> String {
    let late = format!("late, from {} under fence {}: ", piece.by, piece.fence_text);
    let Some(rest) = piece.sentence.strip_prefix(&late) else { return piece.sentence.clone() };
    rest.rsplit_once(" (").map_or(rest, |(said, _)| said).to_owned()
}

/// One piece, as text.
#[must_use]
pub fn one_evidence(piece: &v1::Evidence, canvas: Canvas<'_>) -> String {
    let at = stamp::near(piece.received_at.as_ref(), canvas).unwrap_or_default();
    format!("evidence {}  {at}  {}\n", piece.sequence, one_line(&piece.sentence))
}
