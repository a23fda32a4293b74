//! Bounds of a step where no cgroup bounds it: those that the kernel puts on each process by itself.

use std::io;
use std::process::Child;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

use crate::config::Limits;

/// Starts something under these bounds. They are this process's own, softly, for as long as it takes, so that what is started
/// is never without; then they are its for good.
///
/// The kernel counts processes for each user, over all steps, and for root not at all; memory it counts for each process.
pub(super) fn under(limits: Limits, start: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let bounds = [(Resource::Nproc, limits.pids), (Resource::Data, limits.memory_bytes)];
    let bounds: Vec<_> = bounds.into_iter().filter_map(|(resource, most)| Some((resource, most?))).collect();
    let before: Vec<_> = bounds.iter().map(|(resource, _)| (*resource, getrlimit(*resource))).collect();
    let started = lower(&bounds, &before).and_then(|()| start());
    for (resource, limit) in before {
        setrlimit(resource, limit)?;
    }
    let child = started?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    for (resource, most) in bounds {
        // One that is gone already needs none. It is not reaped, so this is no other.
        let _gone = prlimit(pid, resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
    Ok(child)
}

fn lower(bounds: &[(Resource, u64)], before: &[(Resource, Rlimit)]) -> io::Result<()> {
    for ((resource, most), (_, before)) in bounds.iter().zip(before) {
        let most = before.maximum.map_or(*most, |maximum| maximum.min(*most));
        setrlimit(*resource, Rlimit { current: Some(most), maximum: before.maximum })?;
    }
    Ok(())
}
