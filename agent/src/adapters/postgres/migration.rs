//! One migration file: its name, its first line and its content.
//!
//! `0042_add_email.sql` begins with `-- holdfast: data=expand`, and `transaction=none` behind that where its one statement can't
//! run in a transaction.

use holdfast_common::id::Revision;
use holdfast_common::rollback::DataEffect;
use holdfast_common::spec::hex;
use sha2::{Digest, Sha256};

use super::version::Version;

const MARK: &str = "-- holdfast:";

/// A file, whole.
#[derive(Clone, Debug)]
pub(super) struct Migration {
    pub(super) version: Version,
    /// The file's name.
    pub(super) name: String,
    pub(super) sql: String,
    /// SHA-256, lower-case hex.
    pub(super) checksum: String,
    /// What its first line says, or why that can't be used. Asked only of a file that is to run.
    pub(super) header: Result<Header, String>,
}

/// What a file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) data: DataEffect,
    pub(super) in_transaction: bool,
}

impl Migration {
    /// From a file's name and bytes.
    pub(super) fn of(version: Version, name: &str, bytes: Vec<u8>) -> Result<Self, String> {
        let checksum = hex(&Sha256::digest(&bytes));
        let sql = String::from_utf8(bytes).map_err(|_| format!("{name} is not UTF-8"))?;
        if sql.contains('\0') {
            return Err(format!("{name} has a NUL byte"));
        }
        let header = header(&sql).map_err(|why| format!("{name} {why}"));
        Ok(Self { version, name: name.to_owned(), sql, checksum, header })
    }
}

/// The version in a file's name: what is before its first `_`.
pub(super) fn version(name: &str) -> Result<Version, String> {
    let wrong = || format!("{name} is no migration's name: write it like 0042_add_email.sql");
    let (version, rest) = name.split_once('_').ok_or_else(wrong)?;
    if rest == ".sql" || name.chars().any(char::is_control) {
        return Err(wrong());
    }
    Revision::new(version).map_err(|_| wrong())?;
    Ok(Version::of(version))
}

fn header(sql: &str) -> Result<Header, String> {
    let first = sql.lines().next().unwrap_or_default();
    let Some(words) = first.strip_prefix(MARK) else {
        return Err(format!("does not begin with \"{MARK} data=none|expand|contract|destructive\""));
    };
    let (mut data, mut in_transaction) = (None, true);
    for word in words.split_ascii_whitespace() {
        match word.split_once('=') {
            Some(("data", text)) if data.is_none() => data = Some(data_effect(text)?),
            Some(("transaction", "none")) if in_transaction => in_transaction = false,
            _ => return Err(format!("has a first line with {word:?} in it, which says nothing or says it again")),
        }
    }
    let data = data.ok_or_else(|| "does not say in its first line what it does to data".to_owned())?;
    Ok(Header { data, in_transaction })
}

fn data_effect(text: &str) -> Result<DataEffect, String> {
    match text {
        "none" => Ok(DataEffect::None),
        "expand" => Ok(DataEffect::Expand),
        "contract" => Ok(DataEffect::Contract),
        "destructive" => Ok(DataEffect::Destructive),
        _ => Err(format!("has a first line with data={text}, which is none of none, expand, contract and destructive")),
    }
}

/// As files write it.
pub(super) fn data_name(data: DataEffect) -> &'static str {
    match data {
        DataEffect::None => "none",
        DataEffect::Expand => "expand",
        DataEffect::Contract => "contract",
        DataEffect::Destructive => "destructive",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_says_what_a_file_does() {
        let of = |data, in_transaction| Ok(Header { data, in_transaction });
        assert_eq!(header("-- holdfast: data=expand\nSELECT 1"), of(DataEffect::Expand, true));
        assert_eq!(header("-- holdfast: data=none  transaction=none\r\nSELECT 1"), of(DataEffect::None, false));
        for wrong in [
            "",
            "SELECT 1",
            "\n-- holdfast: data=none",
            "\u{feff}-- holdfast: data=none",
            "-- holdfast:",
            "-- holdfast: transaction=none",
            "-- holdfast: data=some",
            "-- holdfast: data=none data=none",
            "-- holdfast: data=none transaction=all",
            "-- holdfast: data=none transaction=none transaction=none",
            "-- holdfast: data=none lock",
        ] {
            assert!(header(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_version_is_what_stands_before_the_first_underscore() {
        assert_eq!(version("0042_add_email.sql").unwrap().as_str(), "0042");
        for wrong in ["0042.sql", "_x.sql", "0042_.sql", "a b_x.sql", "../1_x.sql", "0042_a\n.sql"] {
            assert!(version(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_no_text_is_no_migration() {
        assert!(Migration::of(Version::of("1"), "1_a.sql", vec![0xff]).is_err());
        assert!(Migration::of(Version::of("1"), "1_a.sql", vec![0]).is_err());
    }
}
