//! The protobuf JSON mapping, from the descriptors.

use std::sync::LazyLock;

use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(crate::FILE_DESCRIPTOR_SET).expect("the build made these descriptors from the same files")
});

/// Every message, service and method of the protocol.
#[must_use]
pub fn pool() -> &'static DescriptorPool {
    &POOL
}

/// The JSON form of a message of package `holdfast.v1`. Fields at their default are written too, so that a reader
/// need not know the schema to see that something is empty.
#[must_use]
pub fn to_json<M: prost::Message>(name: &str, message: &M) -> serde_json::Value {
    let descriptor = POOL.get_message_by_name(&format!("holdfast.v1.{name}")).expect("callers name our own messages");
    let dynamic =
        DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice()).expect("it was encoded just now");
    let options = SerializeOptions::new().skip_default_fields(false);
    dynamic
        .serialize_with_options(serde_json::value::Serializer, &options)
        .expect("a value serializer takes every message")
}
