//! The second reader: the `tar` crate must see what the own walk saw.

use std::io::Read;

use tar::EntryType;

use super::entry::{Entry, Kind, plain_path};
use super::error::{Error, Why};
use super::limits::Limits;

/// Reads the archive again and compares it with what was seen.
pub(super) fn agree(unpacked: impl Read, seen: &[Entry]) -> Result<(), Error> {
    let mut seen = seen.iter();
    let mut archive = tar::Archive::new(unpacked);
    for entry in archive.entries().map_err(differs)? {
        let entry = entry.map_err(differs)?;
        if entry.header().entry_type() == EntryType::XGlobalHeader {
            continue;
        }
        if let Some(found) = understood(&entry)? {
            let other = seen.next();
            if other != Some(&found) {
                let told = other.map_or("nothing".to_owned(), |other| format!("{other:?}"));
                return Err(Error::Whole(Why::Disagreement(format!("{told} and {found:?}"))));
            }
        }
    }
    match seen.next() {
        None => Ok(()),
        Some(missed) => Err(Error::Whole(Why::Disagreement(format!("{missed:?} and nothing")))),
    }
}

/// An entry as the `tar` crate understands it; `None` for the archive's own root.
pub(super) fn understood(entry: &tar::Entry<'_, impl Read>) -> Result<Option<Entry>, Error> {
    let refuse = |why: &str| Error::Whole(Why::Disagreement(why.to_owned()));
    let mode = entry.header().mode().map_err(differs)?;
    let announced = entry.header().entry_type();
    let kind = if announced == EntryType::Regular {
        Kind::File { bytes: entry.size(), executable: mode & 0o100 != 0 }
    } else if announced == EntryType::Directory {
        Kind::Directory
    } else {
        return Err(refuse("one sees something other than a file or directory"));
    };
    // The limits were applied by the walk; here only the meaning of the name counts.
    let unlimited = Limits { depth: usize::MAX, name_bytes: usize::MAX, path_bytes: usize::MAX, ..Limits::default() };
    let path = plain_path(&entry.path_bytes(), unlimited).map_err(|_| refuse("one sees a name that is not plain"))?;
    Ok(path.map(|path| Entry { path, kind }))
}

fn differs(error: std::io::Error) -> Error {
    Error::Whole(Why::Disagreement(error.to_string()))
}
