//! The one seam in front of every call that the server sees.

use crate::adapters::halt;

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// A call on the server.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Call { $($(#[$doc])* $name,)* }

        impl Call {
            /// Every call.
            pub const ALL: &'static [Call] = &[$(Call::$name,)*];

            /// As `HOLDFAST_HALT` names it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Call::$name => $text,)* }
            }
        }
    };
}

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
