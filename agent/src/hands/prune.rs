//! Removes the folders of attempts that nothing is left to be told of.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::time::{Duration, SystemTime};

use holdfast_common::id::AttemptId;

use super::Bench;
use crate::config::Keep;
use crate::places::{Places, StepFolder};
use crate::supervisor::{Known, Supervisor};

/// One that was touched lately may be of an attempt that was taken while this runs.
const YOUNG: Duration = Duration::from_secs(10 * 60);

/// An attempt's folder, and when anything of it was last made or ended.
type Found = (SystemTime, AttemptId);

/// Removes those that are not `needed`, beyond what is kept by number or by age. One of which a process lives stays. Gives back
/// what it removed.
pub fn prune(
    places: &Places,
    supervisor: &Supervisor,
    needed: &BTreeSet<AttemptId>,
    keep: Keep,
    now: SystemTime,
) -> io::Result<Vec<AttemptId>> {
    let mut found = Vec::new();
    for attempt in places.found_attempts()?.into_iter().filter(|attempt| !needed.contains(attempt)) {
        found.push((last_touched(places, attempt)?, attempt));
    }
    let mut removed = Vec::new();
    found.retain(|(at, _)| now.duration_since(*at).is_ok_and(|age| age > YOUNG));
    for attempt in beyond(found, keep, now) {
        if is_over(places, supervisor, attempt)? {
            places.remove_attempt(attempt)?;
            removed.push(attempt);
        }
    }
    Ok(removed)
}

impl Bench {
    /// What can't be removed now is tried again the next time.
    pub(super) fn prune(&self, mut needed: BTreeSet<AttemptId>) {
        let removed = self.logs.unsent().and_then(|unsent| {
            needed.extend(unsent);
            prune(&self.places, &self.supervisor, &needed, self.surroundings.keep, SystemTime::now())
        });
        match removed {
            Ok(removed) if removed.is_empty() => {}
            Ok(removed) => tracing::info!(count = removed.len(), "removed folders of attempts that are over"),
            Err(error) => tracing::warn!(%error, "could not remove folders of attempts that are over"),
        }
    }
}

/// The oldest, beyond the number or the age.
fn beyond(mut found: Vec<Found>, keep: Keep, now: SystemTime) -> Vec<AttemptId> {
    found.sort_unstable();
    let too_many = found.len().saturating_sub(keep.attempts);
    let is_old = |at: SystemTime| now.duration_since(at).is_ok_and(|age| age > Duration::from(keep.age.0));
    found
        .iter()
        .enumerate()
        .filter(|(index, (at, _))| *index < too_many || is_old(*at))
        .map(|(_, found)| found.1)
        .collect()
}

fn last_touched(places: &Places, attempt: AttemptId) -> io::Result<SystemTime> {
    let mut last =
        fs::metadata(places.work(attempt)).and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    for step in places.found_steps(attempt)? {
        last = last.max(fs::metadata(step.path())?.modified()?);
    }
    Ok(last)
}

fn is_over(places: &Places, supervisor: &Supervisor, attempt: AttemptId) -> io::Result<bool> {
    for step in places.found_steps(attempt)? {
        if !is_step_over(supervisor, &step)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A step without a start record never starts any more: its shim could make none without the folder.
fn is_step_over(supervisor: &Supervisor, step: &StepFolder) -> io::Result<bool> {
    match supervisor.survey(step)? {
        Known::Running => Ok(false),
        Known::Gone { survivors, .. } if !survivors.is_empty() => Ok(false),
        Known::NotYetStarted | Known::NeverStarted { .. } | Known::Ended(_) | Known::Gone { .. } => {
            supervisor.tidy(step)
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_common::time::Millis;
    use uuid::Uuid;

    use super::*;
    use crate::config::Span;

    #[test]
    fn the_newest_stay_by_number_and_none_beyond_its_age() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        let found =
            |at: u64, id: u128| (SystemTime::UNIX_EPOCH + Duration::from_secs(at), AttemptId(Uuid::from_u128(id)));
        let all = vec![found(990, 1), found(100, 2), found(980, 3), found(970, 4), found(2_000, 5)];
        let gone = |attempts, age| -> Vec<u128> {
            let keep = Keep { attempts, age: Span(Millis::from_secs(age)) };
            beyond(all.clone(), keep, now).into_iter().map(|attempt| attempt.0.as_u128()).collect()
        };
        assert_eq!(gone(5, 5_000), Vec::<u128>::new());
        assert_eq!(gone(3, 5_000), [2, 4]);
        assert_eq!(gone(5, 25), [2, 4], "one from the future is young");
        assert_eq!(gone(4, 15), [2, 4, 3]);
        assert_eq!(gone(0, 5_000).len(), 5);
    }
}
