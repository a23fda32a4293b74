//! Whether processes and cgroups are seen from here as the shim of a step saw them.
//!
//! A container that shares a state folder has processes of its own: the ids of a start record mean others there, `/proc` shows
//! none of the step's processes, and the path of its cgroup may lead to another one.
//!
//! | the start record names | what is not seen from here |
//! | --- | --- |
//! | this process's namespaces, and `/proc` is of them | is not there |
//! | nothing: it is of an earlier version | is taken for not there, if `/proc` is of this process's namespaces |
//! | other ones | may be there |

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};

/// The pid and the cgroup namespace of a process, as the kernel numbers them on one boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Namespaces(String);

impl Namespaces {
    /// Of this process. An error where `/proc` is another namespace's: then nothing that it shows means what it says.
    pub(super) fn own() -> io::Result<Self> {
        let status = fs::read_to_string("/proc/self/status")?;
        if !is_of_own_namespace(&status) {
            return Err(io::Error::other("/proc shows the processes of another pid namespace"));
        }
        let of = |kind: &str| fs::read_link(format!("/proc/self/ns/{kind}"));
        let cgroup = match of("cgroup") {
            // Kernels before 4.6 have none.
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            found => found?.to_string_lossy().into_owned(),
        };
        Ok(Self(format!("{} {cgroup}", of("pid")?.to_string_lossy()).trim_end().to_owned()))
    }
}

/// Whether what a shim with these namespaces could see is seen from here.
pub(super) fn are_shared(recorded: Option<&Namespaces>) -> bool {
    Namespaces::own().is_ok_and(|own| recorded.is_none_or(|recorded| *recorded == own))
}

/// A process has an id in each namespace from that of `/proc` down to its own. Kernels before 4.1 do not tell.
fn is_of_own_namespace(status: &str) -> bool {
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    ids.is_none_or(|ids| ids.split_ascii_whitespace().count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_view_is_shared_with_itself_and_with_records_that_name_none() {
        let own = Namespaces::own().expect("/proc is mounted here");
        assert!(own.0.starts_with("pid:["), "{own:?}");
        assert!(are_shared(Some(&own)) && are_shared(None));
        assert!(!are_shared(Some(&Namespaces("pid:[1] cgroup:[2]".to_owned()))));
        assert!(is_of_own_namespace("Name:\tsh\nNSpid:\t42\n") && is_of_own_namespace("Name:\tsh\n"));
        assert!(!is_of_own_namespace("Name:\tsh\nNSpid:\t4149\t2\n"));
    }
}
