//! Reads some files of a validated archive into memory.

use std::io::Read;

use super::entry::{Entry, Kind};
use super::error::{Error, Why};
use super::second::understood;

/// The contents of these paths, in their order. Each must be a file of the validated entries.
pub(super) fn read(unpacked: impl Read, expected: &[Entry], paths: &[&str]) -> Result<Vec<Vec<u8>>, Error> {
    let changed = || Error::Whole(Why::Disagreement("it changed since it was validated".to_owned()));
    let mut contents = vec![None; paths.len()];
    let mut expected = expected.iter();
    let mut archive = tar::Archive::new(unpacked);
    for entry in archive.entries().map_err(|_| changed())? {
        let mut entry = entry.map_err(|_| changed())?;
        if entry.header().entry_type() == tar::EntryType::XGlobalHeader {
            continue;
        }
        let Some(found) = understood(&entry)? else { continue };
        if expected.next() != Some(&found) {
            return Err(changed());
        }
        if let (Kind::File { bytes, .. }, Some(index)) = (found.kind, paths.iter().position(|path| *path == found.path))
        {
            let mut content = Vec::new();
            let length = entry.read_to_end(&mut content).map_err(|_| changed())?;
            if length as u64 != bytes {
                return Err(changed());
            }
            contents[index] = Some(content);
        }
    }
    contents.into_iter().collect::<Option<_>>().ok_or_else(changed)
}
