//! Becoming a user for good, in the calling thread and in what it starts.

use std::io;
use std::process::{Child, Command};

use rustix::fs::Mode;
use rustix::process::{DumpableBehavior, Gid, Uid, set_dumpable_behavior, umask};
use rustix::thread::{set_no_new_privs, set_thread_gid, set_thread_groups, set_thread_uid};

use crate::policy::User;

/// The calling thread becomes that user, and neither it nor anything that it starts can become another. What it makes is for that
/// user alone.
pub(crate) fn become_user(user: &User) -> io::Result<()> {
    umask(Mode::from_raw_mode(0o077));
    set_no_new_privs(true)?;
    if user.is_own() {
        return Ok(());
    }
    let (Some(uid), Some(gid)) = (number(user.uid), number(user.gid)) else {
        return Err(io::Error::other("the highest number names no user"));
    };
    let groups: Vec<Gid> = user.groups.iter().copied().filter_map(number).map(Gid::from_raw).collect();
    set_thread_groups(&groups)?;
    set_thread_gid(Gid::from_raw(gid))?;
    set_thread_uid(Uid::from_raw(uid))?;
    Ok(())
}

fn number(number: u32) -> Option<u32> {
    (number != u32::MAX).then_some(number)
}

/// Starts a command as that user, by way of a thread that becomes the user and does nothing else: whether the command could be
/// started is known as without a user.
pub(super) fn spawn(command: &mut Command, user: Option<&User>) -> io::Result<Child> {
    let Some(user) = user else { return command.spawn() };
    let child = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            become_user(user)?;
            command.spawn()
        });
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts the command died")))
    });
    // A change of user may have made this process one that others can trace.
    shut()?;
    child
}

/// Nobody but root may trace this process, nor read its memory or environment.
pub(crate) fn shut() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(io::Error::from)
}
