//! What the subjects share whose resource is a folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::Folder;

/// A folder like a disk: it is copied, taken away and put back as a whole.
pub(crate) struct FolderSubject {
    folder: Folder,
}

impl FolderSubject {
    pub(crate) fn new() -> Self {
        let subject = Self { folder: Folder::new() };
        std::fs::create_dir(subject.place()).unwrap();
        subject
    }

    /// The resource.
    pub(crate) fn place(&self) -> PathBuf {
        self.beside("disk")
    }

    /// What lies beside the resource.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.around().join(name)
    }

    /// The folder that holds both.
    pub(crate) fn around(&self) -> &Path {
        &self.folder.0
    }

    pub(crate) fn back_up(&self) {
        let copied = Command::new("cp").arg("-a").arg(self.place()).arg(self.beside("backup")).status();
        assert!(copied.unwrap().success());
    }

    pub(crate) fn restore(&self) {
        std::fs::remove_dir_all(self.place()).unwrap();
        std::fs::rename(self.beside("backup"), self.place()).unwrap();
    }

    pub(crate) fn down(&self) {
        std::fs::rename(self.place(), self.beside("unmounted")).unwrap();
    }

    pub(crate) fn up(&self) {
        std::fs::rename(self.beside("unmounted"), self.place()).unwrap();
    }

    /// An empty one in its place.
    pub(crate) fn replace(&self) {
        self.down();
        std::fs::create_dir(self.place()).unwrap();
    }
}
