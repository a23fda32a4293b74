//! A file system of its own, small enough to be filled.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FallocateFlags, fallocate};

/// Bytes of such a disk.
pub const BYTES: u64 = 12 * 1024 * 1024;
/// Inodes of such a disk.
pub const INODES: u64 = 400;
/// What services under test put aside: `HOLDFAST_DISK_RESERVE_BYTES`.
pub const RESERVE: &str = "1048576";

/// What is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Bytes.
    Blocks,
    /// Names of files.
    Inodes,
}

/// A mounted tmpfs. It goes with the test's folder that it is in: see [`crate::folder::Folder`].
#[derive(Debug)]
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Whether this process may mount one. Says so where it may not.
    #[must_use]
    #[expect(clippy::print_stderr, reason = "who reads the test's output must know that nothing was tested")]
    pub fn can_be_had(tests: usize) -> bool {
        let root = rustix::process::geteuid().is_root();
        if !root {
            eprintln!("SKIPPED: {tests} cases need root to mount a small disk");
        }
        root
    }

    /// Mounts it there. The folder is made if it is missing.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        fs::create_dir_all(path).expect("a test's own folder can be written");
        let options = format!("size={BYTES},nr_inodes={INODES},mode=0700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(path).status();
        assert!(mounted.expect("mount can be run").success(), "could not mount a small disk");
        Self { path: path.to_owned() }
    }

    /// Takes everything that is free now. What is given back later is free again.
    pub fn fill(&self, of: Of) {
        let folder = self.path.join("ballast");
        match (fs::create_dir(&folder), of) {
            (Ok(()), _) => {}
            (Err(error), _) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // Not one inode is left for the folder either.
            (Err(error), _) if error.kind() == io::ErrorKind::StorageFull => return,
            (Err(error), _) => panic!("could not fill a disk: {error}"),
        }
        match of {
            Of::Blocks => fill_blocks(&folder.join("blocks")),
            Of::Inodes => fill_inodes(&folder),
        }
    }

    /// Gives it all back.
    pub fn free(&self) {
        match fs::remove_dir_all(self.path.join("ballast")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => panic!("could not free a disk: {error}"),
            Ok(()) | Err(_) => {}
        }
    }
}

fn fill_blocks(path: &Path) {
    const BLOCK: u64 = 4096;
    let file = File::options().create(true).append(true).open(path);
    let Ok(file) = file else { return };
    let mut length = file.metadata().expect("it is open").len();
    let mut step = BYTES.next_power_of_two();
    while step >= BLOCK {
        match fallocate(&file, FallocateFlags::empty(), length, step) {
            Ok(()) => length += step,
            Err(_) => step /= 2,
        }
    }
}

fn fill_inodes(folder: &Path) {
    let taken = fs::read_dir(folder).map(Iterator::count).unwrap_or_default();
    for number in taken.. {
        match File::create_new(folder.join(format!("inode-{number}"))) {
            Ok(_) => {}
            // Somebody frees it meanwhile.
            Err(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::NotFound) => return,
            Err(error) => panic!("could not fill a disk: {error}"),
        }
    }
}
