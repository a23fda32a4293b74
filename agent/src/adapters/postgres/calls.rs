//! The one seam in front of every call that the server sees.

use crate::adapters::halt::{self, calls};

calls! {
    /// Opens the session.
    Connect = "connect";
    /// Asks which sessions run the operation.
    Backends = "backends";
    /// Reads the ledger.
    Read = "read";
    /// Runs a migration, in the transaction of its row.
    Migrate = "migrate";
    /// Records an operation that finds its revision there.
    Finish = "finish";
    /// Has the server read a statement that is to run outside of a transaction.
    Parse = "parse";
    /// Records that a statement outside of a transaction begins.
    Begin = "begin";
    /// Runs it.
    Statement = "statement";
    /// Records that it is done.
    End = "end";
    /// Raises the fence.
    Raise = "raise";
    /// Ends the session.
    Close = "close";
}

/// Right before a call.
pub(super) fn before(call: Call) {
    halt::before(call.name());
}
