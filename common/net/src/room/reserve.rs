//! Room that is put aside: a file of allocated blocks, and empty files for their inodes.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;

use super::{Reading, Wanted};

/// A folder beside the data. What an earlier process put aside there still stands.
///
/// A file system that compresses, copies on write, or lets others take more than there is may have promised the blocks and
/// still refuse them: there the free space beside the reserve is the better half of it.
#[derive(Debug)]
pub struct Reserve {
    folder: PathBuf,
    /// Open as long as this lives: giving room back needs neither descriptors nor inodes.
    blocks: Option<File>,
    bytes: u64,
    inodes: u64,
}

impl Reserve {
    /// In that folder, which is made when something is put aside.
    #[must_use]
    pub fn at(folder: PathBuf) -> Self {
        let mut reserve = Self { folder, blocks: None, bytes: 0, inodes: 0 };
        reserve.take_up();
        reserve
    }

    fn take_up(&mut self) {
        if let Ok(file) = OpenOptions::new().write(true).open(self.blocks_path()) {
            self.bytes = file.metadata().map(|metadata| metadata.len()).unwrap_or_default();
            self.blocks = Some(file);
        }
        while self.inode_path(self.inodes).exists() {
            self.inodes += 1;
        }
    }

    /// Puts aside what is missing. After an error all that could be had is held.
    pub fn hold(&mut self, wanted: Wanted) -> io::Result<()> {
        if self.stands(wanted) {
            return Ok(());
        }
        match fs::DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.hold_blocks(wanted.bytes)?;
        while self.inodes < wanted.inodes {
            new_file(&self.inode_path(self.inodes))?;
            self.inodes += 1;
        }
        Ok(())
    }

    fn hold_blocks(&mut self, bytes: u64) -> io::Result<()> {
        if self.bytes >= bytes {
            return Ok(());
        }
        let file = match self.blocks.take() {
            Some(file) => file,
            None => new_file(&self.blocks_path())?,
        };
        let result = match allocate(&file, bytes) {
            Ok(()) => {
                self.bytes = bytes;
                Ok(())
            }
            // Some of it may be there: all of it or nothing, so that the length tells the truth.
            Err(error) => {
                let _what_was_held_stays = file.set_len(self.bytes);
                Err(error)
            }
        };
        self.blocks = Some(file);
        result
    }

    /// Gives everything back to the disk.
    pub fn release(&mut self) {
        if let Some(file) = &self.blocks
            && file.set_len(0).is_ok()
        {
            self.bytes = 0;
        }
        for number in (0..self.inodes).rev() {
            if fs::remove_file(self.inode_path(number)).is_ok() {
                self.inodes = number;
            }
        }
    }

    /// Whether all of that is held.
    #[must_use]
    pub fn stands(&self, wanted: Wanted) -> bool {
        self.bytes >= wanted.bytes && self.inodes >= wanted.inodes
    }

    /// What is free beside it. The folder's parent must be there.
    pub fn read(&self, wanted: Wanted) -> io::Result<Reading> {
        let disk = statvfs(self.folder.parent().unwrap_or(Path::new("/")))?;
        Ok(Reading {
            free_bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
            free_inodes: (disk.f_files > 0).then_some(disk.f_favail),
            reserve_stands: self.stands(wanted),
        })
    }

    fn blocks_path(&self) -> PathBuf {
        self.folder.join("blocks")
    }

    fn inode_path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("inode-{number}"))
    }
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Gives a file so many bytes, with blocks behind them where the file system can do that.
pub fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => fill(file, bytes),
        result => result.map_err(io::Error::from),
    }
}

/// Where the file system can't allocate ahead, written bytes are the next best.
fn fill(mut file: &File, bytes: u64) -> io::Result<()> {
    use std::io::{Seek, SeekFrom, Write};
    let mut at = file.seek(SeekFrom::End(0))?;
    let chunk = [1; 64 * 1024];
    while at < bytes {
        let length = usize::try_from(bytes - at).unwrap_or(chunk.len()).min(chunk.len());
        file.write_all(&chunk[..length])?;
        at += length as u64;
    }
    file.sync_data()
}
