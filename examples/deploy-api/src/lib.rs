//! A deployment API that truly checks: a model of what `enforce = "fence"` asks of a service.
//!
//! It changes one resource, whose state is a row: revision, identity, highest fence. A deployment is accepted, works for a while,
//! and takes effect in one transaction. Each of the three moments asks the same row:
//!
//! ```text
//!  POST /deployments ──▶ one transaction: fence, key, revision ──▶ queued ──▶ running ──┐
//!  POST /fence       ──▶ one transaction: highest fence; what is below and lives is refused │
//!                                                                                        ▼
//!                         one transaction: still running? fence? revision? ──▶ the new revision and "succeeded", or neither
//! ```
//!
//! So once `POST /fence` has answered, no deployment below that fence takes effect any more, whatever was accepted before. Work
//! that a crash interrupted goes on after the restart: nothing of it was visible before its last transaction.
//!
//! | request | token | answers |
//! | --- | --- | --- |
//! | `POST /deployments` | deploy | 202 accepted, 200 known; 409 fence or busy, 412 revision, 422 key used for another body, 400 |
//! | `GET /deployments/{operation}` | any | 200 with `state`: `queued`, `running`, `succeeded`, `failed`, `refused`; 404 never accepted |
//! | `GET /` | any | 200 with `identity`, `owner`, `revision`, `highest_fence`, `history` |
//! | `POST /fence` | fence | 200 with `highest_fence`, which is never lowered |

mod access;
mod answer;
mod options;
mod request;
mod serve;
mod store;
mod work;

pub use options::main;
