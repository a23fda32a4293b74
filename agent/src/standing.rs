//! How the agent stands, in words: for the service manager's status, the notes of `/readyz` and `holdfast-agent status`.

use std::sync::{Arc, Mutex, PoisonError};

use holdfast_common::time::Wall;

use crate::session::Drained;

/// Names of works that a line holds; more are counted.
const NAMED: usize = 5;

/// What is told. The driver sets it after each turn. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Standing(Arc<Mutex<Stands>>);

/// What the driver knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stands {
    /// Whether there is a session.
    pub contact: bool,
    /// What is held, each in words.
    pub held: Vec<String>,
    /// Why nothing new is given to it, where an operator said so.
    pub drained: Option<Drained>,
    /// What a stop waits for.
    pub leaving: Leaving,
}

/// Where a stop stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Leaving {
    /// None was asked for.
    #[default]
    No,
    /// It waits for what is held.
    Waits,
    /// It goes.
    Goes,
}

impl Standing {
    /// From now on. Says whether anything is otherwise than before.
    pub(crate) fn set(&self, stands: Stands) -> bool {
        let mut there = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = *there != stands;
        *there = stands;
        changed
    }

    fn get(&self) -> Stands {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What is held.
    #[must_use]
    pub fn held(&self) -> String {
        held(&self.get().held)
    }

    /// Whether an operator has drained it.
    #[must_use]
    pub fn drained(&self) -> String {
        self.get().drained.as_ref().map_or_else(|| "no".to_owned(), drained)
    }

    /// All of it on one line.
    #[must_use]
    pub fn line(&self) -> String {
        let stands = self.get();
        let contact = if stands.contact { "in contact" } else { "no contact with the coordinator" };
        let work = match stands.leaving {
            Leaving::No => format!("holds {}", held(&stands.held)),
            Leaving::Waits => format!("stopping, waits for {}", held(&stands.held)),
            Leaving::Goes => "stopping; work under way goes on under its shims".to_owned(),
        };
        let drained = stands.drained.as_ref().map(|why| format!("; {}", drained(why))).unwrap_or_default();
        format!("{contact}; {work}{drained}")
    }
}

fn held(held: &[String]) -> String {
    match held {
        [] => "nothing".to_owned(),
        held if held.len() <= NAMED => held.join("; "),
        held => format!("{}; and {} more", held[..NAMED].join("; "), held.len() - NAMED),
    }
}

fn drained(Drained { by, reason, since }: &Drained) -> String {
    format!("drained by {by} since {}: {reason}", instant(*since))
}

/// In UTC, to the second.
fn instant(at: Wall) -> String {
    let seconds = at.0.div_euclid(1_000_000);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| format!("{seconds} s"), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_contact_work_and_why_nothing_new_comes() {
        let standing = Standing::default();
        assert_eq!(standing.line(), "no contact with the coordinator; holds nothing");
        let held = vec!["shop@prod: step change runs, a change".to_owned()];
        let stands = Stands { contact: true, held, ..Stands::default() };
        assert!(standing.set(stands.clone()) && !standing.set(stands.clone()), "the same is no news");
        assert_eq!(standing.line(), "in contact; holds shop@prod: step change runs, a change");
        standing.set(Stands { leaving: Leaving::Waits, ..stands.clone() });
        assert_eq!(standing.line(), "in contact; stopping, waits for shop@prod: step change runs, a change");
        let drained = Drained { by: "anna".to_owned(), reason: "new disk".to_owned(), since: Wall(0) };
        standing.set(Stands { drained: Some(drained), held: vec!["a".to_owned(); 7], ..stands });
        assert_eq!(
            standing.line(),
            "in contact; holds a; a; a; a; a; and 2 more; drained by anna since 1970-01-01T00:00:00Z: new disk"
        );
        assert_eq!(standing.drained(), "drained by anna since 1970-01-01T00:00:00Z: new disk");
    }
}
