//! Holdfast's wire protocol.
//!
//! [`v1`] is generated from `proto/holdfast/v1`. [`convert`] is the only mapping between it and the vocabulary of
//! `holdfast-common`: inside the programs there are no half-valid values. [`json`] is the protobuf JSON mapping,
//! [`problem`] how a refusal travels in a status.

pub mod convert;
pub mod json;
pub mod problem;

/// The generated types and services of package `holdfast.v1`.
#[allow(missing_docs, clippy::all, unreachable_pub, clippy::wildcard_enum_match_arm)]
pub mod v1 {
    tonic::include_proto!("holdfast.v1");
}

/// The compiled descriptors, for reflection and for walking every method.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/holdfast.bin"));

/// The protocol version that this build speaks.
pub const PROTOCOL_VERSION: u32 = 1;

/// The largest message that either side sends or takes, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;
