//! Slots and tombstones.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use holdfast_common::fence::{Epoch, Fence};
use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use uuid::Uuid;

use super::calls::{Call, call};
use super::error::{Error, io_at};
use super::root::Root;
use super::take;
use crate::durable;

/// Most tombstones that one raise makes. A fence beyond is a mistake, and would fill the disk.
const FARTHEST: u64 = 1 << 20;

/// How far fences are refused.
#[derive(Clone, Copy)]
pub(super) enum Upto {
    /// Every fence below this one: its own attempt begins.
    Below(Fence),
    /// This one too: nobody acts under it.
    Including(Fence),
}

impl Upto {
    fn fence(self) -> Fence {
        match self {
            Upto::Below(fence) | Upto::Including(fence) => fence,
        }
    }

    /// The last counter that gets a tombstone; 0 for none.
    fn last(self) -> u64 {
        match self {
            Upto::Below(fence) => fence.counter() - 1,
            Upto::Including(fence) => fence.counter(),
        }
    }
}

/// Makes the kernel refuse every attempt up to there, durably. What it exchanged is taken, and named in the answer.
pub(super) fn fence_off(root: &Root, upto: Upto) -> Result<Vec<take::Taken>, Error> {
    let epoch = upto.fence().epoch();
    let floor = read_floor(root)?;
    let (buried_below, stands) = match floor {
        Some(floor) if floor.epoch() > epoch => (epoch.0, upto.last()),
        Some(floor) if floor.epoch() == epoch => (epoch.0, floor.counter()),
        Some(floor) => (floor.epoch().0, 0),
        None => (1, 0),
    };
    let steps = u64::from(epoch.0 - buried_below).saturating_add(upto.last().saturating_sub(stands));
    if steps > FARTHEST {
        return Err(Error::TooFar { fence: upto.fence(), limit: FARTHEST });
    }
    let mut exchanged = Vec::new();
    for older in buried_below..epoch.0 {
        let older = Epoch(older);
        exchanged.extend(bury(root, &root.epoch(older), &take::Label { epoch: older, counter: None })?);
    }
    make_epoch(root, epoch)?;
    for counter in stands + 1..=upto.last() {
        let path = root.epoch(epoch).join(counter.to_string());
        exchanged.extend(bury(root, &path, &take::Label { epoch, counter: Some(counter) })?);
    }
    sync_slots(root, epoch)?;
    let taken = take::sweep(root, &exchanged)?;
    root.sync()?;
    write_floor(root, epoch, upto.last(), floor)?;
    Ok(taken)
}

/// Makes the attempt's slot and `next` in it, each by one call on a full path.
pub(super) fn open(root: &Root, fence: Fence, target: &Path) -> Result<(), Error> {
    let slot = root.slot(fence);
    call(Call::MakeSlot, || fs::create_dir(&slot)).map_err(|error| refused(fence, "make", &slot, error))?;
    let next = root.next(fence);
    call(Call::MakeNext, || std::os::unix::fs::symlink(target, &next))
        .map_err(|error| refused(fence, "make", &next, error))
}

/// The flip.
pub(super) fn flip(root: &Root, fence: Fence) -> Result<(), Error> {
    let next = root.next(fence);
    call(Call::Flip, || fs::rename(&next, root.current())).map_err(|error| refused(fence, "rename", &next, error))
}

/// Whether a tombstone stands for that fence, its own or its epoch's.
pub(super) fn is_fenced_off(root: &Root, fence: Fence) -> Result<bool, Error> {
    for path in [root.slot(fence), root.epoch(fence.epoch())] {
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_file() => return Ok(true),
            Ok(_) => {}
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(io_at("look at", &path)(error)),
        }
    }
    Ok(false)
}

/// The highest fence that has a slot or a tombstone. A buried epoch counts only through the floor and later epochs.
pub(super) fn highest(root: &Root) -> Result<Option<Fence>, Error> {
    let mut highest = read_floor(root)?;
    let epochs = numbers(&root.slots())?;
    for epoch in epochs.into_iter().filter_map(|epoch| u32::try_from(epoch).ok()).map(Epoch) {
        let path = root.epoch(epoch);
        if fs::symlink_metadata(&path).map_err(io_at("look at", &path))?.is_dir() {
            let counter = numbers(&path)?.into_iter().max();
            highest = highest.max(counter.and_then(|counter| fence_of(epoch, counter)));
        }
    }
    Ok(highest)
}

pub(super) fn fence_of(epoch: Epoch, counter: u64) -> Option<Fence> {
    let first = Fence::first(epoch)?.as_u64();
    Fence::from_u64(first.checked_add(counter.checked_sub(1)?)?).filter(|fence| fence.epoch() == epoch)
}

/// Every fence up to it has its tombstone. It may lag behind, it never leads.
pub(super) fn read_floor(root: &Root) -> Result<Option<Fence>, Error> {
    let path = root.floor();
    let Some(bytes) = durable::read(&path).map_err(io_at("read", &path))? else { return Ok(None) };
    let number = std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok());
    number.and_then(Fence::from_u64).map(Some).ok_or(Error::Damaged { path })
}

fn write_floor(root: &Root, epoch: Epoch, last: u64, known: Option<Fence>) -> Result<(), Error> {
    match fence_of(epoch, last) {
        Some(floor) if known.is_none_or(|known| known < floor) => {
            let path = root.floor();
            let text = format!("{}\n", floor.as_u64());
            call(Call::WriteFloor, || durable::replace(&path, text.as_bytes())).map_err(io_at("write", &path))
        }
        Some(_) | None => Ok(()),
    }
}

fn make_epoch(root: &Root, epoch: Epoch) -> Result<(), Error> {
    let path = root.epoch(epoch);
    if fs::symlink_metadata(&path).is_ok() {
        return Ok(());
    }
    match call(Call::MakeEpoch, || fs::create_dir(&path)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(io_at("make", &path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Puts a tombstone there, until it stands. Names what it exchanged for it, if it was a slot.
fn bury(root: &Root, path: &Path, label: &take::Label) -> Result<Option<take::Label>, Error> {
    loop {
        match call(Call::Bury, || tombstone(path)) {
            Ok(()) => return Ok(None),
            // A higher raise has buried the whole epoch.
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io_at("make", path)(error)),
        }
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_file() => return Ok(None),
            Ok(_) => {}
            Err(error) if is_absent(&error) => continue,
            Err(error) => return Err(io_at("look at", path)(error)),
        }
        let beside = root.taken().join(label.fresh_name());
        call(Call::Stage, || tombstone(&beside)).map_err(io_at("make", &beside))?;
        match call(Call::Exchange, || renameat_with(CWD, &beside, CWD, path, RenameFlags::EXCHANGE)) {
            Ok(()) => return Ok(Some(label.clone())),
            // Another raiser swept our tombstone away, or buried the epoch: look again.
            Err(error) if is_absent(&error.into()) => {}
            Err(error) => return Err(io_at("exchange", path)(error.into())),
        }
    }
}

fn tombstone(path: &Path) -> io::Result<()> {
    let nofollow = i32::try_from(OFlags::NOFOLLOW.bits()).expect("a flag");
    OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(nofollow).open(path).map(drop)
}

fn sync_slots(root: &Root, epoch: Epoch) -> Result<(), Error> {
    for folder in [root.epoch(epoch), root.slots(), root.taken()] {
        match call(Call::SyncSlots, || File::open(&folder).and_then(|folder| folder.sync_all())) {
            Ok(()) => {}
            Err(error) => return Err(io_at("sync", &folder)(error)),
        }
    }
    Ok(())
}

fn numbers(folder: &Path) -> Result<Vec<u64>, Error> {
    let failed = || io_at("list", folder);
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        numbers.extend(entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok()));
    }
    Ok(numbers)
}

/// A name on the way that is not there, or is a plain file.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The kernel's refusal of an attempt whose slot was exchanged or buried.
fn refused(fence: Fence, doing: &'static str, path: &Path, error: io::Error) -> Error {
    let kinds = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory, io::ErrorKind::AlreadyExists];
    if kinds.contains(&error.kind()) { Error::FencedOff { fence } } else { io_at(doing, path)(error) }
}

/// A name that no other raiser makes.
pub(super) fn nonce() -> String {
    Uuid::new_v4().simple().to_string()
}
