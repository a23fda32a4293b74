//! How much an archive may hold.

/// Bounds on one archive. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The archive itself.
    pub packed_bytes: u64,
    /// Entries, directories included.
    pub entries: usize,
    /// Everything unpacked: contents, headers and padding.
    pub total_bytes: u64,
    /// One file.
    pub file_bytes: u64,
    /// Unpacked to packed, above [`Limits::FREE_BYTES`].
    pub ratio: u64,
    /// Components of one path.
    pub depth: usize,
    /// One component of a path.
    pub name_bytes: usize,
    /// One whole path.
    pub path_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            packed_bytes: 4 << 30,
            entries: 100_000,
            total_bytes: 8 << 30,
            file_bytes: 4 << 30,
            ratio: 200,
            depth: 32,
            name_bytes: 255,
            path_bytes: 1024,
        }
    }
}

impl Limits {
    /// So much may be unpacked whatever the ratio: small archives of regular text pack very well.
    pub const FREE_BYTES: u64 = 16 << 20;

    /// With the ratio turned into bytes for an archive of that size.
    pub(super) fn for_packed(self, packed: u64) -> Self {
        let by_ratio = packed.saturating_mul(self.ratio).max(Self::FREE_BYTES);
        Self { total_bytes: self.total_bytes.min(by_ratio), ..self }
    }
}
