//! The folder that an agent's identity is kept in.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

use holdfast_proto::v1::Certificate;
use rcgen::KeyPair;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::durable;

/// Identities that are kept beside the current one, for who wants to look.
const KEPT: usize = 2;

/// Why the folder can't be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Reading or writing failed.
    #[error("could not {doing} {}: {source}", path.display())]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A key that can't be made or read.
    #[error("could not use the key {}: {source}", path.display())]
    Key {
        /// Its file.
        path: PathBuf,
        /// What the library said.
        source: rcgen::Error,
    },
    /// A description that can't be read.
    #[error("could not read {}: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// What the folder says of the identity in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The agent's name.
    pub agent: String,
    /// SHA-256 of its certificate.
    pub fingerprint: String,
    /// Of the join token: what targets select the agent by.
    pub labels: BTreeMap<String, String>,
}

/// The folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder(PathBuf);

impl Folder {
    /// There, whether it is there or not.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// The folder itself.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The current certificate.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.current().join("agent.pem")
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        self.current().join("agent.key")
    }

    /// Whom the coordinator is trusted by.
    #[must_use]
    pub fn authorities(&self) -> PathBuf {
        self.current().join("ca.pem")
    }

    /// What is in it; `None` where no host has joined yet.
    pub fn read(&self) -> Result<Option<Kept>, Error> {
        let path = self.current().join("identity.json");
        let Some(bytes) = durable::read(&path).map_err(io_error("read", &path))? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|source| Error::Content { path, source })
    }

    /// Since when that identity is in it.
    pub(super) fn since(&self) -> Option<std::time::SystemTime> {
        fs::metadata(self.current().join("identity.json")).and_then(|metadata| metadata.modified()).ok()
    }

    /// The key that is asked with: the same one until an answer was heard.
    pub(super) fn asking_key(&self) -> Result<KeyPair, Error> {
        let folder = self.joining();
        make(&folder)?;
        let path = folder.join("agent.key");
        if let Some(bytes) = durable::read(&path).map_err(io_error("read", &path))? {
            let text = String::from_utf8_lossy(&bytes);
            return KeyPair::from_pem(&text).map_err(|source| Error::Key { path, source });
        }
        let key = KeyPair::generate().map_err(|source| Error::Key { path: path.clone(), source })?;
        durable::replace(&path, key.serialize_pem().as_bytes()).map_err(io_error("write", &path))?;
        Ok(key)
    }

    /// Writes all of it, then makes it the current one by one rename.
    pub(super) fn put(&self, certificate: &Certificate, labels: BTreeMap<String, String>) -> Result<(), Error> {
        let kept = Kept { agent: certificate.agent.clone(), fingerprint: certificate.fingerprint.clone(), labels };
        let folder = self.joining();
        let json = serde_json::to_vec_pretty(&kept).expect("plain data serializes");
        let chain = pem_of(&certificate.chain);
        let authorities = pem_of(&certificate.authorities);
        for (name, bytes) in
            [("agent.pem", chain.as_bytes()), ("ca.pem", authorities.as_bytes()), ("identity.json", &json)]
        {
            let path = folder.join(name);
            durable::replace(&path, bytes).map_err(io_error("write", &path))?;
        }
        let number = Uuid::now_v7().simple().to_string();
        let new = self.0.join(&number);
        fs::rename(&folder, &new).map_err(io_error("make current", &new))?;
        let link = self.0.join(".current");
        let _left_over = fs::remove_file(&link);
        symlink(&number, &link).map_err(io_error("make", &link))?;
        let current = self.current();
        fs::rename(&link, &current).map_err(io_error("make current", &current))?;
        durable::sync_dir(&self.0).map_err(io_error("write", &self.0))?;
        self.drop_older(&number);
        Ok(())
    }

    fn current(&self) -> PathBuf {
        self.0.join("current")
    }

    fn joining(&self) -> PathBuf {
        self.0.join("joining")
    }

    fn drop_older(&self, newest: &str) {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut older: Vec<_> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.len() == newest.len() && name.as_str() < newest)
            .collect();
        older.sort();
        let drop = older.len().saturating_sub(KEPT);
        for name in older.into_iter().take(drop) {
            let _next_time = fs::remove_dir_all(self.0.join(name));
        }
    }
}

fn make(folder: &Path) -> Result<(), Error> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(io_error("make", folder))
}

fn pem_of(certificates: &[Vec<u8>]) -> String {
    let block = |der: &Vec<u8>| pem::encode(&pem::Pem::new("CERTIFICATE", der.clone()));
    certificates.iter().map(block).collect()
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { doing, path, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn folder() -> Folder {
        Folder(std::env::temp_dir().join(format!("holdfast-identity-{}", Uuid::new_v4())))
    }

    fn certificate(fingerprint: &str) -> Certificate {
        Certificate {
            agent: "web-01".to_owned(),
            chain: vec![vec![1]],
            authorities: vec![vec![2], vec![3]],
            fingerprint: fingerprint.to_owned(),
            ..Certificate::default()
        }
    }

    #[test]
    fn the_key_stays_the_same_until_an_answer_is_kept_and_is_its_owners_alone() {
        let folder = folder();
        assert!(folder.read().expect("no folder is no error").is_none());
        let key = folder.asking_key().expect("made").serialize_pem();
        assert_eq!(folder.asking_key().expect("read").serialize_pem(), key);
        folder.put(&certificate("a"), BTreeMap::new()).expect("written");
        assert_eq!(fs::read_to_string(folder.key()).expect("there"), key);
        assert_eq!(fs::metadata(folder.key()).expect("there").permissions().mode() & 0o7777, 0o600);
        assert_eq!(fs::metadata(folder.path()).expect("there").permissions().mode() & 0o7777, 0o700);
        assert_ne!(folder.asking_key().expect("made").serialize_pem(), key, "the next one has a key of its own");
        assert_eq!(fs::read_to_string(folder.authorities()).expect("there").matches("BEGIN").count(), 2);
        fs::remove_dir_all(folder.path()).expect("removed");
    }

    #[test]
    fn the_newest_is_current_and_a_few_older_ones_stay() {
        let folder = folder();
        for number in 0..5 {
            folder.asking_key().expect("made");
            folder.put(&certificate(&number.to_string()), BTreeMap::new()).expect("written");
            assert_eq!(folder.read().expect("sound").expect("there").fingerprint, number.to_string());
        }
        let entries = fs::read_dir(folder.path()).expect("there").count();
        assert_eq!(entries, 1 + 1 + KEPT, "current, its link, and older ones");
        fs::remove_dir_all(folder.path()).expect("removed");
    }
}
