//! When a health check has held, and when it has not.
//!
//! | a look | then |
//! | --- | --- |
//! | went well, none failed for the whole window before it | held |
//! | went well, the window is not over | look again after the interval |
//! | went well, but so late that nobody looked for long | the window begins with it |
//! | failed | the window is lost; look again after the interval |
//! | any, and the time is up without a whole window | not held |
//!
//! Only looks count: time in which nobody looked is no time in which it held.

use holdfast_common::spec::CheckSpec;
use holdfast_common::text::{bounded, one_line};
use holdfast_common::time::Millis;

/// How long one look may take at most.
pub const LOOK_BOUND: Millis = Millis::from_secs(10);
/// How long a look that was begun may take at least.
pub const LOOK_LEAST: Millis = Millis::from_secs(1);
/// Longest reason of a look that is kept.
const REASON_BYTES: usize = 300;
/// Beyond the interval and a whole look: then nobody looked.
const LATE: Millis = Millis::from_secs(2);

/// Milliseconds since the check began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Elapsed(pub u64);

/// One check, look by look.
#[derive(Clone, Debug)]
pub struct Watch {
    spec: CheckSpec,
    looks: u64,
    /// When the looks that have gone well without a failure between them began.
    since: Option<Elapsed>,
    last: Option<Elapsed>,
    last_ok: Option<Elapsed>,
    first_failure: Option<String>,
    last_failure: Option<String>,
}

/// What follows from a look.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// Look again then.
    Look(Elapsed),
    /// It held.
    Held {
        /// For people.
        detail: String,
    },
    /// It did not hold in its time.
    NotHeld {
        /// For people: what the last look saw.
        detail: String,
    },
}

impl Watch {
    /// A check that begins now.
    #[must_use]
    pub fn new(spec: CheckSpec) -> Self {
        let (looks, since, last, last_ok) = (0, None, None, None);
        Self { spec, looks, since, last, last_ok, first_failure: None, last_failure: None }
    }

    /// How long a look that begins then may take: what is left of the check's time, but no less than [`LOOK_LEAST`], so that the
    /// last look tells what it saw and not how little time it had, and no more than [`LOOK_BOUND`].
    #[must_use]
    pub fn bound(&self, now: Elapsed) -> Millis {
        Millis(self.spec.give_up.0.saturating_sub(now.0)).clamp(LOOK_LEAST, LOOK_BOUND)
    }

    /// A look that began and ended then, and what was wrong where something was.
    pub fn saw(&mut self, began: Elapsed, ended: Elapsed, wrong: Option<&str>) -> Next {
        self.looks += 1;
        let unseen = self.last.is_some_and(|last| began.0.saturating_sub(last.0) > self.spec.interval.0 + LATE.0);
        self.last = Some(ended);
        match wrong {
            None => {
                let since = self.since.filter(|_| !unseen).unwrap_or(began);
                self.since = Some(since);
                self.last_ok = Some(ended);
                if ended.0.saturating_sub(since.0) >= self.spec.hold.0 {
                    return Next::Held { detail: self.held(ended, since) };
                }
            }
            Some(why) => {
                self.since = None;
                let why = bounded(&one_line(why), REASON_BYTES);
                self.first_failure.get_or_insert_with(|| why.clone());
                self.last_failure = Some(why);
            }
        }
        let next = Elapsed((began.0 + self.spec.interval.0).max(ended.0));
        if next.0 >= self.spec.give_up.0 { Next::NotHeld { detail: self.not_held(ended) } } else { Next::Look(next) }
    }

    fn held(&self, now: Elapsed, since: Elapsed) -> String {
        let held = match self.spec.hold {
            Millis(0) => "went well".to_owned(),
            _ => format!("went well for {}", span(now.0 - since.0)),
        };
        format!("{} {held} ({})", self.spec.probe, self.counted(now))
    }

    fn not_held(&self, now: Elapsed) -> String {
        let seen = match (&self.last_failure, self.since) {
            (_, Some(since)) => format!("went well only for the last {}", span(now.0 - since.0)),
            (Some(why), None) => why.clone(),
            (None, None) => "was not seen".to_owned(),
        };
        let ok = match self.last_ok {
            Some(at) => format!("last ok {} ago", span(now.0 - at.0)),
            None => "never ok".to_owned(),
        };
        let first = self.first_failure.as_ref().filter(|first| Some(*first) != self.last_failure.as_ref());
        let first = first.map(|first| format!("; first: {first}")).unwrap_or_default();
        format!("{}: {seen} ({}, {ok}{first})", self.spec.probe, self.counted(now))
    }

    fn counted(&self, now: Elapsed) -> String {
        let looks = if self.looks == 1 { "look" } else { "looks" };
        format!("{} {looks} in {}", self.looks, span(now.0))
    }
}

/// Whole seconds, or milliseconds below one.
fn span(millis: u64) -> Millis {
    Millis(if millis < 1000 { millis } else { millis / 1000 * 1000 })
}

#[cfg(test)]
mod tests {
    use holdfast_common::spec::Probe;

    use super::*;

    fn watch(hold: u64, give_up: u64) -> Watch {
        let probe = Probe::Http { url: "http://a/".to_owned(), expect_status: 200, expect_body: None };
        Watch::new(CheckSpec { probe, hold: Millis(hold), interval: Millis(1000), give_up: Millis(give_up) })
    }

    fn look(watch: &mut Watch, at: u64, wrong: Option<&str>) -> Next {
        watch.saw(Elapsed(at), Elapsed(at + 100), wrong)
    }

    #[test]
    fn without_a_window_one_look_is_enough() {
        let held = Next::Held { detail: "http://a/ went well (1 look in 100ms)".to_owned() };
        assert_eq!(look(&mut watch(0, 5000), 0, None), held);
    }

    #[test]
    fn a_window_must_pass_without_a_failure() {
        let mut watch = watch(2000, 20_000);
        assert_eq!(look(&mut watch, 0, Some("refused")), Next::Look(Elapsed(1000)));
        assert_eq!(look(&mut watch, 1000, None), Next::Look(Elapsed(2000)));
        assert_eq!(look(&mut watch, 2000, None), Next::Look(Elapsed(3000)));
        assert_eq!(look(&mut watch, 3000, Some("status 503")), Next::Look(Elapsed(4000)));
        assert_eq!(look(&mut watch, 4000, None), Next::Look(Elapsed(5000)), "the window begins anew");
        assert_eq!(look(&mut watch, 5000, None), Next::Look(Elapsed(6000)));
        let held = "http://a/ went well for 2s (7 looks in 6s)".to_owned();
        assert_eq!(look(&mut watch, 6000, None), Next::Held { detail: held });
    }

    #[test]
    fn when_the_time_is_up_the_last_and_the_first_failure_are_told() {
        let mut watch = watch(0, 3000);
        assert_eq!(look(&mut watch, 0, Some("refused")), Next::Look(Elapsed(1000)));
        assert_eq!(look(&mut watch, 1000, Some("status 503")), Next::Look(Elapsed(2000)));
        let detail = "http://a/: status 503 (3 looks in 2s, never ok; first: refused)".to_owned();
        assert_eq!(look(&mut watch, 2000, Some("status 503")), Next::NotHeld { detail });
        let mut watch = self::watch(2000, 4000);
        let _ = look(&mut watch, 0, None);
        let _ = look(&mut watch, 1000, Some("status 503"));
        let _ = look(&mut watch, 2000, Some("status 503"));
        let detail = "http://a/: status 503 (4 looks in 3s, last ok 3s ago)".to_owned();
        assert_eq!(look(&mut watch, 3000, Some("status 503")), Next::NotHeld { detail });
    }

    #[test]
    fn a_window_that_is_not_whole_when_the_time_is_up_has_not_held() {
        let mut watch = watch(2000, 3000);
        let _ = look(&mut watch, 0, Some("refused"));
        let _ = look(&mut watch, 1000, None);
        let detail = "http://a/: went well only for the last 1s (3 looks in 2s, last ok 0s ago)".to_owned();
        assert_eq!(look(&mut watch, 2000, None), Next::NotHeld { detail });
    }

    #[test]
    fn time_in_which_nobody_looked_is_no_time_in_which_it_held() {
        let mut watch = watch(5000, 60_000);
        assert_eq!(look(&mut watch, 0, None), Next::Look(Elapsed(1000)));
        // Paused: the next look comes half a minute late.
        assert_eq!(look(&mut watch, 30_000, None), Next::Look(Elapsed(31_000)));
        assert!(matches!(look(&mut watch, 31_000, None), Next::Look(_)));
    }

    #[test]
    fn a_look_is_bounded_by_what_is_left_and_reasons_by_their_size() {
        let mut watch = watch(0, 12_000);
        assert_eq!(watch.bound(Elapsed(0)), LOOK_BOUND);
        assert_eq!(watch.bound(Elapsed(9_500)), Millis(2_500));
        assert_eq!(watch.bound(Elapsed(11_500)), LOOK_LEAST);
        let Next::Look(next) = watch.saw(Elapsed(0), Elapsed(9_000), Some(&"x\n".repeat(1000))) else {
            panic!("goes on")
        };
        assert_eq!(next, Elapsed(9_000), "a slow look is followed at once");
        let Next::NotHeld { detail } = watch.saw(Elapsed(11_900), Elapsed(12_000), Some("y")) else {
            panic!("is over")
        };
        assert!(detail.len() < 500 && !detail.contains('\n'), "{detail}");
    }
}
