//! Where a target can go back to.

use holdfast_common::text::one_line;
use holdfast_proto::v1;

use crate::output::{Table, Tone};

/// One row for each place, the nearest first.
#[must_use]
pub fn candidates(candidates: &[v1::RollbackCandidate]) -> Table {
    let mut table = Table::new(&["to", "undoes", "compatible now", "because"]);
    for (index, candidate) in candidates.iter().enumerate() {
        let asked = candidate.revisions.iter().all(|had| had.asked);
        let (answer, tone) = match (candidate.compatible, asked) {
            (true, true) => ("yes", Tone::Good),
            (true, false) => ("not known", Tone::Hazard),
            (false, _) => ("no", Tone::Quiet),
        };
        table.row_in_tones([
            (revisions(candidate), Tone::Strong),
            (candidate.undoes.iter().map(|label| one_line(label)).collect::<Vec<_>>().join(", "), Tone::Plain),
            (answer.to_owned(), tone),
            (because(candidate) + &nearer(candidate, &candidates[..index]), Tone::Plain),
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

/// Said of a place that `--to` never means, because a nearer one has all its revisions.
fn nearer(candidate: &v1::RollbackCandidate, before: &[v1::RollbackCandidate]) -> String {
    let listed = |revision: &str| before.iter().flat_map(|other| &other.revisions).any(|had| had.revision == revision);
    let mut known = candidate.revisions.iter().map(|had| had.revision.as_str()).filter(|revision| !revision.is_empty());
    match known.clone().next() {
        Some(first) if known.all(listed) => format!("; --to {} takes the nearer place above", one_line(first)),
        Some(_) | None => String::new(),
    }
}

fn because(candidate: &v1::RollbackCandidate) -> String {
    if !candidate.compatible {
        let attest = if candidate.may_be_attested { " (a person may attest otherwise)" } else { "" };
        return format!("{}{attest}", one_line(&candidate.why_not));
    }
    let not_asked: Vec<String> =
        candidate.revisions.iter().filter(|had| !had.asked).map(|had| one_line(&had.resource)).collect();
    match not_asked.as_slice() {
        [] => "its file declares the way back, and what keeps old revisions still has them".to_owned(),
        some => format!(
            "its file declares the way back; whether {} still retains the old revision could not be asked",
            some.join(", ")
        ),
    }
}
