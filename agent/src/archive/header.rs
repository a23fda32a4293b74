//! One 512-byte tar header, and the extended ones that go before it.

use super::error::Why;

pub(super) const BLOCK: usize = 512;

pub(super) struct Header<'a>(&'a [u8; BLOCK]);

/// What a header announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Announced {
    File,
    Directory,
    /// A GNU long name for the next entry.
    LongName,
    /// Extended fields for the next entry.
    Extended,
    /// Extended fields for all that follows.
    Global,
}

impl<'a> Header<'a> {
    /// Checks the checksum and the format.
    pub(super) fn read(block: &'a [u8; BLOCK]) -> Result<Self, Why> {
        let header = Self(block);
        let magic = &block[257..265];
        if magic != b"ustar\x0000" && magic != b"ustar  \0" {
            return Err(Why::Header("neither POSIX nor GNU format"));
        }
        let sum: u64 = block
            .iter()
            .enumerate()
            .map(|(at, byte)| if (148..156).contains(&at) { 32 } else { u64::from(*byte) })
            .sum();
        if octal(&block[148..156]) != Some(sum) {
            return Err(Why::Header("its checksum is wrong"));
        }
        Ok(header)
    }

    pub(super) fn announced(&self) -> Result<Announced, Why> {
        match self.0[156] {
            b'0' | 0 => Ok(Announced::File),
            b'5' => Ok(Announced::Directory),
            b'L' => Ok(Announced::LongName),
            b'x' => Ok(Announced::Extended),
            b'g' => Ok(Announced::Global),
            b'1' => Err(Why::NotPlain("a hard link")),
            b'2' => Err(Why::NotPlain("a symbolic link")),
            b'3' => Err(Why::NotPlain("a character device")),
            b'4' => Err(Why::NotPlain("a block device")),
            b'6' => Err(Why::NotPlain("a named pipe")),
            b'7' => Err(Why::NotPlain("a contiguous file")),
            b'S' => Err(Why::NotPlain("a sparse file")),
            b'K' => Err(Why::NotPlain("a link with a long name")),
            _ => Err(Why::NotPlain("of an unknown kind")),
        }
    }

    /// The name, with the POSIX prefix where there is one.
    pub(super) fn name(&self) -> Vec<u8> {
        let name = until_nul(&self.0[..100]);
        let prefix = if &self.0[257..265] == b"ustar\x0000" { until_nul(&self.0[345..500]) } else { &[] };
        if prefix.is_empty() { name.to_vec() } else { [prefix, b"/", name].concat() }
    }

    pub(super) fn size(&self) -> Result<u64, Why> {
        octal(&self.0[124..136]).ok_or(Why::Header("its size is not an octal number"))
    }

    pub(super) fn mode(&self) -> Result<u32, Why> {
        octal(&self.0[100..108])
            .and_then(|mode| u32::try_from(mode).ok())
            .ok_or(Why::Header("its mode is not an octal number"))
    }
}

fn until_nul(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    &field[..end]
}

/// Octal digits with spaces before and spaces or NULs behind. Binary sizes (GNU base 256) are no octal numbers: no
/// archive within the limits needs them.
fn octal(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?.trim_start_matches(' ').trim_end_matches([' ', '\0']);
    if text.is_empty() || !text.bytes().all(|byte| (b'0'..=b'7').contains(&byte)) {
        return None;
    }
    u64::from_str_radix(text, 8).ok()
}

/// What extended fields say that matters here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Extended {
    pub(super) path: Option<Vec<u8>>,
    pub(super) size: Option<u64>,
}

impl Extended {
    /// Reads `LENGTH KEY=VALUE\n` records. A key that could change what is unpacked is refused unless it is understood.
    pub(super) fn read(mut bytes: &[u8]) -> Result<Self, Why> {
        const DAMAGED: Why = Why::Header("its extended fields are damaged");
        let mut fields = Self::default();
        while !bytes.is_empty() {
            let space = bytes.iter().position(|byte| *byte == b' ').ok_or(DAMAGED)?;
            let digits = &bytes[..space];
            if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                return Err(DAMAGED);
            }
            let length: usize = std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).ok_or(DAMAGED)?;
            if length <= space + 1 || length > bytes.len() || bytes[length - 1] != b'\n' {
                return Err(DAMAGED);
            }
            let record = &bytes[space + 1..length - 1];
            let equals = record.iter().position(|byte| *byte == b'=').ok_or(DAMAGED)?;
            let key = std::str::from_utf8(&record[..equals]).map_err(|_| DAMAGED)?;
            fields.take(key, &record[equals + 1..])?;
            bytes = &bytes[length..];
        }
        Ok(fields)
    }

    fn take(&mut self, key: &str, value: &[u8]) -> Result<(), Why> {
        match key {
            "path" if self.path.is_none() => self.path = Some(value.to_vec()),
            "size" if self.size.is_none() => {
                let text =
                    std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                self.size = Some(text.and_then(|text| text.parse().ok()).ok_or(Why::SizeMismatch)?);
            }
            "mtime" | "atime" | "ctime" | "comment" | "uid" | "gid" | "uname" | "gname" => {}
            other if other.starts_with("LIBARCHIVE.") || other.starts_with("SCHILY.") => {}
            other => return Err(Why::Extended(other.to_owned())),
        }
        Ok(())
    }

    /// A global header may hold remarks (as `git archive` writes them), nothing that changes entries.
    pub(super) fn only_remarks(bytes: &[u8]) -> Result<(), Why> {
        let fields = Self::read(bytes)?;
        if fields == Self::default() { Ok(()) } else { Err(Why::Extended("path or size for all entries".to_owned())) }
    }
}
