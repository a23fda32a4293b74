//! One thing in an archive, and what its name may look like.

use std::collections::BTreeMap;

use super::error::Why;
use super::limits::Limits;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File {
        /// Its length.
        bytes: u64,
        /// Whether its owner may execute it.
        executable: bool,
    },
}

/// A validated entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its path below the archive's root: plain components joined by `/`.
    pub path: String,
    /// What it is.
    pub kind: Kind,
}

/// Turns a raw name into a path of plain components, or `None` for the archive's own root (`./`).
pub(super) fn plain_path(raw: &[u8], limits: Limits) -> Result<Option<String>, Why> {
    let text = std::str::from_utf8(raw).map_err(|_| Why::NotText)?;
    if text.chars().any(char::is_control) {
        return Err(Why::ControlCharacter);
    }
    if text.starts_with('/') {
        return Err(Why::Absolute);
    }
    if text.len() > limits.path_bytes {
        return Err(Why::PathLength { limit: limits.path_bytes });
    }
    let inner = text.strip_prefix("./").unwrap_or(text);
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    if inner.is_empty() || inner == "." {
        return if text.starts_with('.') { Ok(None) } else { Err(Why::EmptyName) };
    }
    let components: Vec<&str> = inner.split('/').collect();
    if components.len() > limits.depth {
        return Err(Why::Depth { limit: limits.depth });
    }
    for component in &components {
        match *component {
            ".." => return Err(Why::Parent),
            "" | "." => return Err(Why::EmptyName),
            long if long.len() > limits.name_bytes => return Err(Why::NameLength { limit: limits.name_bytes }),
            _ => {}
        }
    }
    Ok(Some(inner.to_owned()))
}

/// The tree as far as it was seen, to find names that come twice or are file and directory at once.
#[derive(Default)]
pub(super) struct Tree {
    nodes: BTreeMap<String, Node>,
}

#[derive(Clone, Copy, PartialEq)]
enum Node {
    File,
    Named,
    /// A directory that has no entry of its own yet.
    Implied,
}

impl Tree {
    pub(super) fn add(&mut self, entry: &Entry) -> Result<(), Why> {
        self.add_parents(&entry.path)?;
        let node = match entry.kind {
            Kind::Directory => Node::Named,
            Kind::File { .. } => Node::File,
        };
        match (self.nodes.insert(entry.path.clone(), node), node) {
            (None, _) | (Some(Node::Implied), Node::Named) => Ok(()),
            (Some(Node::File), Node::File) | (Some(Node::Named), Node::Named) => Err(Why::Twice),
            (Some(_), _) => Err(Why::FileAndDirectory),
        }
    }

    fn add_parents(&mut self, path: &str) -> Result<(), Why> {
        for (end, _) in path.match_indices('/') {
            let node = self.nodes.entry(path[..end].to_owned()).or_insert(Node::Implied);
            if *node == Node::File {
                return Err(Why::FileAndDirectory);
            }
        }
        Ok(())
    }
}
