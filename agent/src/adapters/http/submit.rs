//! Submitting a change, and following it to its end.
//!
//! | what is known | then |
//! | --- | --- |
//! | the status says applied, before anything is sent | nothing is sent |
//! | accepted | the status is polled until its word says an end; without a status, 202 is followed by the revision |
//! | transient, and every earlier request was answered so or never left | exit 75 |
//! | transient, after a request whose answer was lost | as no answer: that request may be at work |
//! | refused | the status is read: what is applied or at work is not refused |
//! | no answer | again under the same key, a few times; then, or without a key, the status is read |

use std::time::Duration;

use holdfast_common::adapter::Enforce;
use holdfast_common::fence::Fence;
use holdfast_common::outcome::OperationState;
use holdfast_common::system::{Change, Submit};
use reqwest::Method;
use reqwest::header::HeaderMap;

use super::Api;
use super::ask::{Answer, Lost};
use super::calls::{Call, before};
use super::class::{Said, class};
use super::read::{Resource, Status, Unread};
use crate::adapters::system::{Applied, Failure};

/// Requests under one key, the first included.
const SENDS: u32 = 6;
/// Before the second request; each later one waits twice as long.
const FIRST_DELAY: Duration = Duration::from_millis(250);

/// What the requests of this call have come to.
#[derive(Clone, Debug, Default)]
struct Sent {
    /// Whether one may have reached the API without an answer that says what it did.
    unanswered: bool,
    last: String,
}

impl Api {
    /// Says what would be refused.
    pub(super) fn examine_change(&self) -> Result<(), Failure> {
        self.headers(self.change()?, None)?;
        let (resource, status) = self.steady()?;
        match status {
            None | Some(Status::NotThere) => self.expects(resource.as_ref()),
            Some(Status::Word { state, .. }) => match state {
                OperationState::NotApplied => self.expects(resource.as_ref()),
                // It began before: what the resource is now, it may be through it.
                OperationState::Applying
                | OperationState::Applied
                | OperationState::Partial
                | OperationState::Unknown => Ok(()),
            },
        }
    }

    pub(super) fn submit_once(&self, fence: Fence) -> Result<Applied, Failure> {
        let change = self.change()?;
        let headers = self.headers(change, Some(fence))?;
        before(Call::Read);
        let has_key = self.http.headers.idempotency.is_some();
        match (self.status()?, has_key) {
            (Some(Status::Word { state: OperationState::Applied, .. }), _) => return Ok(Applied::Before),
            (Some(Status::Word { state: OperationState::Applying, .. }), false) => return self.follow(fence),
            (Some(Status::Word { word, state: OperationState::Partial | OperationState::Unknown }), false) => {
                let why = format!("the API calls the operation {word:?}, and it takes no key to send it again");
                return Err(Failure::Machinery(why));
            }
            (None | Some(Status::NotThere | Status::Word { .. }), _) => {}
        }
        // Of another owner it is none of ours. What the API is not told to compare is compared here, as well as that goes.
        let resource = self.resource()?;
        if self.http.headers.expected.is_none() {
            self.expects(resource.as_ref())?;
        }
        self.send(change, &headers, fence)
    }

    fn send(&self, change: &Submit, headers: &HeaderMap, fence: Fence) -> Result<Applied, Failure> {
        let sends = if self.http.headers.idempotency.is_some() { SENDS } else { 1 };
        let mut sent = Sent::default();
        for turn in 0..sends {
            if turn > 0 {
                std::thread::sleep(FIRST_DELAY * 2_u32.pow(turn - 1));
            }
            before(Call::Submit);
            let answer = self.request(change, headers);
            before(Call::Submitted);
            let answer = match answer {
                Ok(answer) => answer,
                Err(lost) => {
                    sent.lost(&lost);
                    continue;
                }
            };
            match class(answer.status, &self.http.transient) {
                Said::Accepted => return self.accepted(&answer, fence),
                Said::Refused => return self.refused(&answer, &sent, fence),
                Said::Transient if !sent.unanswered => return Err(Failure::Transient(answer.said)),
                Said::Transient => sent.last = answer.said,
                Said::Nothing => sent.answered_nothing(answer),
            }
        }
        self.unanswered(&sent, fence)
    }

    fn request(&self, change: &Submit, headers: &HeaderMap) -> Result<Answer, Lost> {
        let method = if self.http.method == "PUT" { Method::PUT } else { Method::POST };
        self.ask.send(method, &self.url(&self.http.submit), headers.clone(), change.body.clone())
    }

    fn accepted(&self, answer: &Answer, fence: Fence) -> Result<Applied, Failure> {
        match (&self.http.status, &self.http.resource, answer.status) {
            (Some(_), _, _) => self.follow(fence),
            (None, Some(_), 202) => self.follow_revision(),
            (None, None, 202) => {
                Err(Failure::Machinery("accepted, and the target declares nothing that tells its end".to_owned()))
            }
            (None, _, _) => Ok(Applied::Now),
        }
    }

    /// A refusal, once it was read back that nothing of the operation is there.
    fn refused(&self, answer: &Answer, sent: &Sent, fence: Fence) -> Result<Applied, Failure> {
        let said = || answer.said.clone();
        let status = self.status().map_err(|unread| {
            Failure::Machinery(format!("{}; it could not be read back: {}", said(), Failure::from(unread)))
        })?;
        match status {
            Some(Status::Word { word, state }) => match state {
                OperationState::Applied => Ok(Applied::Before),
                OperationState::Applying => self.follow(fence),
                OperationState::NotApplied => Err(self.refusal_of_all(answer, sent, fence)),
                OperationState::Partial | OperationState::Unknown => {
                    Err(Failure::Machinery(format!("{}; it calls the operation {word:?}", said())))
                }
            },
            None if self.has_wanted_revision() => Ok(Applied::Before),
            None | Some(Status::NotThere) => Err(self.refusal_of_all(answer, sent, fence)),
        }
    }

    /// One request was refused. One before it that nobody answered may be on its way still: only what the resource itself
    /// holds against all of them refuses that too.
    fn refusal_of_all(&self, answer: &Answer, sent: &Sent, fence: Fence) -> Failure {
        let refusal = self.refusal(answer, fence);
        let is_held = matches!(refusal, Failure::FencedOff { .. } | Failure::Revision { .. });
        if !sent.unanswered || (is_held && self.http.enforce != Enforce::None) {
            return refusal;
        }
        Failure::Machinery(format!("{refusal}; what became of a request before it is not known: {}", sent.last))
    }

    fn refusal(&self, answer: &Answer, fence: Fence) -> Failure {
        match answer.status {
            400 | 413 | 414 | 415 | 422 | 431 => Failure::Content(answer.said.clone()),
            401 | 403 | 404 | 405 | 410 => Failure::Resource(answer.said.clone()),
            _ => self.why(fence, answer.said.clone(), Failure::Resource),
        }
    }

    /// Of a change of which nothing is there: fence or revision, if the resource shows it.
    pub(super) fn why(&self, fence: Fence, said: String, else_it_is: fn(String) -> Failure) -> Failure {
        let Ok(Some(resource)) = self.resource() else { return else_it_is(said) };
        if resource.highest_fence.is_some_and(|highest| highest > fence) {
            return Failure::FencedOff { fence, highest: resource.highest_fence };
        }
        self.expects(Some(&resource)).err().unwrap_or_else(|| else_it_is(said))
    }

    /// Nobody answered what became of it.
    fn unanswered(&self, sent: &Sent, fence: Fence) -> Result<Applied, Failure> {
        if !sent.unanswered {
            return Err(Failure::Transient(format!("nothing was sent: {}", sent.last)));
        }
        let not_known = || Failure::Machinery(format!("what became of it is not known: {}", sent.last));
        match self.status() {
            Ok(Some(Status::Word { state, .. })) => match state {
                OperationState::Applied => Ok(Applied::Now),
                OperationState::Applying => self.follow(fence),
                // The word may be of an earlier go, and the request on its way.
                OperationState::NotApplied | OperationState::Partial | OperationState::Unknown => Err(not_known()),
            },
            Ok(None) if self.has_wanted_revision() => Ok(Applied::Now),
            // A request may be under way still: that the API does not know it yet is no end.
            Ok(Some(Status::NotThere) | None) | Err(Unread::Passing(_) | Unread::Final(_)) => Err(not_known()),
        }
    }

    /// All that an API tells that tells no operations apart.
    fn has_wanted_revision(&self) -> bool {
        let resource = self.resource().ok().flatten();
        self.by_revision(resource.as_ref()) == OperationState::Applied
    }

    fn expects(&self, resource: Option<&Resource>) -> Result<(), Failure> {
        let (Some(expected), Some(resource)) = (&self.operation.expected_revision, resource) else { return Ok(()) };
        // Where operations are not told apart, the wanted revision may be this one's own work.
        let is_done = self.http.status.is_none() && self.by_revision(Some(resource)) == OperationState::Applied;
        if is_done || resource.revision.as_ref() == Some(expected) {
            return Ok(());
        }
        Err(Failure::Revision { expected: expected.clone(), found: resource.revision.clone() })
    }

    fn change(&self) -> Result<&Submit, Failure> {
        match &self.operation.change {
            Some(Change::Submit(submit)) => Ok(submit),
            Some(Change::Migrate(_) | Change::Commit(_) | Change::External(_)) | None => {
                Err(Failure::Content("the step asks nothing of an API".to_owned()))
            }
        }
    }
}

impl Sent {
    fn lost(&mut self, lost: &Lost) {
        self.unanswered |= lost.sent;
        self.last.clone_from(&lost.why);
    }

    fn answered_nothing(&mut self, answer: Answer) {
        self.unanswered = true;
        self.last = answer.said;
    }
}
