//! Reading the resource, and what became of the operation there.
//!
//! | status of the operation | resource | the operation is |
//! | --- | --- | --- |
//! | a declared word | | what it was declared to mean |
//! | any other word, or none | | unknown |
//! | 404 | was read, with its identity | not applied |
//! | 404 | none is declared | unknown: nothing says whom we asked |
//! | none is declared | has the wanted revision | applied |
//! | none is declared | has the one from before | not applied |
//! | none is declared | has any other | unknown |
//!
//! Whatever can't be read is an error.

use holdfast_agent_core::outcome::Look;
use holdfast_common::fence::Fence;
use holdfast_common::id::Revision;
use holdfast_common::outcome::{OperationState, Reading};
use serde_json::Value;

use super::Api;
use super::ask::Answer;
use super::calls::{Call, before};
use crate::adapters::system::Failure;

/// Looks until resource and operation are of one moment.
const LOOKS: usize = 5;

/// The resource as the API tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resource {
    pub(super) identity: String,
    pub(super) revision: Option<Revision>,
    pub(super) highest_fence: Option<Fence>,
}

/// The operation as the API tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// A word, and what it means.
    Word { word: String, state: OperationState },
    /// 404: the API was never asked to do it.
    NotThere,
}

/// Why it could not be read.
#[derive(Clone, Debug)]
pub(super) enum Unread {
    /// Another try may go well.
    Passing(String),
    /// It would not.
    Final(String),
}

impl From<Unread> for Failure {
    fn from(unread: Unread) -> Self {
        match unread {
            Unread::Passing(why) => Failure::Transient(why),
            Unread::Final(why) => Failure::Resource(why),
        }
    }
}

impl Api {
    /// Both, of one moment: the resource is read before and after the operation.
    pub(super) fn steady(&self) -> Result<(Option<Resource>, Option<Status>), Unread> {
        let mut before = self.resource()?;
        for _ in 0..LOOKS {
            let Some(status) = self.status()? else { return Ok((before, None)) };
            let after = self.resource()?;
            if before == after {
                return Ok((after, Some(status)));
            }
            before = after;
        }
        Err(Unread::Passing(format!("the resource changed during each of {LOOKS} looks")))
    }

    pub(super) fn reading(&self) -> Result<Reading, Failure> {
        before(Call::Read);
        let (resource, status) = self.steady()?;
        if resource.is_none() && status.is_none() {
            return Err(Failure::Resource("the target declares nothing that can be read at this API".to_owned()));
        }
        let (state, detail) = self.judge(resource.as_ref(), status.as_ref());
        Ok(Reading {
            resource_identity: resource
                .as_ref()
                .map_or_else(|| format!("http:{}", self.http.url), |it| it.identity.clone()),
            state,
            revision: resource.as_ref().and_then(|it| it.revision.clone()),
            active: (state == OperationState::Applying).then(|| self.operation.id.clone()),
            highest_fence: resource.and_then(|it| it.highest_fence),
            retained: Vec::new(),
            detail,
        })
    }

    fn judge(&self, resource: Option<&Resource>, status: Option<&Status>) -> (OperationState, String) {
        match (status, resource) {
            (Some(Status::Word { word, state }), _) => (*state, format!("the API calls it {word:?}")),
            (Some(Status::NotThere), Some(_)) => {
                (OperationState::NotApplied, "the API was never asked to do it".to_owned())
            }
            (Some(Status::NotThere), None) => {
                (OperationState::Unknown, "the API does not know it, and nothing tells which API this is".to_owned())
            }
            (None, resource) => {
                (self.by_revision(resource), "the API tells its revision, and operations not apart".to_owned())
            }
        }
    }

    pub(super) fn by_revision(&self, resource: Option<&Resource>) -> OperationState {
        let observed = resource.and_then(|resource| resource.revision.as_ref());
        let (Some(observed), Some(wanted)) = (observed, &self.operation.revision) else {
            return OperationState::Unknown;
        };
        match Look::by_revision(observed, wanted, self.operation.expected_revision.as_ref()) {
            Look::Read(state) => state,
            Look::CannotInspect | Look::NotRead { .. } => OperationState::Unknown,
        }
    }

    /// `None`: the target declares none.
    pub(super) fn resource(&self) -> Result<Option<Resource>, Unread> {
        let Some(path) = &self.http.resource else { return Ok(None) };
        let answer = readable(self.get(path)?)?;
        let value = answer.json().map_err(Unread::Final)?;
        self.is_ours(&value)?;
        let (pointers, told) = (&self.http.pointers, |pointer: &str| text_at(&value, pointer));
        let identity = told(&pointers.identity)
            .ok_or_else(|| Unread::Final(format!("the resource tells no identity at {}", pointers.identity)))?;
        let revision = told(&pointers.revision).map(Revision::new).transpose();
        let fence = told(&pointers.fence).map(|text| text.parse::<u64>()).transpose();
        Ok(Some(Resource {
            identity,
            revision: revision
                .map_err(|error| Unread::Final(format!("the resource's revision can't be used: {error}")))?,
            highest_fence: fence
                .map_err(|_| Unread::Final(format!("what is at {} is no fence", pointers.fence)))?
                .and_then(Fence::from_u64),
        }))
    }

    fn is_ours(&self, value: &Value) -> Result<(), Unread> {
        let Some(pointer) = &self.http.pointers.owner else { return Ok(()) };
        match text_at(value, pointer) {
            Some(owner) if owner == self.owner => Ok(()),
            Some(owner) => Err(Unread::Final(format!("the resource belongs to {owner:?}, not to {:?}", self.owner))),
            None => Err(Unread::Final(format!("the resource does not tell at {pointer} who it belongs to"))),
        }
    }

    /// `None`: the target declares none.
    pub(super) fn status(&self) -> Result<Option<Status>, Unread> {
        let Some(path) = &self.http.status else { return Ok(None) };
        let answer = self.get(path)?;
        if answer.status == 404 {
            return Ok(Some(Status::NotThere));
        }
        let value = readable(answer)?.json().map_err(Unread::Final)?;
        let word = text_at(&value, &self.http.pointers.state).unwrap_or_default();
        let state = self.meaning(&word);
        Ok(Some(Status::Word { word, state }))
    }

    fn meaning(&self, word: &str) -> OperationState {
        let words = &self.http.words;
        let meanings = [
            (&words.applied, OperationState::Applied),
            (&words.applying, OperationState::Applying),
            (&words.not_applied, OperationState::NotApplied),
            (&words.partial, OperationState::Partial),
        ];
        let found = meanings.iter().find(|(words, _)| words.iter().any(|known| known == word));
        found.map_or(OperationState::Unknown, |(_, state)| *state)
    }

    fn get(&self, path: &str) -> Result<Answer, Unread> {
        self.ask.get(&self.url(path)).map_err(|lost| Unread::Passing(lost.why))
    }
}

/// A server's trouble passes. That we are not let in, or sent elsewhere, does not.
fn readable(answer: Answer) -> Result<Answer, Unread> {
    match answer.status {
        _ if answer.is_success() => Ok(answer),
        408 | 425 | 429 | 500..=599 => Err(Unread::Passing(answer.said)),
        _ => Err(Unread::Final(answer.said)),
    }
}

/// A text or a number, as text. `null` and an empty text are none.
fn text_at(value: &Value, pointer: &str) -> Option<String> {
    match value.pointer(pointer)? {
        Value::String(text) => (!text.is_empty()).then(|| text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}
