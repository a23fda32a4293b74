//! Processes as the kernel lists them in `/proc`.

use std::fs;
use std::io;

use holdfast_common::text::{bounded, one_line};
use serde::{Deserialize, Serialize};

use super::namespaces::Namespaces;

/// A process that can't be taken for a later one with the same id on the same boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) pid: i32,
    /// Clock ticks since boot.
    pub(super) started: u64,
}

/// A process of a step that was seen alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// Its id when it was seen; 0 if it can't be seen from here. For people: never signal it by that.
    pub pid: i32,
    /// Its name. Data from outside.
    pub name: String,
}

/// One process at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) identity: Identity,
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    name: String,
    state: char,
}

impl Process {
    /// `None` if there is no such process.
    pub(super) fn read(pid: i32) -> io::Result<Option<Self>> {
        match fs::read(format!("/proc/{pid}/stat")) {
            Ok(bytes) => Ok(Self::parse(&String::from_utf8_lossy(&bytes))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// `pid (name) state parent group session ...`, the start time as field 22. The name may hold anything, also `)`.
    fn parse(text: &str) -> Option<Self> {
        let (pid, rest) = text.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            identity: Identity { pid: pid.parse().ok()?, started: fields.get(19)?.parse().ok()? },
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            name: bounded(&one_line(name), 64),
            state: fields.first()?.chars().next()?,
        })
    }

    /// One that is known to be there and can't be seen from here. Nothing signals it.
    pub(super) fn unseen() -> Self {
        let identity = Identity { pid: 0, started: 0 };
        Self { identity, parent: 0, group: 0, session: 0, name: "not seen from here".to_owned(), state: '?' }
    }

    /// Neither a zombie nor going: it can still do something.
    pub(super) fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X' | 'x')
    }

    /// Stopped by a signal or a debugger: it does nothing until somebody lets it go on.
    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    pub(super) fn survivor(&self) -> Survivor {
        Survivor { pid: self.identity.pid, name: self.name.clone() }
    }
}

/// All processes. One that comes while this runs may be missed. An error where `/proc` is of another pid namespace.
pub(super) fn all() -> io::Result<Vec<Process>> {
    Namespaces::own()?;
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        found.extend(Process::read(pid)?);
    }
    Ok(found)
}

/// The living ones below a process, its children's children included.
pub(super) fn living_descendants(of: i32) -> io::Result<Vec<Process>> {
    all().map(|processes| below(of, &processes))
}

/// [`living_descendants`] in a list of all.
pub(super) fn below(of: i32, processes: &[Process]) -> Vec<Process> {
    let mut family = vec![of];
    let mut at = 0;
    while let Some(parent) = family.get(at).copied() {
        family.extend(processes.iter().filter(|process| process.parent == parent).map(|process| process.identity.pid));
        at += 1;
    }
    let is_of_it =
        |process: &&Process| process.is_alive() && process.identity.pid != of && family.contains(&process.identity.pid);
    processes.iter().filter(is_of_it).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_name() {
        let text = "42 (a) b (c) S 1 40 41 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 777 1 1 18446744073709551615";
        let process = Process::parse(text).unwrap();
        assert_eq!((process.identity.pid, process.parent, process.group, process.session), (42, 1, 40, 41));
        assert_eq!((process.identity.started, process.name.as_str(), process.is_alive()), (777, "a) b (c", true));
        assert!(!Process::parse(&text.replace(") S", ") Z")).unwrap().is_alive());
        let is_stopped = |state: &str| Process::parse(&text.replace(") S", state)).unwrap().is_stopped();
        assert_eq!([") S", ") T", ") t", ") D", ") Z"].map(is_stopped), [false, true, true, false, false]);
        assert_eq!(Process::parse("nonsense"), None);
        let me = i32::try_from(std::process::id()).unwrap();
        assert_eq!(Process::read(me).unwrap().unwrap().identity.pid, me);
        assert!(all().unwrap().iter().any(|process| process.identity.pid == me));
    }
}
