//! Release archives: tar files, plain or packed by gzip or zstd, read with distrust. The first bytes tell which.
//!
//! 1. The digest of the whole file is compared first.
//! 2. Every entry is validated before anything touches the disk: an own walk over the headers applies every rule and
//!    limit, then the `tar` crate must see exactly the same names, sizes and kinds. An archive that two readers
//!    understand in two ways is refused.
//! 3. Unpacking goes into one new folder, relative to open directories and following no link, entry by entry against the
//!    validated list, and computes the digest again.
//!
//! Only regular files and directories are accepted. Links of any kind are refused by this version, also those that
//! stay inside. Owners, times and group bits are not taken over: files become 0644 or 0755, directories 0755.

mod content;
mod entry;
mod error;
mod header;
mod limits;
mod packing;
mod second;
mod unpack;
mod walk;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use holdfast_common::spec::hex;
use sha2::{Digest, Sha256};

pub use entry::{Entry, Kind};
pub use error::{Error, Why};
pub use limits::Limits;
use packing::{Packing, Unpacked};

/// An archive whose digest is right and whose every entry was validated. Nothing was unpacked.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    file: File,
    packing: Packing,
    sha256: String,
    limits: Limits,
    entries: Vec<Entry>,
}

impl Archive {
    /// Compares the digest (SHA-256, lower-case hex), then validates every entry. Writes nothing.
    pub fn check(path: &Path, sha256: &str, limits: Limits) -> Result<Self, Error> {
        let mut file = File::open(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let read = |source| Error::Read { path: path.to_owned(), source };
        let metadata = file.metadata().map_err(read)?;
        if !metadata.is_file() {
            return Err(Error::NotAFile { path: path.to_owned() });
        }
        if metadata.len() > limits.packed_bytes {
            return Err(Error::Packed { bytes: metadata.len(), limit: limits.packed_bytes });
        }
        compare(&digest_of(&mut file).map_err(read)?, sha256)?;
        let limits = limits.for_packed(metadata.len());
        let packing = Packing::of(&start_of(&mut file).map_err(read)?).map_err(Error::Whole)?;
        let entries = walk::walk(&mut open(&mut file, packing).map_err(read)?, limits)?;
        second::agree(open(&mut file, packing).map_err(read)?, &entries)?;
        Ok(Self { path: path.to_owned(), file, packing, sha256: sha256.to_owned(), limits, entries })
    }

    /// What it holds, in file order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The contents of some of its files, in the order of the paths. How large they are the entries say before.
    pub fn read(&mut self, paths: &[&str]) -> Result<Vec<Vec<u8>>, Error> {
        let read = |source| Error::Read { path: self.path.clone(), source };
        self.file.seek(SeekFrom::Start(0)).map_err(read)?;
        let mut hashed = Hashed { inner: io::BufReader::new(&mut self.file), digest: Sha256::new() };
        let unpacked = self.packing.open(io::BufReader::new(&mut hashed)).map_err(read)?;
        let contents = content::read(unpacked, &self.entries, paths)?;
        io::copy(&mut hashed, &mut io::sink()).map_err(read)?;
        compare(&hex(&hashed.digest.finalize()), &self.sha256)?;
        Ok(contents)
    }

    /// Unpacks into the folder `name` of the directory `parent`, which must not have it, and makes it stay.
    /// After an error the folder may be there in part.
    pub fn unpack(&mut self, parent: &File, name: &str) -> Result<(), Error> {
        let read = |source| Error::Read { path: self.path.clone(), source };
        self.file.seek(SeekFrom::Start(0)).map_err(read)?;
        let mut hashed = Hashed { inner: io::BufReader::new(&mut self.file), digest: Sha256::new() };
        let unpacked = self.packing.open(io::BufReader::new(&mut hashed)).map_err(read)?;
        unpack::unpack(unpacked, &self.entries, parent, name)?;
        io::copy(&mut hashed, &mut io::sink()).map_err(read)?;
        compare(&hex(&hashed.digest.finalize()), &self.sha256)?;
        unpack::sync(&self.entries, parent, name)
    }

    /// The limits as they held for this archive.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }
}

fn compare(found: &str, wanted: &str) -> Result<(), Error> {
    if found == wanted {
        return Ok(());
    }
    Err(Error::Digest { wanted: wanted.to_owned(), found: found.to_owned() })
}

fn digest_of(file: &mut File) -> io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let mut digest = Sha256::new();
    io::copy(file, &mut digest)?;
    Ok(hex(&digest.finalize()))
}

fn start_of(file: &mut File) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(0))?;
    let mut start = Vec::new();
    file.take(header::BLOCK as u64).read_to_end(&mut start)?;
    Ok(start)
}

fn open(file: &mut File, packing: Packing) -> io::Result<Unpacked<io::BufReader<&mut File>>> {
    file.seek(SeekFrom::Start(0))?;
    packing.open(io::BufReader::new(file))
}

/// Passes bytes on and digests them.
struct Hashed<R> {
    inner: R,
    digest: Sha256,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.digest.update(&buffer[..count]);
        Ok(count)
    }
}
