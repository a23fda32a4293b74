//! One suite for every adapter: what it declares against what it does, on a real resource, with real processes.
//!
//! | what must hold | for |
//! | --- | --- |
//! | one operation, asked for twice or by two agents, takes effect once | adapters that read operations; others show that it does not |
//! | a stale fence is refused, also by a process that stood still at any of its calls | `enforce = fence` |
//! | a stale revision is refused in the same way | `enforce = revision` or `fence` |
//! | something stale does take effect | `enforce = none`, and of fences `enforce = revision`: the gap that is declared |
//! | what is read after a raise stays true | `enforce = fence` |
//! | a process that dies at any of its calls is read rightly, or as unknown; the next attempt completes it once | all, but for what repeats or read as unknown |
//! | a look tells no more than is there, and nothing of what can't be reached | all |
//! | a backup shows by its highest fence, another resource by its identity | `enforce = fence`; `inspect = operation` |
//!
//! Each test makes resources of its own. Calls that no pause came to are named, and fail.

mod command;
mod declared;
mod external;
mod flips;
mod folder;
mod git;
mod http;
mod killed;
mod lying;
mod once;
mod paused;
mod postgres;
mod reached;
mod release;
mod resource;
mod run;
mod scene;
mod stale;
mod subject;

pub(crate) use external::ExternalSubject;
pub(crate) use run::{Ended, Run};
pub(crate) use scene::named;
pub(crate) use subject::{Named, Subject, system};

/// Makes a fresh subject.
pub(crate) type Make<'a> = &'a dyn Fn() -> Box<dyn Subject>;

/// One test for each check, in a module of that name: `conformance!(release, super::ReleaseSubject::new);`
macro_rules! conformance {
    ($subject:ident, $new:expr) => {
        conformance! { $subject, $new,
            once::the_same_operation_twice_has_one_effect
            once::an_accepted_change_is_there_when_its_process_has_ended
            once::two_agents_with_one_operation_have_one_effect
            stale::a_stale_fence_is_refused_after_a_raise
            stale::a_stale_fence_is_refused_after_a_higher_one_was_used
            stale::a_stale_revision_is_refused
            stale::of_two_operations_the_later_fence_is_last
            stale::a_raise_is_repeatable_and_never_goes_down
            paused::an_attempt_paused_anywhere_changes_nothing_after_a_raise
            paused::a_look_during_the_effect_tells_no_more_than_is_there
            killed::an_attempt_killed_anywhere_is_read_rightly_and_completed_once
            resource::a_lost_answer_is_made_good_by_a_look
            resource::a_resource_that_is_down_proves_nothing
            resource::a_resource_that_was_restored_from_a_backup_shows_it
            resource::another_resource_in_its_place_has_another_identity
            resource::an_identity_stays_the_same
            declared::what_is_read_of_operations_is_what_is_declared
        }
    };
    ($subject:ident, $new:expr, $($file:ident::$check:ident)*) => {
        mod $subject {
            $(
                #[test]
                fn $check() {
                    $crate::conformance::$file::$check(&|| Box::new($new()));
                }
            )*
        }
    };
}

mod every {
    use super::command::CommandSubject;
    use super::external::ExternalSubject;
    use super::git::Repository;
    use super::http::HttpSubject;
    use super::postgres::PostgresSubject;
    use super::release::ReleaseSubject;

    conformance!(release, super::ReleaseSubject::new);
    conformance!(command, super::CommandSubject::new);
    conformance!(external, super::ExternalSubject::new);
    conformance!(git, super::Repository::new);
    conformance!(http, super::HttpSubject::new);
    conformance!(http_with_revisions, super::HttpSubject::with_revisions);
    conformance!(http_with_nothing, super::HttpSubject::with_nothing);
    conformance!(postgres, super::PostgresSubject::new);
    conformance!(postgres_outside_of_transactions, super::PostgresSubject::outside);
}
