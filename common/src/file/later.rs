//! What the schema has and this version can't honour: recognised, checked for unknown keys, and refused.
//!
//! To ignore one of these would be a lie: a release without the approval that it asked for is not what was asked for.

use crate::code::Code;
use crate::file::reader::{Item, Reader};

/// `[approval]`.
pub(super) fn approval(reader: &mut Reader, item: Option<Item<'_>>) {
    let Some(fields) = item.and_then(|item| reader.table(&item, &["people"])) else { return };
    let Some(people) = fields.get("people") else { return };
    if reader.integer(&people, 0..=100).is_some_and(|count| count > 0) {
        reader.not_supported(&people, "approval by people");
    }
}

/// `order`: how the deployments of several targets follow each other.
pub(super) fn order(reader: &mut Reader, item: Option<Item<'_>>) {
    if let Some(item) = item {
        reader.not_supported(&item, "an order of targets");
    }
}

/// A key of the other file at the top of this one. What this one lacks then is no fault to begin with: it is the other.
pub(super) fn other_file(reader: &mut Reader, other: &[&str], what: &str) {
    let mut is_other = false;
    for fault in reader.faults.iter_mut().filter(|fault| fault.code == Code::UnknownKey) {
        if other.contains(&fault.place.path.as_str()) {
            fault.message = format!("the key \"{}\" belongs into {what}", fault.place.path);
            fault.suggestion = None;
            is_other = true;
        }
    }
    if is_other {
        let at_the_top = |path: &str| !path.contains(['.', '[']);
        reader.faults.retain(|fault| fault.code != Code::MissingKey || !at_the_top(&fault.place.path));
    }
}
