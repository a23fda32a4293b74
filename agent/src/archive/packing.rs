//! What an archive is packed with: told by its first bytes, never by its name.

use std::io::{self, BufRead, Read};

use flate2::bufread::GzDecoder;

use super::error::Why;
use super::header::BLOCK;

/// Largest window of a zstd frame, as a power of two: what every zstd tool takes without being asked, 128 MiB. A frame that
/// wants more memory is refused.
const WINDOW_LOG: u32 = 27;

/// How the tar file inside is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

impl Packing {
    /// By the first block of the file, which may be shorter.
    pub(super) fn of(start: &[u8]) -> Result<Self, Why> {
        match start {
            [0x1f, 0x8b, ..] => Ok(Packing::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Ok(Packing::Zstd),
            block if block.len() == BLOCK && block[257..].starts_with(b"ustar") => Ok(Packing::Plain),
            _ => Err(Why::Format),
        }
    }

    /// The tar file inside `packed`.
    pub(super) fn open<R: BufRead>(self, packed: R) -> io::Result<Unpacked<R>> {
        Ok(match self {
            Packing::Plain => Unpacked::Plain(packed),
            Packing::Gzip => Unpacked::Gzip(GzDecoder::new(packed)),
            Packing::Zstd => {
                // One frame, as one member of gzip: what follows it is seen as something that follows.
                let mut decoder = zstd::stream::read::Decoder::with_buffer(packed)?.single_frame();
                decoder.window_log_max(WINDOW_LOG)?;
                Unpacked::Zstd(decoder)
            }
        })
    }
}

/// Reads the tar file, in bounded memory.
pub(super) enum Unpacked<R: BufRead> {
    Plain(R),
    Gzip(GzDecoder<R>),
    Zstd(zstd::stream::read::Decoder<'static, R>),
}

impl<R: BufRead> Unpacked<R> {
    /// Whether packed bytes follow the end of the tar file.
    pub(super) fn is_followed(&mut self) -> io::Result<bool> {
        let packed = match self {
            Unpacked::Plain(packed) => packed,
            Unpacked::Gzip(decoder) => decoder.get_mut(),
            Unpacked::Zstd(decoder) => decoder.get_mut(),
        };
        packed.fill_buf().map(|rest| !rest.is_empty())
    }
}

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Unpacked::Plain(packed) => packed.read(buffer),
            Unpacked::Gzip(decoder) => decoder.read(buffer),
            Unpacked::Zstd(decoder) => decoder.read(buffer),
        }
    }
}
