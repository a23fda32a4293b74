//! Taking `next` out of slots that were exchanged for a tombstone.
//!
//! A flip that was already inside the kernel when its slot was exchanged can still succeed until `next` is taken. So a
//! raise is complete only when `taken/` holds no slot any more, whoever put it there.

use std::fs;
use std::io;
use std::path::Path;

use holdfast_common::fence::{Epoch, Fence};
use rustix::fs::{AtFlags, CWD, unlinkat};

use super::calls::{Call, call};
use super::error::{Error, io_at};
use super::root::Root;
use super::slots::{fence_of, nonce};

/// Which slot, or which epoch's slots, lie under a name in `taken/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) epoch: Epoch,
    /// `None`: the whole epoch.
    pub(super) counter: Option<u64>,
}

impl Label {
    /// `<epoch>.<counter>.<nonce>` or `<epoch>.all.<nonce>`.
    pub(super) fn fresh_name(&self) -> String {
        let counter = self.counter.map_or("all".to_owned(), |counter| counter.to_string());
        format!("{}.{counter}.{}", self.epoch.0, nonce())
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('.');
        let epoch = Epoch(parts.next()?.parse().ok()?);
        let counter = match parts.next()? {
            "all" => None,
            number => Some(number.parse().ok()?),
        };
        Some(Self { epoch, counter })
    }

    fn fence(&self) -> Option<Fence> {
        fence_of(self.epoch, self.counter?)
    }
}

/// A slot that was exchanged, and whether this process took its `next`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) fence: Fence,
    pub(super) took_next: bool,
}

/// Empties `taken/`. Slots of `exchanged` that another raiser emptied first are named too.
pub(super) fn sweep(root: &Root, exchanged: &[Label]) -> Result<Vec<Taken>, Error> {
    let mut taken = Vec::new();
    for name in list(&root.taken())? {
        while !clear(root, &name, &mut taken)? {}
    }
    for fence in exchanged.iter().filter_map(Label::fence) {
        if !taken.iter().any(|slot| slot.fence == fence) {
            taken.push(Taken { fence, took_next: false });
        }
    }
    taken.sort_by_key(|slot| slot.fence);
    Ok(taken)
}

/// Clears one name in `taken/`. False: it became a slot under our eyes, look again.
fn clear(root: &Root, name: &str, taken: &mut Vec<Taken>) -> Result<bool, Error> {
    let path = root.taken().join(name);
    match fs::symlink_metadata(&path) {
        Ok(metadata) if metadata.is_dir() => match Label::parse(name) {
            Some(label) if label.counter.is_some() => take(&path, label.fence(), taken)?,
            Some(label) => take_epoch(&path, label.epoch, taken)?,
            None => {}
        },
        Ok(_) => return remove_file(&path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(io_at("look at", &path)(error)),
    }
    Ok(true)
}

/// The slots, or whole epochs, that lie in `taken/`: flips out of them may still succeed.
pub(super) fn pending(root: &Root) -> Result<Vec<Label>, Error> {
    let names = list(&root.taken())?;
    Ok(names.iter().filter(|name| root.taken().join(name).is_dir()).filter_map(|name| Label::parse(name)).collect())
}

fn take_epoch(path: &Path, epoch: Epoch, taken: &mut Vec<Taken>) -> Result<(), Error> {
    loop {
        for name in list(path)? {
            let slot = path.join(&name);
            match fs::symlink_metadata(&slot) {
                Ok(metadata) if metadata.is_dir() => {
                    take(&slot, name.parse().ok().and_then(|counter| fence_of(epoch, counter)), taken)?;
                }
                Ok(_) => {
                    remove_file(&slot)?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(io_at("look at", &slot)(error)),
            }
        }
        if remove_dir(path)? {
            return Ok(());
        }
    }
}

/// Takes `next` and removes the slot. A directory that is removed can't get a new `next`: the kernel refuses.
fn take(path: &Path, fence: Option<Fence>, taken: &mut Vec<Taken>) -> Result<(), Error> {
    let next = path.join("next");
    let mut took_next = false;
    loop {
        took_next |= match call(Call::TakeNext, || fs::remove_file(&next)) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(io_at("take", &next)(error)),
        };
        if remove_dir(path)? {
            break;
        }
    }
    taken.extend(fence.map(|fence| Taken { fence, took_next }));
    Ok(())
}

/// Whether it is gone; false if it has become a directory.
fn remove_file(path: &Path) -> Result<bool, Error> {
    match call(Call::RemoveTaken, || fs::remove_file(path)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => Ok(false),
        Err(error) => Err(io_at("remove", path)(error)),
    }
}

/// Whether it is gone; false if something came into it meanwhile.
fn remove_dir(path: &Path) -> Result<bool, Error> {
    match call(Call::RemoveTaken, || unlinkat(CWD, path, AtFlags::REMOVEDIR)).map_err(io::Error::from) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(false),
        Err(error) => Err(io_at("remove", path)(error)),
    }
}

fn list(folder: &Path) -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_at("list", folder)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(io_at("list", folder))?;
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}
