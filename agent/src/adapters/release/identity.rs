//! The random identity of one resource, made once and stored with it.

use uuid::Uuid;

use super::calls::{Call, call};
use super::error::{Error, io_at};
use super::root::Root;
use crate::durable;

/// Reads it. `None`: nothing was ever done here.
pub(super) fn read(root: &Root) -> Result<Option<String>, Error> {
    let path = root.identity();
    let Some(bytes) = durable::read(&path).map_err(io_at("read", &path))? else { return Ok(None) };
    let text = String::from_utf8(bytes).map_err(|_| Error::Damaged { path: path.clone() })?;
    let id: Uuid = text.trim().parse().map_err(|_| Error::Damaged { path })?;
    Ok(Some(id.to_string()))
}

/// Reads it, or makes it. Of several makers one is first, and all answer the same.
pub(super) fn ensure(root: &Root) -> Result<String, Error> {
    if let Some(identity) = read(root)? {
        return Ok(identity);
    }
    let path = root.identity();
    let fresh = format!("{}\n", Uuid::new_v4());
    call(Call::PublishIdentity, || durable::publish(&path, fresh.as_bytes())).map_err(io_at("make", &path))?;
    read(root)?.ok_or(Error::Damaged { path })
}
