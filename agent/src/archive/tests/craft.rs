//! Archives made byte by byte.

use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::super::header::BLOCK;

/// A temporary folder that goes away.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("holdfast-archive-{}", uuid::Uuid::new_v4().simple()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) struct Raw<'a> {
    pub(super) name: &'a [u8],
    pub(super) kind: u8,
    pub(super) mode: &'a [u8],
    pub(super) size: Option<u64>,
    pub(super) content: &'a [u8],
    pub(super) link: &'a [u8],
    pub(super) gnu: bool,
}

pub(super) const FILE: Raw<'static> =
    Raw { name: b"a", kind: b'0', mode: b"0000644\0", size: None, content: b"", link: b"", gnu: false };

impl Raw<'_> {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut block = [0u8; BLOCK];
        block[..self.name.len()].copy_from_slice(self.name);
        block[100..100 + self.mode.len()].copy_from_slice(self.mode);
        let size = self.size.unwrap_or(self.content.len() as u64);
        block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        block[136..147].copy_from_slice(b"00000000000");
        block[156] = self.kind;
        block[157..157 + self.link.len()].copy_from_slice(self.link);
        block[257..265].copy_from_slice(if self.gnu { b"ustar  \0" } else { b"ustar\x0000" });
        block[148..156].copy_from_slice(b"        ");
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        let mut bytes = block.to_vec();
        bytes.extend_from_slice(self.content);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes
    }
}

pub(super) fn file(name: &str) -> Vec<u8> {
    Raw { name: name.as_bytes(), content: b"hello", ..FILE }.bytes()
}

pub(super) fn dir(name: &str) -> Vec<u8> {
    Raw { name: name.as_bytes(), kind: b'5', mode: b"0000755\0", ..FILE }.bytes()
}

pub(super) fn of_kind(kind: u8) -> Vec<u8> {
    Raw { name: b"odd", kind, link: b"../../etc/passwd", ..FILE }.bytes()
}

pub(super) fn extended(kind: u8, records: &[&str]) -> Vec<u8> {
    let text: String = records
        .iter()
        .map(|record| {
            let bare = record.len() + 2;
            let length = bare + (bare + bare.to_string().len()).to_string().len();
            format!("{length} {record}\n")
        })
        .collect();
    Raw { name: b"pax", kind, content: text.as_bytes(), ..FILE }.bytes()
}

pub(super) fn tar(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = parts.concat();
    bytes.extend_from_slice(&[0; 2 * BLOCK]);
    bytes
}

pub(super) fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zst(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 3).unwrap()
}

/// Each way to pack a tar file, by name.
pub(super) const PACKERS: [(&str, fn(&[u8]) -> Vec<u8>); 3] =
    [("gzip", gz), ("zstd", zst), ("plain", |bytes| bytes.to_vec())];
