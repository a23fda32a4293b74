//! Wrong join tokens, counted for each address: answered ever more slowly, then not looked at.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So many wrong tokens shut an address out.
pub const MOST_WRONG: u32 = 10;

/// For so long, and for so long one is remembered.
pub const SHUT_OUT_FOR: Duration = Duration::from_secs(600);

/// Longer for each one more.
const SLOWER_BY: Duration = Duration::from_millis(50);

/// Addresses that are remembered. Who has more of them than this guesses no better for it: a token has 256 bits.
const MOST_ADDRESSES: usize = 4096;

/// Who guessed, and how often.
#[derive(Debug, Default)]
pub struct Guesses {
    of: Mutex<BTreeMap<IpAddr, Wrong>>,
}

#[derive(Clone, Copy, Debug)]
struct Wrong {
    count: u32,
    last: Instant,
}

/// What a wrong token comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Refused, after a while.
    After(Duration),
    /// Refused, and with it whatever comes from there for a while.
    ShutOut,
}

impl Guesses {
    /// Whether nothing from there is looked at.
    #[must_use]
    pub fn shut_out(&self, address: IpAddr, now: Instant) -> bool {
        let of = self.lock();
        of.get(&place(address)).is_some_and(|wrong| wrong.count >= MOST_WRONG && !wrong.is_over(now))
    }

    /// Counts a wrong one.
    pub fn wrong(&self, address: IpAddr, now: Instant) -> Answer {
        let mut of = self.lock();
        let place = place(address);
        if of.len() >= MOST_ADDRESSES && !of.contains_key(&place) {
            of.retain(|_, wrong| !wrong.is_over(now));
            if of.len() >= MOST_ADDRESSES {
                of.pop_first();
            }
        }
        let wrong = of.entry(place).or_insert(Wrong { count: 0, last: now });
        if wrong.is_over(now) {
            wrong.count = 0;
        }
        *wrong = Wrong { count: wrong.count.saturating_add(1), last: now };
        if wrong.count >= MOST_WRONG { Answer::ShutOut } else { Answer::After(SLOWER_BY * wrong.count) }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Wrong>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wrong {
    fn is_over(self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= SHUT_OUT_FOR
    }
}

/// Who has one address of IPv6 has 64 bits of them.
fn place(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn each_wrong_token_is_answered_later_and_the_tenth_shuts_the_address_out_for_a_while() {
        let (guesses, now, here) = (Guesses::default(), Instant::now(), at("192.0.2.1"));
        let mut last = Duration::ZERO;
        for _ in 1..MOST_WRONG {
            let Answer::After(pause) = guesses.wrong(here, now) else { panic!("too early") };
            assert!(pause > last && !guesses.shut_out(here, now));
            last = pause;
        }
        assert_eq!(guesses.wrong(here, now), Answer::ShutOut);
        assert!(guesses.shut_out(here, now) && !guesses.shut_out(at("192.0.2.2"), now));
        assert!(guesses.shut_out(at("::ffff:192.0.2.1"), now), "the same address in other words");
        let later = now + SHUT_OUT_FOR;
        assert!(!guesses.shut_out(here, later));
        assert_eq!(guesses.wrong(here, later), Answer::After(SLOWER_BY));
    }

    #[test]
    fn one_host_of_ipv6_is_one_address_and_no_number_of_them_fills_the_memory() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        for last in 0..MOST_WRONG {
            let _ = guesses.wrong(at(&format!("2001:db8::{last:x}")), now);
        }
        assert!(guesses.shut_out(at("2001:db8::ffff"), now));
        for number in 0..u32::try_from(MOST_ADDRESSES).expect("small") + 10 {
            let _ = guesses.wrong(IpAddr::V4(number.into()), now);
        }
        assert!(guesses.lock().len() <= MOST_ADDRESSES);
    }
}
