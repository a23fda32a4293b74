//! Users of this host, from its files alone.

use serde::{Deserialize, Serialize};

/// Who a command runs as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// Its number.
    pub uid: u32,
    /// Its first group.
    pub gid: u32,
    /// The other groups that it is in.
    pub groups: Vec<u32>,
    /// Its name; its number, where it has none.
    pub name: String,
    /// Its folder.
    pub home: String,
}

impl User {
    /// The user of that name, or of `UID:GID`, which need not be listed anywhere.
    pub fn find(text: &str) -> Result<Self, String> {
        let read = |file| std::fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let passwd = read("/etc/passwd").map_err(|error| format!("/etc/passwd can't be read: {error}"))?;
        Self::listed(text, &passwd, &read("/etc/group").unwrap_or_default())
    }

    /// [`Self::find`] in those lists.
    pub(super) fn listed(text: &str, passwd: &str, group: &str) -> Result<Self, String> {
        if let Some(user) = passwd.lines().filter_map(Self::of_line).find(|user| user.name == text) {
            let groups =
                group.lines().filter_map(|line| group_with(line, text)).filter(|gid| *gid != user.gid).collect();
            return Ok(Self { groups, ..user });
        }
        let numbers = text.split_once(':').and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
        let (uid, gid) = numbers.ok_or_else(|| format!("{text} is no user of this host"))?;
        Ok(Self { uid, gid, groups: Vec::new(), name: uid.to_string(), home: "/".to_owned() })
    }

    fn of_line(line: &str) -> Option<Self> {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?.to_owned();
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        let home = fields.nth(1).filter(|home| home.starts_with('/')).unwrap_or("/").to_owned();
        Some(Self { uid, gid, groups: Vec::new(), name, home })
    }

    /// Whether this process is that user already.
    #[must_use]
    pub fn is_own(&self) -> bool {
        rustix::process::geteuid().as_raw() == self.uid
    }
}

fn group_with(line: &str, user: &str) -> Option<u32> {
    let mut fields = line.split(':');
    let gid = fields.nth(2)?.parse().ok()?;
    fields.next()?.split(',').any(|member| member == user).then_some(gid)
}
