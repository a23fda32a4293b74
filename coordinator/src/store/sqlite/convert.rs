//! Between rows and domain types. What does not read back is damage, named by its row.

use std::fmt::Display;
use std::str::FromStr;

use holdfast_common::fence::Fence;
use holdfast_coordinator_core::state::{AttemptState, DeploymentState};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::store::Error;

/// Domain numbers are unsigned, SQLite's are signed: what does not fit is refused rather than wrapped.
pub(super) fn number(what: &'static str, number: u64) -> Result<i64, Error> {
    i64::try_from(number).map_err(|_| Error::Wall { rule: format!("{what} {number} is too large for the store") })
}

pub(super) fn unsigned(what: &'static str, number: i64) -> Result<u64, Error> {
    u64::try_from(number).map_err(|error| Error::damaged(what, error))
}

pub(super) fn fence(number: i64) -> Result<Fence, Error> {
    Fence::from_u64(unsigned("a fence", number)?).ok_or_else(|| Error::damaged("a fence", "zero"))
}

pub(super) fn parse<T>(what: &'static str, text: &str) -> Result<T, Error>
where
    T: FromStr,
    T::Err: Display,
{
    text.parse().map_err(|error| Error::damaged(format!("{what} {text:?}"), error))
}

pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain data serializes")
}

pub(super) fn from_json<T: DeserializeOwned>(what: &'static str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::damaged(what, error))
}

/// One word, as in JSON.
pub(super) fn deployment_state(state: DeploymentState) -> String {
    word(&state)
}

pub(super) fn parse_deployment_state(text: &str) -> Result<DeploymentState, Error> {
    serde_json::from_value(Value::from(text)).map_err(|error| Error::damaged("a deployment's state", error))
}

/// One word, or `declined:<reason>`.
pub(super) fn attempt_state(state: AttemptState) -> String {
    word(&state)
}

pub(super) fn parse_attempt_state(text: &str) -> Result<AttemptState, Error> {
    let value = match text.split_once(':') {
        Some((state, reason)) => Value::Object([(state.to_owned(), Value::from(reason))].into_iter().collect()),
        None => Value::from(text),
    };
    serde_json::from_value(value).map_err(|error| Error::damaged("an attempt's state", error))
}

fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("plain data serializes");
    if let Some(word) = value.as_str() {
        return word.to_owned();
    }
    let map = value.as_object().expect("an enum is a word or an object");
    let (name, reason) = map.iter().next().expect("an enum with content has one key");
    format!("{name}:{}", reason.as_str().expect("its content is one word"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_common::report::DeclineReason;

    #[test]
    fn states_are_words_that_read_back() {
        for state in [AttemptState::Offered, AttemptState::Declined(DeclineReason::FenceRegression)] {
            assert_eq!(parse_attempt_state(&attempt_state(state)).unwrap(), state);
        }
        assert_eq!(attempt_state(AttemptState::Declined(DeclineReason::Busy)), "declined:busy");
        assert_eq!(deployment_state(DeploymentState::Uncertain), "uncertain");
        assert_eq!(parse_deployment_state("held").unwrap(), DeploymentState::Held);
        assert!(parse_deployment_state("unknown").is_err());
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        assert!(number("a fence", u64::MAX).is_err());
        assert!(unsigned("a number", -1).is_err());
        assert!(fence(0).is_err());
    }
}
