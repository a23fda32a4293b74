//! By what a machine is known again.
//!
//! A hash over what its system calls it and what its firmware calls it:
//!
//! | of | read from | where it can't be read |
//! | --- | --- | --- |
//! | the installed system | `/etc/machine-id` | the machine can't be told: there is no fingerprint |
//! | the hardware, or the virtual one | `/sys/class/dmi/id/product_uuid`, which only root may read | left out |
//!
//! A copied disk has the first, a cloned virtual machine often has both: the fingerprint is a hint beside the session token,
//! never a secret and never a proof of being the agent. It says when a machine is *another* one. `machine.id_file` names a
//! file that stands for both, for hosts that lose theirs at each start. An agent that runs as another user than before may be
//! seen as moved.

use std::fs;
use std::path::Path;

use holdfast_common::spec::hex;
use sha2::{Digest as _, Sha256};

use crate::config::Machine;

/// Longest content that counts, in bytes.
const MAX_BYTES: usize = 4096;

/// Lower-case hex of SHA-256; empty where the machine can't be told.
#[must_use]
pub fn fingerprint(config: &Machine) -> String {
    let of = |path: &Path| read(path).unwrap_or_default();
    match &config.id_file {
        Some(file) => of_parts(&of(file), ""),
        None => of_parts(&of(Path::new("/etc/machine-id")), &of(Path::new("/sys/class/dmi/id/product_uuid"))),
    }
}

fn of_parts(system: &str, hardware: &str) -> String {
    if system.is_empty() {
        return String::new();
    }
    hex(&Sha256::digest(format!("holdfast machine 1\n{system}\n{hardware}\n")))
}

/// The first line, if it says anything. Systems that are not set up yet have the word `uninitialized` there.
fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok().filter(|text| text.len() <= MAX_BYTES)?;
    let line = text.lines().next()?.trim();
    (!line.is_empty() && line != "uninitialized").then(|| line.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_known_by_both_of_its_names_and_without_the_first_not_at_all() {
        let folder = std::env::temp_dir().join(format!("holdfast-machine-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let told = |text: &str| {
            let file = folder.join("id");
            fs::write(&file, text).expect("written");
            fingerprint(&Machine { id_file: Some(file) })
        };
        let one = told("0a1b\n");
        assert_eq!((one.len(), &one), (64, &told(" 0A1B \nmore\n")));
        assert_ne!(one, told("0a1c\n"));
        for nobody in ["", "\n", "uninitialized\n"] {
            assert_eq!(told(nobody), "", "{nobody:?}");
        }
        assert_eq!(fingerprint(&Machine { id_file: Some(folder.join("none")) }), "");
        assert_ne!(of_parts("a", "b"), of_parts("a", ""));
        assert_ne!(of_parts("a", "b"), of_parts("ab", ""));
        fs::remove_dir_all(&folder).expect("removed");
    }
}
