//! Links that somebody puts in the way lead nowhere: neither what is written nor what is removed goes past the release folder
//! (T33, T34).

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

use crate::support::{Site, apply, fence};

const REFUSED_ROOT: i32 = 78;
const SOMEBODY: u32 = 64141;

/// A folder that nothing of a release may reach.
fn victim(site: &Site) -> std::path::PathBuf {
    let victim = site.folder.0.join("victim");
    fs::create_dir_all(victim.join("deep/er")).unwrap();
    fs::write(victim.join("deep/er/precious"), "kept").unwrap();
    fs::write(victim.join("precious"), "kept").unwrap();
    victim
}

fn check_untouched(victim: &Path) {
    let mut names: Vec<_> = fs::read_dir(victim).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["deep", "precious"], "something came into it or left it");
    for file in ["precious", "deep/er/precious"] {
        assert_eq!(fs::read_to_string(victim.join(file)).unwrap(), "kept");
    }
}

struct Swapper(Child);

impl Swapper {
    /// Swaps that name for a link to the victim and back, as fast as it goes.
    fn start(name: &Path, victim: &Path, user: Option<u32>) -> Self {
        let script = r#"while :; do mv -T "$1" "$1.away" && ln -s "$2" "$1"; rm -f "$1"; mv -T "$1.away" "$1"; done 2>/dev/null"#;
        let mut command = Command::new("sh");
        command.args(["-c", script, "swapper"]).arg(name).arg(victim).process_group(0);
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        Self(command.spawn().unwrap())
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.0);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.0.wait();
    }
}

#[test]
fn a_link_in_the_place_of_a_folder_of_ours_is_refused_and_not_followed() {
    for name in ["releases", "slots", "taken", "trash", "ledger", "ledger/operations"] {
        let site = Site::new();
        assert!(apply(&site.spec(1, fence(1))).output().unwrap().status.success());
        let (place, victim) = (site.root.join(name), victim(&site));
        fs::rename(&place, site.folder.0.join("away")).unwrap();
        symlink(&victim, &place).unwrap();
        let output = apply(&site.spec(2, fence(2))).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(REFUSED_ROOT), "{name}: {text}");
        assert!(text.contains("a link is not followed"), "{name}: {text}");
        check_untouched(&victim);
    }
}

/// Whoever can swap the agent's own folders gets nothing of what is elsewhere removed or moved, whenever the swap comes.
#[test]
fn old_releases_are_removed_by_no_link_that_is_swapped_in_meanwhile() {
    let site = Site::new();
    let victim = victim(&site);
    let spec = |number: u128| {
        let mut spec = site.spec(number, fence(u64::try_from(number).unwrap()));
        spec.retain = 1;
        spec
    };
    for number in 1..=3 {
        assert!(apply(&spec(number)).output().unwrap().status.success());
    }
    let swapper = Swapper::start(&site.root.join("trash"), &victim, None);
    for number in 4..30 {
        // Whether it succeeds is the swapper's: it may find no folder there.
        let _output = apply(&spec(number)).output().unwrap();
        check_untouched(&victim);
    }
    drop(swapper);
    check_untouched(&victim);
}

#[test]
fn as_root_nothing_is_done_where_another_user_can_swap_names() {
    assert!(rustix::process::geteuid().is_root(), "only root can be asked to act for another user");
    let site = Site::new();
    let victim = victim(&site);
    fs::set_permissions(&site.folder.0, fs::Permissions::from_mode(0o755)).unwrap();
    let home = site.folder.0.join("home");
    fs::create_dir(&home).unwrap();
    chown(&home, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    fs::create_dir(home.join("site")).unwrap();
    chown(home.join("site"), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    let swapper = Swapper::start(&home.join("site"), &victim, Some(SOMEBODY));
    for number in 1..20 {
        let mut spec = site.spec(number, fence(u64::try_from(number).unwrap()));
        spec.root = home.join("site");
        let output = apply(&spec).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(REFUSED_ROOT), "{text}");
        assert!(text.contains("belongs to user 64141"), "{text}");
        check_untouched(&victim);
    }
    drop(swapper);
    fs::set_permissions(&site.folder.0, fs::Permissions::from_mode(0o777)).unwrap();
    let output = apply(&site.spec(20, fence(20))).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("others than root can rename what is in it"));
}
