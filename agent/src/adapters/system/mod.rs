//! Changing and reading a system that keeps a ledger of its own.
//!
//! ```text
//!   hands ──order──▶ our own program, alone ──▶ the system
//!                    with one credential set     refuses a stale fence or revision in the same atomic step as the effect
//!         ◀─reading─ exit and one line of JSON
//! ```
//!
//! Each call is a process of its own: it can be killed at its time, it has the credential set of its call and no other, and a
//! pause of it anywhere is what the system's own check is for. What a call may do, and with which set:
//!
//! | call | set | may |
//! | --- | --- | --- |
//! | examine | inspect | refuse what would be refused, before the permit |
//! | apply | deploy | change the resource once, under its fence |
//! | inspect | inspect | read |
//! | raise | fence | raise the highest fence |

mod call;
mod failure;
mod order;

pub(crate) use call::main;
pub use call::{Adapter, AfterRaise, Applied, Raised};
pub use failure::Failure;
pub use order::{Call, Credentials, Operation, Order};
