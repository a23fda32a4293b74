//! The files of a migration step: from a folder of the host, or from the step's archive.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use holdfast_common::system::Migrate;
use rustix::fs::{Mode, OFlags};

use super::migration::{self, Migration};
use super::version::Version;
use crate::adapters::system::Failure;
use crate::archive::{Archive, Kind, Limits};
use crate::internal::with_causes;

const MAX_FILES: usize = 10_000;
/// Largest file, in bytes.
const MAX_FILE: u64 = 8 << 20;
/// All that one step reads, in bytes.
const MAX_TOTAL: u64 = 256 << 20;

/// Where the files are.
enum Source {
    Folder(PathBuf),
    Archive(Box<Archive>),
}

/// A file before it is read.
#[derive(Debug)]
struct Found {
    version: Version,
    /// Its own name.
    name: String,
    /// Where its source has it.
    path: String,
    /// Its length.
    bytes: u64,
}

/// Every migration up to the version to stop after, in order. The last one is that version.
pub(super) fn load(migrate: &Migrate, archive: Option<&Path>, work: &Path) -> Result<Vec<Migration>, Failure> {
    let mut source = Source::of(migrate, archive, work)?;
    let found = chosen(source.list(&migrate.migrations)?, &migrate.to)?;
    let contents = source.read(&found)?;
    let migrations =
        found.into_iter().zip(contents).map(|(found, bytes)| Migration::of(found.version, &found.name, bytes));
    migrations.collect::<Result<_, _>>().map_err(Failure::Content)
}

/// Sorts them, and leaves out what comes after the version to stop after.
fn chosen(mut found: Vec<Found>, to: &str) -> Result<Vec<Found>, Failure> {
    found.sort_by(|left, right| left.version.cmp(&right.version));
    if let Some(pair) = found.windows(2).find(|pair| pair[0].version == pair[1].version) {
        return Err(Failure::Content(format!("{} and {} are the same version", pair[0].name, pair[1].name)));
    }
    let last = found.iter().position(|found| found.version.as_str() == to);
    let last = last.ok_or_else(|| Failure::Content(format!("no migration has the version {to}")))?;
    found.truncate(last + 1);
    if found.iter().map(|found| found.bytes).sum::<u64>() > MAX_TOTAL {
        return Err(Failure::Content(format!("migrations of more than {MAX_TOTAL} bytes together are too many")));
    }
    Ok(found)
}

impl Source {
    fn of(migrate: &Migrate, archive: Option<&Path>, work: &Path) -> Result<Self, Failure> {
        let Some(wanted) = &migrate.archive else { return Ok(Source::Folder(work.join(&migrate.migrations))) };
        let path = archive.ok_or_else(|| Failure::NotBegun("the step's archive was not brought".to_owned()))?;
        Archive::check(path, &wanted.sha256, Limits::default())
            .map(|archive| Source::Archive(Box::new(archive)))
            .map_err(of_archive)
    }

    fn list(&self, folder: &str) -> Result<Vec<Found>, Failure> {
        let files = match self {
            Source::Folder(folder) => in_folder(folder)?,
            Source::Archive(archive) => in_archive(archive, folder),
        };
        if files.len() > MAX_FILES {
            return Err(Failure::Content(format!("more than {MAX_FILES} migrations are too many")));
        }
        files
            .into_iter()
            .map(|(name, path, bytes)| found(name, path, bytes))
            .collect::<Result<_, _>>()
            .map_err(Failure::Content)
    }

    fn read(&mut self, found: &[Found]) -> Result<Vec<Vec<u8>>, Failure> {
        match self {
            Source::Folder(folder) => found.iter().map(|found| read(folder, &found.name)).collect(),
            Source::Archive(archive) => {
                let paths: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
                archive.read(&paths).map_err(of_archive)
            }
        }
    }
}

fn found(name: String, path: String, bytes: Option<u64>) -> Result<Found, String> {
    match bytes {
        None => Err(format!("{name} is not a regular file")),
        Some(bytes) if bytes > MAX_FILE => Err(format!("{name} has {bytes} bytes, allowed are {MAX_FILE}")),
        Some(bytes) => Ok(Found { version: migration::version(&name)?, name, path, bytes }),
    }
}

/// Name, place and length of every `.sql`; no length where it is something other than a file.
fn in_folder(folder: &Path) -> Result<Vec<(String, String, Option<u64>)>, Failure> {
    let failed =
        |error: io::Error| Failure::Content(format!("could not read the folder {}: {error}", folder.display()));
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().into_string();
        let name = name.map_err(|name| Failure::Content(format!("{} is no migration's name", name.display())))?;
        if is_sql(&name) {
            let metadata = entry.metadata().map_err(failed)?;
            files.push((name.clone(), name, metadata.is_file().then_some(metadata.len())));
        }
    }
    Ok(files)
}

fn in_archive(archive: &Archive, folder: &str) -> Vec<(String, String, Option<u64>)> {
    let folder: Vec<&str> = folder.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let below = |path: &str| match path.rsplit_once('/') {
        Some((above, name)) => above.split('/').eq(folder.iter().copied()).then(|| name.to_owned()),
        None => folder.is_empty().then(|| path.to_owned()),
    };
    let entries = archive.entries().iter().filter_map(|entry| Some((below(&entry.path)?, entry)));
    let length = |kind| match kind {
        Kind::File { bytes, .. } => Some(bytes),
        Kind::Directory => None,
    };
    entries
        .filter(|(name, _)| is_sql(name))
        .map(|(name, entry)| (name, entry.path.clone(), length(entry.kind)))
        .collect()
}

fn is_sql(name: &str) -> bool {
    name.ends_with(".sql") && !name.starts_with('.')
}

/// Follows no link, waits for no pipe, and reads no more than is allowed whatever became of the file meanwhile.
fn read(folder: &Path, name: &str) -> Result<Vec<u8>, Failure> {
    let path = folder.join(name);
    let open = || -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(&path, flags, Mode::empty())?);
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = open().map_err(|error| Failure::Content(format!("could not read {}: {error}", path.display())))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(Failure::Content(format!("{name} has more than {MAX_FILE} bytes")));
    }
    Ok(bytes)
}

fn of_archive(error: crate::archive::Error) -> Failure {
    let text = with_causes(&error);
    if error.is_refusal() { Failure::Content(text) } else { Failure::NotBegun(text) }
}
