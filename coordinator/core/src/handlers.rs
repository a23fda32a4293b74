//! One input per file: what is checked, what is recorded, what is answered.

pub(crate) mod assign;
pub(crate) mod attest;
pub(crate) mod away;
pub(crate) mod back;
pub(crate) mod cancel;
pub(crate) mod deadline;
pub(crate) mod declare;
pub(crate) mod finding;
pub(crate) mod heard;
pub(crate) mod hold;
pub(crate) mod identity;
pub(crate) mod inquire;
pub(crate) mod journal;
pub(crate) mod offer;
pub(crate) mod permit;
pub(crate) mod recover;
pub(crate) mod report;
pub(crate) mod reread;
pub(crate) mod settle;
pub(crate) mod submit;
pub(crate) mod tick;
