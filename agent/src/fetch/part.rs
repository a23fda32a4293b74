//! An archive on its way: a file that grows, and becomes whole only with the right digest.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use holdfast_common::spec::hex;
use sha2::{Digest, Sha256};

use super::Trouble;
use crate::durable;

/// A part that nobody has continued for so long is given up.
const ABANDONED: Duration = Duration::from_secs(24 * 3600);

pub(super) struct Part {
    path: PathBuf,
    whole: PathBuf,
    sha256: String,
    /// Held by a kernel lock: one fetch of an archive at a time.
    file: File,
    length: u64,
    max_bytes: u64,
}

impl Part {
    /// Waits until nobody else fetches it. `None`: somebody has brought it meanwhile.
    pub(super) fn open(folder: &Path, sha256: &str, max_bytes: u64) -> io::Result<Option<Self>> {
        let (path, whole) = (folder.join(format!("{sha256}.part")), folder.join(sha256));
        loop {
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(&path)?;
            file.lock()?;
            if whole.exists() {
                return Ok(None);
            }
            // Whoever had the lock may have given the file away: then this one is not it.
            let about = file.metadata()?;
            if fs::metadata(&path).is_ok_and(|now| now.ino() == about.ino()) {
                let sha256 = sha256.to_owned();
                return Ok(Some(Self { path, whole, sha256, file, length: about.len(), max_bytes }));
            }
        }
    }

    /// Bytes that are there.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// The whole will have so many bytes, as its source says.
    pub(super) fn expect(&self, size: u64) -> Result<(), Trouble> {
        if size > self.max_bytes {
            return Err(Trouble::Final(format!("it has {size} bytes, allowed are {}", self.max_bytes)));
        }
        Ok(())
    }

    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        let length = self.length + bytes.len() as u64;
        self.expect(length)?;
        self.file.seek(SeekFrom::Start(self.length))?;
        self.file.write_all(bytes)?;
        self.length = length;
        Ok(())
    }

    /// From the start again: the source can't go on in the middle.
    pub(super) fn restart(&mut self) -> Result<(), Trouble> {
        self.file.set_len(0)?;
        self.length = 0;
        Ok(())
    }

    /// Compares the digest and makes it whole, durably. Another content is thrown away.
    pub(super) fn finish(mut self) -> Result<(), Trouble> {
        self.file.set_len(self.length)?;
        self.file.seek(SeekFrom::Start(0))?;
        let mut digest = Sha256::new();
        io::copy(&mut self.file, &mut digest)?;
        let found = hex(&digest.finalize());
        if found != self.sha256 {
            fs::remove_file(&self.path)?;
            return Err(Trouble::Final(format!("its SHA-256 is {found}, asked for was {}", self.sha256)));
        }
        self.file.sync_all()?;
        fs::rename(&self.path, &self.whole)?;
        Ok(self.whole.parent().map_or(Ok(()), durable::sync_dir)?)
    }
}

/// Removes the oldest archives until the rest has at most `bound` bytes, and parts that were given up.
pub(super) fn evict(folder: &Path, bound: u64) -> io::Result<()> {
    let now = SystemTime::now();
    let mut whole = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, about) = (entry.path(), entry.metadata()?);
        let used = about.modified()?;
        if path.extension().is_none() {
            whole.push((used, about.len(), path));
        } else if now.duration_since(used).unwrap_or_default() > ABANDONED {
            fs::remove_file(path)?;
        }
    }
    whole.sort();
    let mut used: u64 = whole.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, path) in whole {
        if used <= bound {
            break;
        }
        fs::remove_file(path)?;
        used = used.saturating_sub(bytes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new() -> Self {
            let path = std::env::temp_dir().join(format!("holdfast-fetch-{}", uuid::Uuid::new_v4()));
            fs::create_dir(&path).expect("made");
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn digest(bytes: &[u8]) -> String {
        hex(&Sha256::digest(bytes))
    }

    fn open(folder: &Folder, bytes: &[u8]) -> Part {
        Part::open(&folder.0, &digest(bytes), 100).expect("opens").expect("not there yet")
    }

    #[test]
    fn a_part_goes_on_and_becomes_whole_only_with_its_digest() {
        let folder = Folder::new();
        let mut part = open(&folder, b"abcdef");
        part.push(b"abc").expect("room");
        drop(part);
        let mut part = open(&folder, b"abcdef");
        assert_eq!(part.length(), 3);
        part.push(b"dex").expect("room");
        assert!(matches!(part.finish(), Err(Trouble::Final(why)) if why.contains(&digest(b"abcdex"))));
        let mut part = open(&folder, b"abcdef");
        assert_eq!(part.length(), 0, "another content is thrown away");
        part.push(b"abcdef").expect("room");
        part.finish().expect("the right one");
        assert!(Part::open(&folder.0, &digest(b"abcdef"), 100).expect("opens").is_none());
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_fills_the_disk() {
        let folder = Folder::new();
        let mut part = open(&folder, b"");
        assert!(matches!(part.push(&[0; 101]), Err(Trouble::Final(_))));
        assert!(matches!(part.expect(101), Err(Trouble::Final(_))));
        assert_eq!(part.length(), 0);
    }

    #[test]
    fn the_oldest_go_when_there_is_too_much() {
        let folder = Folder::new();
        for (age, name) in [(30, "a"), (20, "b"), (10, "c")] {
            let file = File::create(folder.0.join(name)).expect("made");
            (&file).write_all(b"12345").expect("written");
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).expect("older");
        }
        evict(&folder.0, 11).expect("evicted");
        assert!(!folder.0.join("a").exists() && folder.0.join("b").exists() && folder.0.join("c").exists());
    }
}
