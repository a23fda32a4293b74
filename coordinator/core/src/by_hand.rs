//! What a step may have left half done that nothing proves, and how a person looks.
//!
//! ```text
//! the step                                    may be half done             a person looks at
//! migrates a schema, `transaction = false`    the statement of one file    ledger, sessions, invalid indexes
//! any other                                   as its reading tells         -
//! ```

use holdfast_common::spec::{ResourceAdapter, ResourceSpec, StepBody, StepSpec};
use holdfast_common::system::{Change, Migrate, Postgres, System};

/// For the person who looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByHand {
    /// What may be half done, in one sentence.
    pub half_done: String,
    /// Where to look, and for what.
    pub look: Vec<String>,
}

/// Of a step on that resource; `None` where its reading says all that there is to say.
pub(crate) fn of(step: &StepSpec, resource: &ResourceSpec) -> Option<ByHand> {
    let StepBody::System(Change::Migrate(Migrate { transaction: false, .. })) = &step.body else { return None };
    let ResourceAdapter::System(System::Postgres(postgres)) = &resource.adapter else { return None };
    Some(outside_of_a_transaction(postgres))
}

/// Such a file is one statement between two rows of the ledger: *begun* and *done*.
fn outside_of_a_transaction(Postgres { schema, .. }: &Postgres) -> ByHand {
    let schema = schema.replace('\'', "''");
    let half_done = "the files before the one that was begun are done, those after it were not begun; that one is a single \
                     statement outside of a transaction: it may still run, be done without its row saying so, or have left a part, \
                     like an index that is not valid, and no fence takes it back";
    let look = [
        format!(
            "which file: SELECT version, name, begun_at, session FROM holdfast.migration WHERE schema_name = '{schema}' AND \
             done_at IS NULL; no row means that none is open"
        ),
        "whether it runs: SELECT pid, application_name, state, query FROM pg_stat_activity WHERE application_name LIKE 'holdfast:%'"
            .to_owned(),
        "what an index came to: SELECT indexrelid::regclass, indisvalid FROM pg_index WHERE NOT indisvalid; for anything else, what \
         the file's own statement changes"
            .to_owned(),
        "then put the ledger right as docs/postgres.md says (an index was begun and nobody saw it end), and attest what is there"
            .to_owned(),
    ];
    ByHand { half_done: half_done.to_owned(), look: look.into() }
}
