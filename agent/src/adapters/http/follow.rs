//! Following what was accepted to its end.
//!
//! | what is read | then |
//! | --- | --- |
//! | a word for applied | applied |
//! | a word for applying | read again after the declared pause |
//! | a word for not applied | refused, or failed without effect |
//! | any other word, or 404 | not known |
//! | nothing now | read again, after ever longer pauses |
//!
//! It stays with what was accepted as long as nobody stops it: to give up would not stop the API.

use std::io::Write;
use std::time::Duration;

use holdfast_common::fence::Fence;
use holdfast_common::outcome::OperationState;

use super::Api;
use super::calls::{Call, before};
use super::read::{Status, Unread};
use crate::adapters::system::{Applied, Failure};

/// Longest pause while the status can't be read.
const LONGEST: Duration = Duration::from_secs(30);

impl Api {
    /// Reads the status until it says an end.
    pub(super) fn follow(&self, fence: Fence) -> Result<Applied, Failure> {
        let mut rest = Rest::new(self);
        loop {
            before(Call::Poll);
            match self.status() {
                Ok(Some(Status::Word { word, state })) => match state {
                    OperationState::Applied => return Ok(Applied::Now),
                    OperationState::Applying => rest.usual(),
                    OperationState::NotApplied => {
                        return Err(self.why(fence, format!("the API calls the operation {word:?}"), Failure::Content));
                    }
                    OperationState::Partial | OperationState::Unknown => {
                        return Err(Failure::Machinery(format!("the API calls the operation {word:?}")));
                    }
                },
                Ok(Some(Status::NotThere) | None) => {
                    return Err(Failure::Machinery("the API accepted the operation and does not know it".to_owned()));
                }
                Err(Unread::Final(why)) => return Err(Failure::Machinery(why)),
                Err(Unread::Passing(why)) => rest.longer(&why),
            }
        }
    }

    /// Reads the resource until it has the wanted revision: of an API that tells nothing else.
    pub(super) fn follow_revision(&self) -> Result<Applied, Failure> {
        let mut rest = Rest::new(self);
        loop {
            before(Call::Poll);
            match self.resource() {
                Ok(resource) => {
                    let revision = resource.and_then(|resource| resource.revision);
                    if revision.is_some() && revision == self.operation.revision {
                        return Ok(Applied::Now);
                    }
                    rest.usual();
                }
                Err(Unread::Final(why)) => return Err(Failure::Machinery(why)),
                Err(Unread::Passing(why)) => rest.longer(&why),
            }
        }
    }
}

/// The pause between two looks.
struct Rest {
    usual: Duration,
    next: Duration,
}

impl Rest {
    fn new(api: &Api) -> Self {
        let usual = Duration::from(api.http.poll);
        Self { usual, next: usual }
    }

    fn usual(&mut self) {
        self.next = self.usual;
        std::thread::sleep(self.usual);
    }

    /// The step's output tells why nothing is heard. Nobody may read it.
    fn longer(&mut self, why: &str) {
        let _ = writeln!(std::io::stderr(), "accepted; its status can't be read now, asking on: {why}");
        std::thread::sleep(self.next);
        self.next = (self.next * 2).min(LONGEST.max(self.usual));
    }
}
