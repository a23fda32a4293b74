//! The chain of acts.

use super::{Finding, Kind};
use crate::store::chain::ActLink;
use crate::store::rows::ActRow;

/// Whether the act is what was written, and follows the one before it.
pub(crate) fn check_act(act: &ActRow, last: u64, hash: &str) -> Option<Finding> {
    let row = format!("acts {}", act.sequence);
    let ActRow { sequence, at, by, kind, about, detail, before_hash, .. } = act;
    let own = ActLink { before: before_hash, sequence: *sequence, at: at.0, by, kind, about, detail }.hash();
    if *sequence != last + 1 {
        let what = format!("missing: act {sequence} follows act {last}");
        return Some(Finding::new(Kind::Act, "", what).of_row(format!("acts {}", last + 1)));
    }
    if own != act.hash {
        let found = Finding::new(Kind::Act, "", "its hash is not the hash of what it says").of_row(row);
        return Some(found.values(Some(act.hash.clone()), Some(own)));
    }
    if before_hash != hash {
        let what = format!("it does not follow act {last}: the hash before it is another one");
        let found = Finding::new(Kind::Act, "", what).of_row(row);
        return Some(found.values(Some(before_hash.clone()), Some(hash.to_owned())));
    }
    None
}
