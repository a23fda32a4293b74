//! Files to upload whose digest a file does not tell, found even where the file is not valid because of just that.

use super::field;
use super::tree::{self, Node, Table, Value};
use crate::archive::ArchiveSource;

/// The paths of archives to upload that have no digest, or none that could be one, in file order. What inputs would make of a
/// string is not looked at. Empty where the text is neither TOML nor JSON.
#[must_use]
pub fn uploads_without_digest(text: &str) -> Vec<String> {
    let Ok(root) = tree::read(text) else { return Vec::new() };
    let Some(top) = table(&root) else { return Vec::new() };
    let rollback = top.get("rollback").and_then(|rollback| table(&rollback.node));
    let steps = steps(top).iter().chain(rollback.map_or(&[][..], steps));
    steps.filter_map(|step| undigested(table(&table(step)?.get("with")?.node)?)).collect()
}

fn steps(table: &Table) -> &[Node] {
    match table.get("step").map(|step| &step.node.value) {
        Some(Value::List(steps)) => steps,
        Some(
            Value::Text(_)
            | Value::Integer(_)
            | Value::Boolean(_)
            | Value::OtherNumber
            | Value::Date(_)
            | Value::Null
            | Value::Table(_),
        )
        | None => &[],
    }
}

fn undigested(with: &Table) -> Option<String> {
    let ArchiveSource::Upload(path) = ArchiveSource::of(string(with, "archive")?).ok()? else { return None };
    let is_told = string(with, "sha256").is_some_and(|text| text.contains("${") || field::sha256(text).is_ok());
    (!is_told && !path.contains("${")).then(|| path.to_owned())
}

fn table(node: &Node) -> Option<&Table> {
    match &node.value {
        Value::Table(table) => Some(table),
        Value::Text(_)
        | Value::Integer(_)
        | Value::Boolean(_)
        | Value::OtherNumber
        | Value::Date(_)
        | Value::Null
        | Value::List(_) => None,
    }
}

fn string<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    match &table.get(key)?.node.value {
        Value::Text(text) => Some(text),
        Value::Integer(_)
        | Value::Boolean(_)
        | Value::OtherNumber
        | Value::Date(_)
        | Value::Null
        | Value::List(_)
        | Value::Table(_) => None,
    }
}
