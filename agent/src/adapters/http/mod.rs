//! A service behind a deployment API, which does what its target declares of it.
//!
//! ```text
//!   apply    read ──▶ submit ──▶ submitted ──▶ poll ─┐ until its word says an end
//!              │        ▲   └ no answer, 5xx ┘  ▲────┘
//!              │        └ under the same key, a few times. Without a key: never again
//!              └ applied before: nothing is sent
//!   inspect  resource, status, resource again until both say the same
//!   raise    resource, POST, resource: only what is read back counts
//! ```
//!
//! Invariant: a refusal is said only where nothing of the change is there and nothing will be, by the API's own word. What was not
//! answered is not known, and what was accepted is never called refused because it can't be read.
//!
//! | file | decides |
//! | --- | --- |
//! | `class.rs` | what a status says of a submission |
//! | `submit.rs` | what follows from it |
//! | `follow.rs` | when what was accepted is over |
//! | `read.rs` | what resource and operation are read to be |
//! | `access.rs` | what is shown to the API, and how that may be sent |

mod access;
mod ask;
mod calls;
mod class;
mod follow;
mod headers;
mod path;
mod raise;
mod read;
mod submit;

use holdfast_common::fence::Fence;
use holdfast_common::outcome::Reading;
use holdfast_common::system::Http;

use super::system::{Adapter, Applied, Credentials, Failure, Operation, Order, Raised};
pub use calls::Call;

use access::Access;
use ask::Ask;

/// One operation at one API.
pub(crate) struct Api {
    http: Http,
    owner: String,
    operation: Operation,
    ask: Ask,
}

impl Api {
    /// For one order, with one credential set.
    pub(crate) fn new(order: &Order, http: &Http, credentials: &Credentials) -> Result<Self, Failure> {
        let access = Access::read(http, credentials).map_err(Failure::Resource)?;
        let ask = Ask::new(http, access).map_err(Failure::Machinery)?;
        let owner = format!("{}/{}", order.target, order.resource);
        Ok(Self { http: http.clone(), owner, operation: order.operation.clone(), ask })
    }

    fn url(&self, path: &str) -> String {
        path::url(&self.http.url, path, &self.operation.id)
    }
}

impl Adapter for Api {
    fn examine(&self) -> Result<(), Failure> {
        self.examine_change()
    }

    fn apply(&self, fence: Fence) -> Result<Applied, Failure> {
        self.submit_once(fence)
    }

    fn inspect(&self) -> Result<Reading, Failure> {
        self.reading()
    }

    fn raise(&self, fence: Fence) -> Result<Raised, Failure> {
        self.raise_fence(fence)
    }
}
