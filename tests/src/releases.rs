//! What a release folder underwent, by its own ledger: one record per attempt, and what `current` names.

use std::fs;
use std::path::Path;

/// How many attempts at that step of that deployment became visible. A flip whose record was cut off counts too: `current` names it.
#[must_use]
pub fn effects(root: &Path, deployment: &str, step: &str) -> usize {
    let current = fs::read_link(root.join("current")).unwrap_or_default();
    let current = current.file_name().unwrap_or_default().to_owned();
    let entries = fs::read_dir(root.join("ledger/operations")).into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            // A record that is being written stands beside under another name.
            let name = entry.file_name();
            let is_record = name
                .to_str()
                .and_then(|name| name.rsplit_once('.'))
                .is_some_and(|(_, fence)| fence.bytes().all(|byte| byte.is_ascii_digit()));
            if !is_record {
                return false;
            }
            let Ok(bytes) = fs::read(entry.path()) else { return false };
            let Ok(record) = serde_json::from_slice::<serde_json::Value>(&bytes) else { return false };
            let flipped = record["state"] == "applied" || entry.file_name() == current;
            record["operation"]["deployment"] == deployment && record["operation"]["step"] == step && flipped
        })
        .count()
}
