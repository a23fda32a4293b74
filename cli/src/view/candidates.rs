//! Where a target can go back to.

use holdfast_common::text::one_line;
use holdfast_proto::v1;

use crate::output::{Table, Tone};

/// One row for each place, the nearest first.
#[must_use]
pub fn candidates(candidates: &[v1::RollbackCandidate]) -> Table {
    let mut table = Table::new(&["to", "undoes", "compatible now", "because"]);
    for candidate in candidates {
        let (answer, tone) = if candidate.compatible { ("yes", Tone::Good) } else { ("no", Tone::Quiet) };
        table.row_in_tones([
            (revisions(candidate), Tone::Strong),
            (candidate.undoes.iter().map(|label| one_line(label)).collect::<Vec<_>>().join(", "), Tone::Plain),
            (answer.to_owned(), tone),
            (because(candidate), Tone::Plain),
        ]);
    }
    table
}

fn revisions(candidate: &v1::RollbackCandidate) -> String {
    let several = candidate.revisions.len() > 1;
    let shown = candidate.revisions.iter().map(|had| match (had.revision.as_str(), several) {
        ("", true) => format!("{}: not on record", one_line(&had.resource)),
        ("", false) => "not on record".to_owned(),
        (revision, true) => format!("{}: {}", one_line(&had.resource), one_line(revision)),
        (revision, false) => one_line(revision),
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn because(candidate: &v1::RollbackCandidate) -> String {
    if !candidate.compatible {
        let attest = if candidate.may_be_attested { " (a person may attest otherwise)" } else { "" };
        return format!("{}{attest}", one_line(&candidate.why_not));
    }
    let not_asked: Vec<String> =
        candidate.revisions.iter().filter(|had| !had.asked).map(|had| one_line(&had.resource)).collect();
    match not_asked.as_slice() {
        [] => "its file declares the way back, and the old revision is still there".to_owned(),
        some => format!(
            "its file declares the way back; whether {} still retains the old revision could not be asked",
            some.join(", ")
        ),
    }
}
