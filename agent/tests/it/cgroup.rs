//! A cgroup for the steps of a test, below this process's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;

pub(crate) struct Steps(PathBuf);

impl Steps {
    pub(crate) fn new() -> Self {
        let folder = own().join(format!("holdfast-test-{}", Uuid::new_v4()));
        fs::create_dir(&folder).expect("these tests need cgroups of version 2 that can be written: run them as root");
        Self(folder)
    }

    pub(crate) fn step(&self, number: u32) -> PathBuf {
        self.0.join(format!("step-{number}"))
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        // What was killed is out of it a little later.
        for _ in 0..200 {
            for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
                let _ = fs::remove_dir(entry.path());
            }
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn own() -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mount = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let at = fields.next()?;
        (fields.next()? == "cgroup2").then(|| at.to_owned())
    });
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap();
    Path::new(&mount.expect("cgroups of version 2 are mounted")).join(own)
}
