//! Whose the data folder is. What root writes into a folder of somebody else, its owner can't read.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Who the folder belongs to, if this is root and that is another user. By name, where there is one.
pub(crate) fn of_somebody_else(folder: &Path) -> Option<String> {
    let owner = fs::metadata(folder).ok()?.uid();
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    (rustix::process::geteuid().is_root() && owner != 0).then(|| name(owner, &users))
}

fn name(owner: u32, users: &str) -> String {
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut named = fields.filter(|fields| fields.get(2).and_then(|id| id.parse().ok()) == Some(owner));
    named.next().map_or_else(|| owner.to_string(), |fields| fields[0].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_told_by_name_where_there_is_one() {
        let users = "root:x:0:0::/root:/bin/sh\nbroken\nholdfast:x:998:998::/var/lib/holdfast:/usr/sbin/nologin\n";
        assert_eq!(
            (name(998, users), name(0, users), name(64_000, users)),
            ("holdfast".into(), "root".into(), "64000".into())
        );
    }
}
