//! The own walk over an archive's headers. Every rule and every limit is applied here.

use std::io::{self, BufRead, Read};

use super::entry::{Entry, Kind, Tree, plain_path};
use super::error::{Error, Why};
use super::header::{Announced, BLOCK, Extended, Header};
use super::limits::Limits;
use super::packing::Unpacked;

/// Longest extended header or long name that is read.
const EXTENDED_BYTES: u64 = 64 * 1024;
const CUT: Why = Why::Framing("it ends in the middle");

/// Reads the whole archive to its last byte.
pub(super) fn walk<R: BufRead>(unpacked: &mut Unpacked<R>, limits: Limits) -> Result<Vec<Entry>, Error> {
    let mut walk = Walk { input: unpacked, limits, left: limits.total_bytes, index: 0, tree: Tree::default() };
    let mut entries = Vec::new();
    while let Some(found) = walk.next()? {
        entries.extend(found);
    }
    walk.rest_is_zero()?;
    match unpacked.is_followed() {
        Ok(false) => Ok(entries),
        Ok(true) => Err(Error::Whole(Why::Framing("bytes follow its end, or it was packed in several parts"))),
        Err(error) => Err(Error::Whole(Why::Packing(error.to_string()))),
    }
}

struct Walk<'a, R: BufRead> {
    input: &'a mut Unpacked<R>,
    limits: Limits,
    /// Bytes that may still be unpacked.
    left: u64,
    index: usize,
    tree: Tree,
}

/// What the headers before an entry said of it.
#[derive(Default)]
struct Before {
    long_name: Option<Vec<u8>>,
    extended: Option<Extended>,
}

impl<R: BufRead> Walk<'_, R> {
    /// The next entry; `Some(None)` for the archive's own root; `None` at the end.
    fn next(&mut self) -> Result<Option<Option<Entry>>, Error> {
        let mut before = Before::default();
        loop {
            let Some(block) = self.header_block(&before)? else { return Ok(None) };
            self.index += 1;
            let raw = |why| self.at(&String::from_utf8_lossy(&block[..100]), why);
            let header = Header::read(&block).map_err(raw)?;
            let announced = header.announced().map_err(raw)?;
            let size = header.size().map_err(raw)?;
            match announced {
                Announced::File | Announced::Directory => {
                    return self.entry(&header, announced, size, before).map(Some);
                }
                Announced::LongName if before.long_name.is_none() => {
                    let bytes = self.extended_bytes(size)?;
                    before.long_name = Some(bytes.strip_suffix(b"\0").unwrap_or(&bytes).to_vec());
                }
                Announced::Extended if before.extended.is_none() => {
                    let bytes = self.extended_bytes(size)?;
                    before.extended = Some(Extended::read(&bytes).map_err(|why| self.at("extended header", why))?);
                }
                Announced::Global => {
                    let bytes = self.extended_bytes(size)?;
                    Extended::only_remarks(&bytes).map_err(|why| self.at("global header", why))?;
                }
                Announced::LongName | Announced::Extended => {
                    return Err(self.at("extended header", Why::Header("it comes twice for one entry")));
                }
            }
            // Headers that stand before entries are bounded like entries.
            self.count_entry(self.index)?;
        }
    }

    fn entry(
        &mut self,
        header: &Header<'_>,
        announced: Announced,
        size: u64,
        before: Before,
    ) -> Result<Option<Entry>, Error> {
        let Extended { path, size: told } = before.extended.unwrap_or_default();
        let raw = match (before.long_name, path) {
            (Some(_), Some(_)) => return Err(self.at("entry", Why::Header("two long names for one entry"))),
            (Some(name), None) | (None, Some(name)) => name,
            (None, None) => header.name(),
        };
        let shown = String::from_utf8_lossy(&raw).into_owned();
        let kind = self.kind(header, announced, size, told).map_err(|why| self.at(&shown, why))?;
        let path = plain_path(&raw, self.limits).map_err(|why| self.at(&shown, why))?;
        self.count_entry(self.index)?;
        self.skip(size).map_err(|why| self.at(&shown, why))?;
        let Some(path) = path else {
            return match kind {
                Kind::Directory => Ok(None),
                Kind::File { .. } => Err(self.at(&shown, Why::EmptyName)),
            };
        };
        if raw.ends_with(b"/") && kind != Kind::Directory {
            return Err(self.at(&shown, Why::FileAndDirectory));
        }
        let entry = Entry { path, kind };
        self.tree.add(&entry).map_err(|why| self.at(&shown, why))?;
        Ok(Some(entry))
    }

    fn kind(&self, header: &Header<'_>, announced: Announced, size: u64, told: Option<u64>) -> Result<Kind, Why> {
        let mode = header.mode()?;
        if mode & 0o7000 != 0 {
            return Err(Why::SpecialMode { mode });
        }
        if told.is_some_and(|told| told != size) {
            return Err(Why::SizeMismatch);
        }
        match announced {
            Announced::Directory if size != 0 => Err(Why::DirectoryWithContent),
            Announced::Directory => Ok(Kind::Directory),
            Announced::File if size > self.limits.file_bytes => {
                Err(Why::FileBytes { bytes: size, limit: self.limits.file_bytes })
            }
            Announced::File => Ok(Kind::File { bytes: size, executable: mode & 0o100 != 0 }),
            Announced::LongName | Announced::Extended | Announced::Global => Err(Why::Header("it stands for no entry")),
        }
    }

    fn count_entry(&self, index: usize) -> Result<(), Error> {
        if index > self.limits.entries {
            return Err(Error::Whole(Why::Entries { limit: self.limits.entries }));
        }
        Ok(())
    }

    /// The next header, or `None` at the two empty blocks that end an archive.
    fn header_block(&mut self, before: &Before) -> Result<Option<[u8; BLOCK]>, Error> {
        let block = self.block()?;
        if block != [0; BLOCK] {
            return Ok(Some(block));
        }
        if before.long_name.is_some() || before.extended.is_some() {
            return Err(Error::Whole(Why::Framing("an extended header has no entry")));
        }
        if self.block()? != [0; BLOCK] {
            return Err(Error::Whole(Why::Framing("an empty block stands between entries")));
        }
        Ok(None)
    }

    fn block(&mut self) -> Result<[u8; BLOCK], Error> {
        let mut block = [0; BLOCK];
        self.spend(BLOCK as u64).map_err(Error::Whole)?;
        self.input.read_exact(&mut block).map_err(|error| Error::Whole(reading(error)))?;
        Ok(block)
    }

    fn extended_bytes(&mut self, size: u64) -> Result<Vec<u8>, Error> {
        if size > EXTENDED_BYTES {
            return Err(self.at("extended header", Why::Header("it is too long")));
        }
        let padded = padded(size);
        self.spend(padded).map_err(Error::Whole)?;
        let mut bytes = vec![0; usize::try_from(padded).expect("bounded above")];
        self.input.read_exact(&mut bytes).map_err(|error| Error::Whole(reading(error)))?;
        bytes.truncate(usize::try_from(size).expect("bounded above"));
        Ok(bytes)
    }

    fn skip(&mut self, size: u64) -> Result<(), Why> {
        self.spend(padded(size))?;
        let copied = io::copy(&mut self.input.take(padded(size)), &mut io::sink()).map_err(reading)?;
        if copied == padded(size) { Ok(()) } else { Err(CUT) }
    }

    fn spend(&mut self, bytes: u64) -> Result<(), Why> {
        self.left = self.left.checked_sub(bytes).ok_or(Why::TotalBytes { limit: self.limits.total_bytes })?;
        Ok(())
    }

    fn rest_is_zero(&mut self) -> Result<(), Error> {
        let mut buffer = [0; 8192];
        loop {
            let count = self.input.read(&mut buffer).map_err(|error| Error::Whole(reading(error)))?;
            if count == 0 {
                return Ok(());
            }
            self.spend(count as u64).map_err(Error::Whole)?;
            if buffer[..count].iter().any(|byte| *byte != 0) {
                return Err(Error::Whole(Why::Framing("something follows its end")));
            }
        }
    }

    fn at(&self, name: &str, why: Why) -> Error {
        Error::Entry { index: self.index, name: name.trim_end_matches('\0').to_owned(), why }
    }
}

fn padded(size: u64) -> u64 {
    size.next_multiple_of(BLOCK as u64)
}

fn reading(error: io::Error) -> Why {
    if error.kind() == io::ErrorKind::UnexpectedEof { CUT } else { Why::Packing(error.to_string()) }
}
