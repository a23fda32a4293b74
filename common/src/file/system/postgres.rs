//! `adapter = "postgres"`.

use crate::file::field;
use crate::file::reader::{Complaint, Fields, Reader, shown};
use crate::system::Postgres;

/// Longest name that PostgreSQL keeps whole, in bytes.
const MAX_NAME: usize = 63;

pub(super) fn read(reader: &mut Reader, fields: &Fields<'_>) -> Option<Postgres> {
    let with = reader.required(fields, "with")?;
    let with = reader.table(&with, &["schema", "server", "database"])?;
    let schema = reader.required(&with, "schema").and_then(|item| reader.ruled(&item, schema));
    let server = with.get("server").map(|item| reader.ruled(&item, field::address));
    let database = with.get("database").map(|item| reader.ruled(&item, database));
    let (server, database) =
        (server.map_or(Some(None), |read| read.map(Some)), database.map_or(Some(None), |read| read.map(Some)));
    Some(Postgres { schema: schema?, server: server?, database: database? })
}

/// A name that needs no quoting.
fn schema(text: &str) -> Result<(), Complaint> {
    let first = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let plain = text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if first && plain && text.len() <= MAX_NAME && !text.starts_with("pg_") && text != "holdfast" {
        return Ok(());
    }
    Err(Complaint::invalid(format!(
        "{} is no schema of yours: 1 to {MAX_NAME} of a-z, 0-9 and _, no digit first, not \"holdfast\" and nothing that begins with \"pg_\"",
        shown(text)
    )))
}

fn database(text: &str) -> Result<(), Complaint> {
    if (1..=MAX_NAME).contains(&text.len()) {
        return Ok(());
    }
    Err(Complaint::invalid(format!("a database's name has 1 to {MAX_NAME} bytes, this one has {}", text.len())))
}
