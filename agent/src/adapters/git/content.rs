//! What is to be in the folder: the archive's files and the step's own, as objects in the cache.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use holdfast_common::system::Commit;

use super::cache::Repository;
use super::error::Error;
use super::names::Oid;
use super::tree::oid;
use crate::adapters::system::Failure;
use crate::archive::{Archive, Kind, Limits};

const PLAIN: &str = "100644";
const EXECUTABLE: &str = "100755";
const NO_FILES: &str = "there is no file in the archive, and an empty folder is nothing to git";

/// Checks the archive and every path, and makes no object. What is in the way is refused as content.
pub(super) fn check(repository: &Repository<'_>, change: &Commit, archive: Option<&Path>) -> Result<(), Error> {
    let mut modes = match open(change, archive)? {
        Some(archive) => modes_of(&archive),
        None => BTreeMap::new(),
    };
    modes.extend(change.files.keys().map(|path| (path.clone(), PLAIN)));
    refuse_odd(&modes)?;
    // Git's own rules, on an index of no objects.
    let none = if is_sha256(repository)? { 64 } else { 40 };
    let none = oid(&"1".repeat(none))?;
    let files: BTreeMap<String, File> =
        modes.into_iter().map(|(path, mode)| (path, File { mode, oid: none.clone() })).collect();
    fill(repository, repository.fresh_index().path(), &files)
}

/// The files, as objects.
pub(super) struct Content {
    files: BTreeMap<String, File>,
}

struct File {
    mode: &'static str,
    oid: Oid,
}

impl Content {
    /// Puts every file into the cache.
    pub(super) fn store(repository: &Repository<'_>, change: &Commit, archive: Option<&Path>) -> Result<Self, Error> {
        let stage = repository.fresh_stage();
        fs::create_dir(stage.path())?;
        let mut modes = BTreeMap::new();
        if let Some(mut archive) = open(change, archive)? {
            archive.unpack(&fs::File::open(stage.path())?, "archive")?;
            modes = modes_of(&archive);
        }
        let mut sources: BTreeMap<String, String> =
            modes.keys().map(|path| (path.clone(), format!("archive/{path}"))).collect();
        for (at, (path, text)) in change.files.iter().enumerate() {
            fs::write(stage.path().join(at.to_string()), text)?;
            sources.insert(path.clone(), at.to_string());
            modes.entry(path.clone()).or_insert(PLAIN);
        }
        refuse_odd(&modes)?;
        let list: String = sources.values().map(|source| format!("{source}\n")).collect();
        let run = repository.run("hash-object").args(["-w", "--no-filters", "--stdin-paths"]);
        let answer = run.folder(stage.path()).input(list).output()?;
        let answer = String::from_utf8_lossy(&answer);
        let oids = answer.lines().map(oid).collect::<Result<Vec<Oid>, Error>>()?;
        if oids.len() != modes.len() {
            return Err(Error::Cache("git hash-object answered for another number of files".to_owned()));
        }
        let files = modes.into_iter().zip(oids).map(|((path, mode), oid)| (path, File { mode, oid }));
        Ok(Self { files: files.collect() })
    }

    /// The folder's tree with these files: over what is there, or alone.
    pub(super) fn tree(&self, repository: &Repository<'_>, over: Option<&Oid>) -> Result<Oid, Error> {
        let index = repository.fresh_index();
        if let Some(over) = over {
            repository.run("read-tree").args([over.as_str()]).index(index.path()).output()?;
        }
        fill(repository, index.path(), &self.files)?;
        oid(&repository.run("write-tree").index(index.path()).line()?)
    }
}

fn fill(repository: &Repository<'_>, index: &Path, files: &BTreeMap<String, File>) -> Result<(), Error> {
    let lines: String = files.iter().map(|(path, file)| format!("{} {}\t{path}\0", file.mode, file.oid)).collect();
    let ended = repository.run("update-index").args(["-z", "--index-info"]).index(index).input(lines).end()?;
    // What breaks its rules git leaves out, says so, and goes on.
    let lower = ended.said.to_lowercase();
    if lower.contains("ignoring path") || lower.contains("invalid path") {
        return Err(Failure::Content(format!("git takes no such path: {}", ended.said)).into());
    }
    if ended.success { Ok(()) } else { Err(Error::Cache(format!("git update-index: {}", ended.said))) }
}

fn open(change: &Commit, path: Option<&Path>) -> Result<Option<Archive>, Error> {
    let Some(declared) = &change.archive else { return Ok(None) };
    let path = path.ok_or_else(|| Failure::NotBegun("the step's archive was not brought".to_owned()))?;
    Ok(Some(Archive::check(path, &declared.sha256, Limits::default())?))
}

fn modes_of(archive: &Archive) -> BTreeMap<String, &'static str> {
    let mode = |kind| match kind {
        Kind::Directory => None,
        Kind::File { executable: true, .. } => Some(EXECUTABLE),
        Kind::File { executable: false, .. } => Some(PLAIN),
    };
    archive.entries().iter().filter_map(|entry| Some((entry.path.clone(), mode(entry.kind)?))).collect()
}

/// A file that is a folder to another one, a path that is none, or nothing at all.
fn refuse_odd(modes: &BTreeMap<String, &'static str>) -> Result<(), Failure> {
    if modes.is_empty() {
        return Err(Failure::Content(NO_FILES.to_owned()));
    }
    for path in modes.keys() {
        let odd = |part: &str| matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case(".git");
        if path.chars().any(char::is_control) || path.split('/').any(odd) {
            return Err(Failure::Content(format!("{path:?} is no path that a repository can have")));
        }
        if let Some((end, _)) = path.match_indices('/').find(|(end, _)| modes.contains_key(&path[..*end])) {
            return Err(Failure::Content(format!("{:?} is a file, and a folder of {path:?}", &path[..end])));
        }
    }
    Ok(())
}

fn is_sha256(repository: &Repository<'_>) -> Result<bool, Error> {
    Ok(repository.run("rev-parse").args(["--show-object-format"]).line()? == "sha256")
}
