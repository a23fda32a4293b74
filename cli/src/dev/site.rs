//! The example site, carried in the binary, and its release archives.
//!
//! An archive of the same files has the same bytes on every machine: entries in a fixed order, without times, owners or
//! anything else of the machine that packed it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use holdfast_common::spec::hex;
use sha2::{Digest, Sha256};

/// One file of a site: its path below the site's folder, and its content.
type File = (&'static str, &'static [u8]);

const V1: &[File] = &[
    ("index.html", include_bytes!("../../../examples/site/v1/index.html")),
    ("style.css", include_bytes!("../../../examples/site/v1/style.css")),
];

const V2: &[File] = &[
    ("index.html", include_bytes!("../../../examples/site/v2/index.html")),
    ("knots.html", include_bytes!("../../../examples/site/v2/knots.html")),
    ("style.css", include_bytes!("../../../examples/site/v2/style.css")),
];

/// A version of the example site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V2,
}

impl Version {
    pub(super) const ALL: [Version; 2] = [Version::V1, Version::V2];

    /// What its index page and its deployments call it.
    pub(super) fn revision(self) -> &'static str {
        match self {
            Version::V1 => "v1",
            Version::V2 => "v2",
        }
    }

    fn files(self) -> &'static [File] {
        match self {
            Version::V1 => V1,
            Version::V2 => V2,
        }
    }

    /// The content of its index page.
    pub(super) fn index(self) -> &'static [u8] {
        match self {
            Version::V1 => V1[0].1,
            Version::V2 => V2[0].1,
        }
    }
}

/// A packed site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Archive {
    pub(super) path: PathBuf,
    /// Lower-case hex.
    pub(super) sha256: String,
}

/// Writes `site-REVISION.tar.gz` into the folder, in place of an older one.
pub(super) fn write(version: Version, folder: &Path) -> io::Result<Archive> {
    let bytes = pack(version.files())?;
    let path = folder.join(format!("site-{}.tar.gz", version.revision()));
    let new = path.with_extension("new");
    let mut file = fs::File::create(&new)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    fs::rename(&new, &path)?;
    Ok(Archive { path, sha256: hex(&Sha256::digest(&bytes)) })
}

fn pack(files: &[File]) -> io::Result<Vec<u8>> {
    let zipped = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::best());
    let mut tar = tar::Builder::new(zipped);
    for (name, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        tar.append_data(&mut header, name, *content)?;
    }
    tar.into_inner()?.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use super::*;

    fn unpacked(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
        let entries = archive.entries().expect("a tar");
        entries
            .map(|entry| {
                let mut entry = entry.expect("an entry");
                let name = entry.path().expect("a name").display().to_string();
                let mut content = Vec::new();
                entry.read_to_end(&mut content).expect("its content");
                (name, content)
            })
            .collect()
    }

    #[test]
    fn an_archive_holds_the_files_of_its_version() {
        for version in Version::ALL {
            let found = unpacked(&pack(version.files()).expect("in memory"));
            let expected: BTreeMap<_, _> =
                version.files().iter().map(|(name, content)| ((*name).to_owned(), content.to_vec())).collect();
            assert_eq!(found, expected);
            assert_eq!(found["index.html"], version.index());
            let index = String::from_utf8(version.index().to_vec()).expect("text");
            assert!(index.contains(&format!("Revision {}", version.revision())), "{index}");
        }
    }

    /// Digests of the tar inside are fixed here; the compressor's own version may change what is around it.
    #[test]
    fn packing_again_or_elsewhere_gives_the_same_bytes() {
        let digest = |version: Version| {
            let packed = pack(version.files()).expect("in memory");
            assert_eq!(packed, pack(version.files()).expect("in memory"));
            assert_eq!(packed[4..8], [0; 4], "the gzip header has no time");
            let mut tar = Vec::new();
            flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut tar).expect("gzip");
            hex(&Sha256::digest(&tar))
        };
        assert_eq!(digest(Version::V1), "7223d79c886434f036bdb9a0743492bd4bd75eec889f2a9637e22385bc8af3ce");
        assert_eq!(digest(Version::V2), "091801c579ba836b88fefc7e0d11af7d7176eecee655c9a861e3ea00ff51a184");
    }

    #[test]
    fn every_example_file_is_carried() {
        for version in Version::ALL {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/site").join(version.revision());
            let mut on_disk: Vec<_> = fs::read_dir(folder)
                .expect("the examples are beside the crate")
                .map(|entry| entry.expect("readable").file_name().into_string().expect("text"))
                .collect();
            on_disk.sort();
            let carried: Vec<_> = version.files().iter().map(|(name, _)| (*name).to_owned()).collect();
            assert_eq!(carried, on_disk, "sorted, and none left out");
        }
    }
}
