use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// What one part says of itself now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It does its work.
    Ok,
    /// It does not, and why.
    Not(String),
}

impl State {
    /// `Ok` where that is so; else why not.
    pub fn of(is_so: bool, why_not: impl FnOnce() -> String) -> Self {
        if is_so { State::Ok } else { State::Not(why_not()) }
    }
}

/// A part and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Like `disk`.
    pub name: &'static str,
    /// Its state.
    pub state: State,
}

/// What all parts that count say, and what is only worth knowing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What counts, in the order of registration.
    pub parts: Vec<Part>,
    /// What does not count, by name.
    pub notes: Vec<(&'static str, String)>,
}

impl Report {
    /// Whether every part does its work.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.wrong().next().is_none()
    }

    /// The parts that do not, and why.
    pub fn wrong(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.parts.iter().filter_map(|part| match &part.state {
            State::Ok => None,
            State::Not(why) => Some((part.name, why.as_str())),
        })
    }
}

type Look<T> = (&'static str, Arc<dyn Fn() -> T + Send + Sync>);

#[derive(Default)]
struct Looks {
    alive: Vec<Look<State>>,
    ready: Vec<Look<State>>,
    notes: Vec<Look<String>>,
}

/// Every part of a service that can say how it is. Cheap to clone; parts may come at any time.
///
/// A service is *alive* while its own work loop turns: if it is not, only a restart helps. It is *ready* while all its
/// parts do their work. Contact with another machine is neither: it is a note.
#[derive(Clone, Default)]
pub struct Health {
    looks: Arc<RwLock<Looks>>,
}

impl Health {
    /// No parts: alive and ready.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One more part that `/livez` counts. `look` must not wait for anything.
    pub fn alive(&self, name: &'static str, look: impl Fn() -> State + Send + Sync + 'static) {
        self.change(|looks| looks.alive.push((name, Arc::new(look))));
    }

    /// One more part that `/readyz` counts. `look` may look at files.
    pub fn ready(&self, name: &'static str, look: impl Fn() -> State + Send + Sync + 'static) {
        self.change(|looks| looks.ready.push((name, Arc::new(look))));
    }

    /// One more thing worth knowing, which nothing depends on.
    pub fn note(&self, name: &'static str, look: impl Fn() -> String + Send + Sync + 'static) {
        self.change(|looks| looks.notes.push((name, Arc::new(look))));
    }

    /// Asks every part that counts for `/livez`.
    #[must_use]
    pub fn liveness(&self) -> Report {
        let looks = self.read(|looks| looks.alive.clone());
        Report { parts: ask(&looks), notes: Vec::new() }
    }

    /// Asks every part that counts for `/readyz`.
    #[must_use]
    pub fn readiness(&self) -> Report {
        let (ready, notes) = self.read(|looks| (looks.ready.clone(), looks.notes.clone()));
        Report { parts: ask(&ready), notes: notes.iter().map(|(name, look)| (*name, look())).collect() }
    }

    fn change(&self, change: impl FnOnce(&mut Looks)) {
        change(&mut self.looks.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// The lock is not held while anybody is asked.
    fn read<T>(&self, read: impl FnOnce(&Looks) -> T) -> T {
        read(&self.looks.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn ask(looks: &[Look<State>]) -> Vec<Part> {
    looks.iter().map(|(name, look)| Part { name, state: look() }).collect()
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_part_that_does_not_work_is_named_and_a_note_counts_for_nothing() {
        let health = Health::new();
        assert!(health.readiness().is_ok() && health.liveness().is_ok());
        let full = Arc::new(AtomicBool::new(false));
        let disk = Arc::clone(&full);
        health.alive("work loop", || State::Ok);
        health.ready("disk", move || State::of(!disk.load(Ordering::Relaxed), || "no room".to_owned()));
        health.note("coordinator", || "no contact".to_owned());
        assert!(health.readiness().is_ok());
        full.store(true, Ordering::Relaxed);
        let told = health.readiness();
        assert_eq!(told.wrong().collect::<Vec<_>>(), [("disk", "no room")]);
        assert_eq!(told.notes, [("coordinator", "no contact".to_owned())]);
        assert!(health.liveness().is_ok(), "a full disk is no reason to be started again");
        full.store(false, Ordering::Relaxed);
        assert!(health.readiness().is_ok());
    }
}
