//! Three kinds of time that must never meet by accident.
//!
//! [`Wall`] is for people to read: nothing is ordered, expired or judged fresh by it. [`Serving`] is the coordinator's
//! own monotonic time, summed over its runs: leases and deadlines live on it. [`Millis`] is a length of time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Wall-clock time in microseconds since the Unix epoch. Read by people only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wall(pub i64);

impl Wall {
    /// What this clock shows `span` later, if nobody sets it. Saturates.
    #[must_use]
    pub fn after(self, span: Millis) -> Self {
        Self(self.0.saturating_add_unsigned(span.0.saturating_mul(1_000)))
    }
}

/// Milliseconds of coordinator serving time since the store was made: it stands still while no coordinator runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Serving(pub u64);

impl Serving {
    /// This instant and `span` later. Saturates.
    #[must_use]
    pub fn after(self, span: Millis) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// How long after `earlier`; zero if it is not.
    #[must_use]
    pub fn since(self, earlier: Serving) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}

/// A length of time in milliseconds. Written like `30s`, `5m`, `1h`, `250ms`, or a sum of those: `1m30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// From whole seconds.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds * 1000)
    }
}

impl From<Millis> for Duration {
    fn from(span: Millis) -> Duration {
        Duration::from_millis(span.0)
    }
}

/// Not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a duration: write it like \"30s\", \"5m\", \"1h\" or \"250ms\"")]
pub struct NotADuration;

impl FromStr for Millis {
    type Err = NotADuration;

    fn from_str(text: &str) -> Result<Self, NotADuration> {
        let mut rest = text;
        let mut total: u64 = 0;
        if rest.is_empty() {
            return Err(NotADuration);
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or(NotADuration)?;
            let number: u64 = rest[..digits].parse().map_err(|_| NotADuration)?;
            rest = &rest[digits..];
            let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            let unit = match &rest[..letters] {
                "ms" => 1,
                "s" => 1_000,
                "m" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return Err(NotADuration),
            };
            rest = &rest[letters..];
            total = number.checked_mul(unit).and_then(|n| total.checked_add(n)).ok_or(NotADuration)?;
        }
        Ok(Self(total))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (unit, name) in [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")] {
            if rest >= unit {
                write!(f, "{}{name}", rest / unit)?;
                rest %= unit;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_print_the_same() {
        for (text, millis) in [("30s", 30_000), ("1m30s", 90_000), ("250ms", 250), ("2h", 7_200_000), ("0s", 0)] {
            assert_eq!(text.parse::<Millis>(), Ok(Millis(millis)));
            assert_eq!(Millis(millis).to_string(), text);
        }
        for bad in ["", "30", "s", "1x", "-1s", "1.5s", "99999999999999999999s", "18446744073709551615d"] {
            assert_eq!(bad.parse::<Millis>(), Err(NotADuration), "{bad}");
        }
    }
}
