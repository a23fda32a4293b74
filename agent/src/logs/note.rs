//! Notes of outputs that are not at the coordinator whole. Losing one loses no more than the rest of an output.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::Output;
use crate::places::Places;

fn path(places: &Places, output: &Output) -> PathBuf {
    places.uploads().join(format!("{}.{}.json", output.folder, output.step))
}

/// By a rename: a note is whole or absent. One that is there stays: it has the claim that the step began under.
pub(super) fn write(places: &Places, output: &Output) -> io::Result<()> {
    let path = path(places, output);
    if path.exists() {
        return Ok(());
    }
    let fresh = path.with_extension("new");
    fs::write(&fresh, serde_json::to_vec(output).expect("plain data serializes"))?;
    fs::rename(fresh, path)
}

pub(super) fn remove(places: &Places, output: &Output) -> io::Result<()> {
    match fs::remove_file(path(places, output)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Every one that reads back.
pub(super) fn all(places: &Places) -> io::Result<Vec<Output>> {
    let mut outputs = Vec::new();
    for entry in fs::read_dir(places.uploads())? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "json") {
            outputs.extend(fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Output>(&bytes).ok()));
        }
    }
    Ok(outputs)
}
