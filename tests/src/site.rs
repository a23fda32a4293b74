//! Archives of a small site.

use std::fs;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use holdfast_common::spec::hex;
use sha2::{Digest, Sha256};

use crate::folder::Folder;

/// An archive on the host.
#[derive(Clone, Debug)]
pub struct Archive {
    /// Its file.
    pub path: PathBuf,
    /// Lower-case hex.
    pub sha256: String,
}

/// The text of a version's `index.html`.
#[must_use]
pub fn index(version: &str) -> String {
    format!("<h1>{version}</h1>\n")
}

/// An archive that holds `index.html` and one more file of that version.
#[must_use]
pub fn archive(folder: &Folder, version: &str) -> Archive {
    archive_with(folder, version, &[])
}

/// The same with one more file, `more`, of these bytes.
#[must_use]
pub fn archive_with(folder: &Folder, version: &str, more: &[u8]) -> Archive {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let (index, css) = (index(version), "h1 { color: teal }\n");
    let files = [("index.html", index.as_bytes()), ("css/site.css", css.as_bytes()), ("more", more)];
    for (name, content) in files.into_iter().filter(|(_, content)| !content.is_empty()) {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, content).expect("memory can be written");
    }
    let bytes = builder.into_inner().and_then(GzEncoder::finish).expect("memory can be written");
    let path = folder.join(&format!("site-{version}.tar.gz"));
    fs::write(&path, &bytes).expect("a test's own folder can be written");
    Archive { path, sha256: hex(&Sha256::digest(&bytes)) }
}
