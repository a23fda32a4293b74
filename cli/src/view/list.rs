//! Deployments, one on each line.

use holdfast_proto::v1;

use super::{Canvas, stamp, word};
use crate::output::{Table, Tone, time};

/// As a table.
#[must_use]
pub fn deployments(deployments: &[v1::DeploymentSummary], canvas: Canvas<'_>) -> Table {
    let mut table = Table::new(&["deployment", "state", "age", "by", "because"]);
    for one in deployments {
        let age = stamp::wall(one.submitted_at.as_ref()).map_or_else(String::new, |at| time::age(at, canvas.now));
        table.row_in_tones([
            (one.label.clone(), Tone::Strong),
            (word::deployment_state(one.state), stamp::state_tone(one.state)),
            (age, Tone::Quiet),
            (one.submitted_by.clone(), Tone::Plain),
            (because(one), Tone::Plain),
        ]);
    }
    table
}

/// Why it stands where it stands, behind what it goes back over.
fn because(one: &v1::DeploymentSummary) -> String {
    if one.undoes.is_empty() {
        return one.because.clone();
    }
    // They are all of one target, which the row names already.
    let numbers = one.undoes.iter().map(|label| match label.rsplit_once('#') {
        Some((_, number)) => format!("#{number}"),
        None => label.clone(),
    });
    let rollback = format!("rollback of {}", numbers.collect::<Vec<_>>().join(", "));
    if one.because.is_empty() { rollback } else { format!("{rollback}: {}", one.because) }
}
