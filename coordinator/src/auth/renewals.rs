//! Certificates that each agent is given: a few at once, then one after another.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdfast_common::id::AgentName;

/// So many at once.
pub const AT_ONCE: u32 = 10;

/// Longest pause between two of them.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Of a certificate's life, the part that lies between two of them where that is shorter.
const PART: u32 = 10;

/// Who was given how many. As large as the number of agents: only who has a certificate gets in here.
#[derive(Debug)]
pub struct Renewals {
    pause: Duration,
    of: Mutex<BTreeMap<AgentName, Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: u32,
    since: Instant,
}

impl Renewals {
    /// Of certificates that are good for so long.
    #[must_use]
    pub fn of(life: Duration) -> Self {
        Self { pause: (life / PART).clamp(Duration::from_millis(1), LONGEST_PAUSE), of: Mutex::default() }
    }

    /// Whether the agent may have one now; it counts.
    pub fn take(&self, agent: &AgentName, now: Instant) -> bool {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = of.entry(agent.clone()).or_insert(Bucket { left: AT_ONCE, since: now });
        let passed = now.saturating_duration_since(bucket.since);
        let more = u32::try_from(passed.as_nanos() / self.pause.as_nanos()).unwrap_or(u32::MAX);
        if bucket.left.saturating_add(more) >= AT_ONCE {
            *bucket = Bucket { left: AT_ONCE, since: now };
        } else {
            bucket.left += more;
            bucket.since += self.pause * more;
        }
        let granted = bucket.left > 0;
        bucket.left = bucket.left.saturating_sub(1);
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_has_ten_certificates_at_once_and_then_one_at_a_time() {
        let (renewals, mut now) = (Renewals::of(Duration::from_secs(30 * 86_400)), Instant::now());
        let [one, other] = ["web-01", "web-02"].map(|name| AgentName::new(name).expect("a name"));
        assert!((0..AT_ONCE).all(|_| renewals.take(&one, now)));
        assert!(!renewals.take(&one, now) && renewals.take(&other, now));
        now += LONGEST_PAUSE;
        assert!(renewals.take(&one, now) && !renewals.take(&one, now));
        // Who asks all the time gets no less for it, and no more.
        let granted = (0..600).filter(|second| renewals.take(&one, now + Duration::from_secs(*second))).count();
        assert_eq!(granted, 9);
        now += Duration::from_secs(86_400);
        assert!((0..AT_ONCE).all(|_| renewals.take(&one, now)) && !renewals.take(&one, now));
    }

    #[test]
    fn a_short_life_has_a_short_pause() {
        let (renewals, now) = (Renewals::of(Duration::from_secs(6)), Instant::now());
        let agent = AgentName::new("web-01").expect("a name");
        assert!((0..100).all(|turn| renewals.take(&agent, now + Duration::from_secs(turn * 2))));
    }
}
