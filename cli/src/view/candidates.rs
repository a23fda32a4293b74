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

/// What an operator's own steps are to do to a resource, beside what is on record of it; `None` where it takes a revision back itself.
#[must_use]
pub fn own_way(had: &v1::CandidateRevision) -> Option<String> {
    let steps: Vec<String> = had.own_steps.iter().map(|step| one_line(step)).collect();
    let (resource, names) = (one_line(&had.resource), steps.join(", "));
    let on_record = match had.recorded.as_str() {
        "" => format!("no revision of {resource} is on record"),
        recorded => format!("{resource} has {} on record", one_line(recorded)),
    };
    let own = match (steps.len(), had.brings.as_str()) {
        (0, _) => return None,
        (1, "") => format!("step {names} changes it and names no revision"),
        (_, "") => format!("steps {names} change it and name no revision"),
        (1, brings) => format!("step {names} is to bring {}", one_line(brings)),
        (_, brings) => format!("steps {names} are to bring {}", one_line(brings)),
    };
    let open = if had.brings.is_empty() { ": what it has then is not known before it is read" } else { "" };
    Some(format!("{on_record}, and the operator's own {own}{open}"))
}

fn because(candidate: &v1::RollbackCandidate) -> String {
    if !candidate.compatible {
        let attest = if candidate.may_be_attested { " (a person may attest otherwise)" } else { "" };
        return format!("{}{attest}", one_line(&candidate.why_not));
    }
    let not_asked: Vec<String> =
        candidate.revisions.iter().filter(|had| !had.asked).map(|had| one_line(&had.resource)).collect();
    let own: Vec<String> = candidate.revisions.iter().filter_map(own_way).collect();
    let mut because = match not_asked.as_slice() {
        [] if own.len() == candidate.revisions.len() => "its file declares the way back".to_owned(),
        [] => "its file declares the way back, and what keeps old revisions still has them".to_owned(),
        some => format!(
            "its file declares the way back; whether {} still retains the old revision could not be asked",
            some.join(", ")
        ),
    };
    own.iter().for_each(|own| because.push_str(&format!("; {own}")));
    because
}
