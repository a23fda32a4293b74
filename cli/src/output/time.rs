//! Times for people: instants in UTC, ages in one unit, silences that keep counting.

use holdfast_common::time::{Millis, Wall};
use jiff::Timestamp;

/// The time of day of an instant, like `14:20:07Z`.
#[must_use]
pub fn clock(at: Wall) -> String {
    format(at, "%H:%M:%SZ")
}

/// The whole instant, like `2026-11-29T14:20:07Z`.
#[must_use]
pub fn instant(at: Wall) -> String {
    format(at, "%Y-%m-%dT%H:%M:%SZ")
}

/// [`clock`] on the day of `now`, else [`instant`].
#[must_use]
pub fn near(at: Wall, now: Wall) -> String {
    const DAY: &str = "%Y-%m-%d";
    if format(at, DAY) == format(now, DAY) { clock(at) } else { instant(at) }
}

/// How long ago, in the unit that fits: `45s`, `2m`, `3h`, `5d`. Rounded down. An instant that is still to come, by
/// clocks that differ, is `0s`.
#[must_use]
pub fn age(at: Wall, now: Wall) -> String {
    let micros = u64::try_from(now.0.saturating_sub(at.0)).unwrap_or(0);
    span(Millis(micros / 1000))
}

/// A length of time in the unit that fits, like [`age`].
#[must_use]
pub fn span(length: Millis) -> String {
    let seconds = length.0 / 1000;
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7_199 => format!("{}m", seconds / 60),
        7_200..=172_799 => format!("{}h", seconds / 3_600),
        172_800.. => format!("{}d", seconds / 86_400),
    }
}

/// What stands in a spinner's place when nothing is heard any more, like `silent 00:14` or `silent 1:02:03`.
#[must_use]
pub fn silent(length: Millis) -> String {
    let seconds = length.0 / 1000;
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours == 0 {
        format!("silent {minutes:02}:{seconds:02}")
    } else {
        format!("silent {hours}:{minutes:02}:{seconds:02}")
    }
}

/// The instant now, by this machine's clock.
#[must_use]
pub fn now() -> Wall {
    Wall(Timestamp::now().as_microsecond())
}

fn format(at: Wall, shape: &str) -> String {
    // Outside the years -9999 to 9999 there is no calendar; the number is still the truth.
    Timestamp::from_microsecond(at.0).map_or_else(|_| format!("{}us", at.0), |time| time.strftime(shape).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-29T14:20:07.999Z
    const AT: Wall = Wall(1_795_962_007_999_000);

    fn after(seconds: i64) -> Wall {
        Wall(AT.0 + seconds * 1_000_000)
    }

    #[test]
    fn instants_are_in_utc_and_cut_to_the_second() {
        assert_eq!(clock(AT), "14:20:07Z");
        assert_eq!(instant(AT), "2026-11-29T14:20:07Z");
        assert_eq!(near(AT, after(60)), "14:20:07Z");
        assert_eq!(near(AT, after(86_400)), "2026-11-29T14:20:07Z");
        assert_eq!(instant(Wall(i64::MAX)), "9223372036854775807us");
    }

    #[test]
    fn ages_have_one_unit_and_never_run_backwards() {
        for (seconds, shown) in [
            (-5, "0s"),
            (0, "0s"),
            (45, "45s"),
            (119, "119s"),
            (120, "2m"),
            (7_199, "119m"),
            (7_200, "2h"),
            (172_800, "2d"),
        ] {
            assert_eq!(age(AT, after(seconds)), shown);
        }
        assert_eq!(age(Wall(i64::MIN), Wall(i64::MAX)), "106751991d");
    }

    #[test]
    fn a_silence_counts_on() {
        assert_eq!(silent(Millis(14_900)), "silent 00:14");
        assert_eq!(silent(Millis::from_secs(3_723)), "silent 1:02:03");
    }
}
