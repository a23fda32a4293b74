//! What the schema has and this version can't honour: recognised, checked for unknown keys, and refused.
//!
//! To ignore one of these would be a lie: success without its `verify` is no success.

use crate::code::Code;
use crate::file::reader::{Item, Reader};
use crate::time::Millis;

const DAY: Millis = Millis::from_secs(86_400);

/// `[approval]`.
pub(super) fn approval(reader: &mut Reader, item: Option<Item<'_>>) {
    let Some(fields) = item.and_then(|item| reader.table(&item, &["people"])) else { return };
    let Some(people) = fields.get("people") else { return };
    if reader.integer(&people, 0..=100).is_some_and(|count| count > 0) {
        reader.not_supported(&people, "approval by people");
    }
}

/// `[[verify]]`.
pub(super) fn verify(reader: &mut Reader, item: Option<Item<'_>>) {
    let Some(list) = item else { return };
    let Some(checks) = reader.list(&list, 0..=100) else { return };
    for check in &checks {
        let Some(fields) = reader.table(check, &["http", "for", "timeout"]) else { continue };
        if let Some(http) = fields.get("http")
            && let Some(http) = reader.table(&http, &["url", "expect_status"])
        {
            http.get("url").and_then(|url| reader.text(&url).map(|_| ()));
            http.get("expect_status").and_then(|status| reader.integer(&status, 100..=599));
        }
        for key in ["for", "timeout"] {
            fields.get(key).and_then(|span| reader.duration(&span, Millis(0)..=DAY));
        }
        reader.not_supported(check, "health verification");
    }
}

/// `[rollback]`.
pub(super) fn rollback(reader: &mut Reader, item: Option<Item<'_>>) {
    let Some(item) = item else { return };
    let Some(fields) = reader.table(&item, &["strategy", "step", "compatible", "data_recovery"]) else { return };
    fields.get("strategy").and_then(|strategy| reader.choice(&strategy, &[("previous-revision", ())]));
    fields.get("step").and_then(|steps| reader.list(&steps, 1..=100).map(|_| ()));
    fields.get("compatible").and_then(|range| reader.table(&range, &["until", "data"]).map(|_| ()));
    fields.get("data_recovery").and_then(|how| reader.text(&how).map(|_| ()));
    reader.not_supported(&item, "a prepared rollback");
}

/// `retry.transient_exit_codes`.
pub(super) fn transient_exit_codes(reader: &mut Reader, item: Option<Item<'_>>) {
    let Some(list) = item else { return };
    let Some(codes) = reader.list(&list, 0..=255) else { return };
    let valid = codes.iter().filter_map(|code| reader.integer(code, 1..=255)).count();
    if valid > 0 && valid == codes.len() {
        reader.not_supported(&list, "exit codes that are worth another try");
    }
}

/// `data` of a step.
pub(super) fn data(reader: &mut Reader, item: Option<Item<'_>>) {
    let Some(item) = item else { return };
    let kinds = [("none", true), ("expand", false), ("contract", false), ("destructive", false)];
    if reader.choice(&item, &kinds) == Some(false) {
        reader.not_supported(&item, "steps that change data");
    }
}

/// `order`: how the deployments of several targets follow each other.
pub(super) fn order(reader: &mut Reader, item: Option<Item<'_>>) {
    if let Some(item) = item {
        reader.not_supported(&item, "an order of targets");
    }
}

/// A key of the other file at the top of this one.
pub(super) fn other_file(reader: &mut Reader, other: &[&str], what: &str) {
    for fault in reader.faults.iter_mut().filter(|fault| fault.code == Code::UnknownKey) {
        if other.contains(&fault.place.path.as_str()) {
            fault.message = format!("the key \"{}\" belongs into {what}", fault.place.path);
            fault.suggestion = None;
        }
    }
}
