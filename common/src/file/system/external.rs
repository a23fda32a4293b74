//! `adapter = "external"`.

use std::collections::BTreeMap;

use crate::adapter::{Enforce, Inspect};
use crate::file::reader::{Complaint, Fields, Item, Reader, shown};
use crate::system::External;

const MAX_SETTINGS: usize = 100;
const MAX_NAME: usize = 64;

pub(super) fn read(reader: &mut Reader, fields: &Fields<'_>) -> Option<External> {
    let with = reader.required(fields, "with")?;
    let with = reader.table(&with, &["program", "inspect", "enforce", "outlives", "settings"])?;
    let program = reader.required(&with, "program").and_then(|item| reader.ruled(&item, program));
    let inspects = [("none", Inspect::None), ("revision", Inspect::Revision), ("operation", Inspect::Operation)];
    let inspect = with.get("inspect").map_or(Some(Inspect::None), |item| reader.choice(&item, &inspects));
    let enforce = with.get("enforce").map_or(Some(Enforce::None), |item| enforce(reader, &item));
    let outlives = with.get("outlives").map_or(Some(true), |item| reader.boolean(&item));
    let settings = with.get("settings").map_or(Some(BTreeMap::new()), |item| settings(reader, &item));
    Some(External { program: program?, inspect: inspect?, enforce: enforce?, outlives: outlives?, settings: settings? })
}

pub(super) fn enforce(reader: &mut Reader, item: &Item<'_>) -> Option<Enforce> {
    reader.choice(item, &[("none", Enforce::None), ("revision", Enforce::Revision), ("fence", Enforce::Fence)])
}

fn settings(reader: &mut Reader, item: &Item<'_>) -> Option<BTreeMap<String, String>> {
    let fields = reader.open_table(item)?;
    let items: Vec<_> = fields.keys().filter_map(|key| Some((key.to_owned(), fields.get(key)?))).collect();
    if items.len() > MAX_SETTINGS {
        reader.complain(item.place(), Complaint::invalid(format!("at most {MAX_SETTINGS} settings are allowed")));
        return None;
    }
    let read: Vec<_> = items.into_iter().map(|(key, item)| Some((key, reader.plain_text(&item)?.to_owned()))).collect();
    read.into_iter().collect()
}

/// A name, never a path: which file it is, each host says.
fn program(text: &str) -> Result<(), Complaint> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if (1..=MAX_NAME).contains(&text.len()) && text.chars().all(plain) && !text.starts_with(['.', '-']) {
        return Ok(());
    }
    Err(Complaint::invalid(format!(
        "{} is no name of a program: 1 to {MAX_NAME} letters, digits, \"_\", \"-\" and \".\"",
        shown(text)
    )))
}
