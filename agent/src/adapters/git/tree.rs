//! Trees: which one a folder is, and the same repository with another one in its place. No checkout, no index of the whole.

use super::cache::Repository;
use super::error::Error;
use super::names::Oid;
use crate::adapters::system::Failure;

/// One line of a tree: `mode type id`, and the name as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    mode: String,
    kind: String,
    oid: Oid,
    name: Vec<u8>,
}

/// The tree at that path of a commit; `None` where nothing is there. Something else than a folder is refused.
pub(super) fn folder(repository: &Repository<'_>, commit: &Oid, path: &str) -> Result<Option<Oid>, Error> {
    let mut tree = root(repository, commit)?;
    for part in parts(path) {
        match child(&lines(repository, &tree)?, part)? {
            Some(below) => tree = below,
            None => return Ok(None),
        }
    }
    Ok(Some(tree))
}

/// The commit's root tree with that folder in place of what is at the path. Without a commit it is all there is.
pub(super) fn replace(
    repository: &Repository<'_>,
    commit: Option<&Oid>,
    path: &str,
    folder: Oid,
) -> Result<Oid, Error> {
    let root = commit.map(|commit| root(repository, commit)).transpose()?;
    let parts: Vec<&str> = parts(path).collect();
    splice(repository, root, &parts, folder)
}

fn splice(repository: &Repository<'_>, tree: Option<Oid>, parts: &[&str], folder: Oid) -> Result<Oid, Error> {
    let Some((part, rest)) = parts.split_first() else { return Ok(folder) };
    let mut lines = tree.map_or(Ok(Vec::new()), |tree| lines(repository, &tree))?;
    let below = splice(repository, child(&lines, part)?, rest, folder)?;
    lines.retain(|line| line.name != part.as_bytes());
    lines.push(Line { mode: "040000".to_owned(), kind: "tree".to_owned(), oid: below, name: part.as_bytes().to_vec() });
    let input: Vec<u8> = lines.iter().flat_map(Line::bytes).collect();
    oid(&repository.run("mktree").args(["-z"]).input(input).line()?)
}

fn child(lines: &[Line], part: &str) -> Result<Option<Oid>, Error> {
    match lines.iter().find(|line| line.name == part.as_bytes()) {
        None => Ok(None),
        Some(line) if line.kind == "tree" => Ok(Some(line.oid.clone())),
        Some(_) => {
            Err(Failure::Resource(format!("{part} on the resource's path is no folder in the repository")).into())
        }
    }
}

fn root(repository: &Repository<'_>, commit: &Oid) -> Result<Oid, Error> {
    oid(&repository
        .run("rev-parse")
        .args(["--verify", "--quiet", "--end-of-options", &format!("{commit}^{{tree}}")])
        .line()?)
}

fn lines(repository: &Repository<'_>, tree: &Oid) -> Result<Vec<Line>, Error> {
    let bytes = repository.run("ls-tree").args(["-z", tree.as_str()]).output()?;
    let lines: Option<Vec<Line>> =
        bytes.split(|byte| *byte == 0).filter(|line| !line.is_empty()).map(Line::parse).collect();
    lines.ok_or_else(|| Error::Cache(format!("git ls-tree: {tree} can't be read")))
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

/// What git answered for an object that it has or made.
pub(super) fn oid(text: &str) -> Result<Oid, Error> {
    Oid::parse(text).ok_or_else(|| Error::Cache("git answered with no object's id".to_owned()))
}

impl Line {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let tab = bytes.iter().position(|byte| *byte == b'\t')?;
        let mut words = std::str::from_utf8(&bytes[..tab]).ok()?.split(' ');
        let (mode, kind, oid) = (words.next()?, words.next()?, words.next()?);
        Some(Self {
            mode: mode.to_owned(),
            kind: kind.to_owned(),
            oid: Oid::parse(oid)?,
            name: bytes[tab + 1..].to_vec(),
        })
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{} {} {}\t", self.mode, self.kind, self.oid).into_bytes();
        bytes.extend_from_slice(&self.name);
        bytes.push(0);
        bytes
    }
}
