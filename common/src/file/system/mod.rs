//! Systems in a target's `[[resource]]`, and what a step's `with` asks of one.
//!
//! A step does not name its adapter. Which one it means its own keys say, so that a file can be judged without a target:
//!
//! | `with` has | asks for |
//! | --- | --- |
//! | `migrations` or `to` | a migration of a `postgres` resource |
//! | `commit` or `files` | a commit on a `git` resource |
//! | `body` | a request to an `http` resource |
//! | `settings` | a change by an `external` program |
//! | none of these | a release |

mod change;
mod external;
mod git;
mod http;
mod postgres;

pub(super) use change::{Asked, Fill, Kind};

use crate::adapter::Adapter;
use crate::file::reader::{Fields, Reader};
use crate::system::System;

/// The system that a resource's `with` describes. `None` where a fault was recorded, or for an adapter that is none.
pub(super) fn resource(reader: &mut Reader, adapter: Adapter, fields: &Fields<'_>) -> Option<System> {
    match adapter {
        Adapter::Postgres => postgres::read(reader, fields).map(System::Postgres),
        Adapter::Git => git::read(reader, fields).map(System::Git),
        Adapter::Http => http::read(reader, fields).map(Box::new).map(System::Http),
        Adapter::External => external::read(reader, fields).map(System::External),
        Adapter::Command | Adapter::Release | Adapter::Check => None,
    }
}
