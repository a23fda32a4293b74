//! Whether steps get cgroups of their own on this host, and where.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use holdfast_common::id::{AttemptId, StepName};

use super::cgroup::{Cgroup, Tree};
use crate::config::{self, Limits};
use crate::internal::{INTERNAL, name};

/// Names the cgroups of steps, where there are some.
#[derive(Clone, Debug, Default)]
pub struct Cgroups(Option<Tree>);

impl Cgroups {
    /// Looks whether they can be made, by making one and going in and out with a process. An error where the configuration
    /// names a place that can't be used; where it does not, the log says why there are none.
    pub fn find(wanted: &config::Cgroup, limits: Limits) -> io::Result<Self> {
        let found = match wanted {
            config::Cgroup::Off => return Ok(Self(None)),
            config::Cgroup::Auto => Tree::of_agent().and_then(tried),
            config::Cgroup::At(path) => Tree::below(path).and_then(tried),
        };
        match (found, wanted) {
            (Ok(tree), _) => {
                control(&tree, limits);
                Ok(Self(Some(tree)))
            }
            (Err(error), config::Cgroup::At(_)) => Err(error),
            (Err(error), config::Cgroup::Auto | config::Cgroup::Off) => {
                tracing::info!(
                    %error,
                    "steps get no cgroups of their own: of a step whose shim is lost, what left its session can't be found"
                );
                Ok(Self(None))
            }
        }
    }

    /// That of a step.
    #[must_use]
    pub fn of(&self, attempt: AttemptId, step: &StepName) -> Option<PathBuf> {
        self.0.as_ref().map(|tree| tree.of(&format!("{attempt}.{step}")))
    }
}

/// Only what is asked for: a controller costs a little, and says where the agent's own processes may be.
fn control(tree: &Tree, limits: Limits) {
    for (controller, bound) in [("pids", limits.pids), ("memory", limits.memory_bytes)] {
        if let Some(Err(error)) = bound.map(|_| tree.control(controller)) {
            tracing::warn!(
                %error,
                controller,
                "the kernel does not bound this for a whole step here: each process gets the bound by itself"
            );
        }
    }
}

fn tried(tree: Tree) -> io::Result<Tree> {
    let path = tree.of(&format!("try-{}", std::process::id()));
    let output = Command::new("/proc/self/exe")
        .args([INTERNAL.as_ref(), name::TRY_CGROUP.as_ref(), path.as_os_str()])
        .env_clear()
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(tree);
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// Goes into a new cgroup, and out again.
pub(crate) fn try_cgroup(path: &Path) -> io::Result<()> {
    let cgroup = Cgroup::make(path)?;
    let went = cgroup.within(|| Ok(()));
    cgroup.remove()?;
    went
}
