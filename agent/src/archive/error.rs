//! Why an archive is refused.

use std::io;
use std::path::PathBuf;

use holdfast_common::text::one_line;

/// Why an archive was refused or could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be read.
    #[error("could not read the archive {}", path.display())]
    Read {
        /// Where it should be.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A directory, a device, a pipe.
    #[error("the archive {} is not a regular file", path.display())]
    NotAFile {
        /// Where it should be.
        path: PathBuf,
    },
    /// Too large before unpacking.
    #[error("the archive has {bytes} bytes, allowed are {limit}")]
    Packed {
        /// Its size.
        bytes: u64,
        /// Allowed size.
        limit: u64,
    },
    /// Not the archive that was asked for.
    #[error("the archive's SHA-256 is {found}, asked for was {wanted}")]
    Digest {
        /// As asked for.
        wanted: String,
        /// As found.
        found: String,
    },
    /// An entry breaks a rule.
    #[error("entry {} ({}): {why}", index, one_line(name))]
    Entry {
        /// Counts entries from 1.
        index: usize,
        /// Its raw name, as far as it is text.
        name: String,
        /// The rule.
        why: Why,
    },
    /// The archive as a whole breaks a rule.
    #[error("the archive is not valid: {0}")]
    Whole(Why),
    /// It could not be unpacked.
    #[error("could not unpack {}", one_line(name))]
    Unpack {
        /// The entry.
        name: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// Whether the archive itself is at fault: then another try would find the same.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        match self {
            Error::NotAFile { .. }
            | Error::Packed { .. }
            | Error::Digest { .. }
            | Error::Entry { .. }
            | Error::Whole(_) => true,
            Error::Read { .. } | Error::Unpack { .. } => false,
        }
    }
}

/// A rule that an archive broke.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// A path that starts at the root of the file system.
    #[error("an absolute path")]
    Absolute,
    /// A path with `..`.
    #[error("a path with \"..\"")]
    Parent,
    /// A path with an empty or `.` component.
    #[error("a path with an empty component")]
    EmptyName,
    /// Not UTF-8.
    #[error("a name that is not UTF-8")]
    NotText,
    /// NUL, line feed, escape and the like.
    #[error("a name with a control character")]
    ControlCharacter,
    /// A component too long.
    #[error("a name of more than {limit} bytes")]
    NameLength {
        /// Allowed bytes.
        limit: usize,
    },
    /// A path too long.
    #[error("a path of more than {limit} bytes")]
    PathLength {
        /// Allowed bytes.
        limit: usize,
    },
    /// Too deep.
    #[error("a path of more than {limit} components")]
    Depth {
        /// Allowed components.
        limit: usize,
    },
    /// Neither a regular file nor a directory.
    #[error("it is {0}; only regular files and directories are accepted")]
    NotPlain(&'static str),
    /// Set-user-id, set-group-id or sticky.
    #[error("a mode with a setuid, setgid or sticky bit: {mode:o}")]
    SpecialMode {
        /// The mode.
        mode: u32,
    },
    /// The same name came before.
    #[error("its name came before")]
    Twice,
    /// The same name as a file and as a directory.
    #[error("its name is used for a file and for a directory")]
    FileAndDirectory,
    /// A directory or link with content.
    #[error("a directory with content")]
    DirectoryWithContent,
    /// One file too large.
    #[error("a file of {bytes} bytes, allowed are {limit}")]
    FileBytes {
        /// Its size.
        bytes: u64,
        /// Allowed size.
        limit: u64,
    },
    /// Too many entries.
    #[error("more than {limit} entries")]
    Entries {
        /// Allowed entries.
        limit: usize,
    },
    /// Too much unpacked, or too much for its packed size.
    #[error("more than {limit} bytes unpacked")]
    TotalBytes {
        /// Allowed bytes.
        limit: u64,
    },
    /// A header that does not fit its own checksum or format.
    #[error("a header that is not valid: {0}")]
    Header(&'static str),
    /// An extended header that says something this version does not accept.
    #[error("an extended header with {0:?}")]
    Extended(String),
    /// An extended header's size is not the header's.
    #[error("an extended header that gives another size than the header")]
    SizeMismatch,
    /// It ends in the middle, or goes on after its end.
    #[error("{0}")]
    Framing(&'static str),
    /// By its first bytes none of the formats.
    #[error("it is neither a tar file nor one packed by gzip or zstd")]
    Format,
    /// Its compression is damaged, or asks for more memory than is allowed.
    #[error("it can't be decompressed: {0}")]
    Packing(String),
    /// Two readers see two archives.
    #[error("two readers understand it differently: {0}")]
    Disagreement(String),
}
