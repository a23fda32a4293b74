//! From a declared path to the URL that is asked.

use std::fmt::Write;

use holdfast_common::id::OperationId;

/// The path behind the URL, its gap filled with the operation id.
pub(super) fn url(base: &str, path: &str, operation: &OperationId) -> String {
    let base = base.trim_end_matches('/');
    format!("{base}{}", path.replace("{operation}", &escaped(&operation.to_string())))
}

/// One part of a path: what is not plain is written as `%XX`.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            write!(escaped, "%{byte:02X}").expect("a string takes everything");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_common::id::{DeploymentId, StepName};

    #[test]
    fn an_operation_is_one_part_of_the_path() {
        let step = StepName::new("a.b_c-d").expect("a name");
        let operation = OperationId { deployment: DeploymentId(uuid::Uuid::nil()), step };
        assert_eq!(
            url("http://api/v1/", "/ops/{operation}/state?x=1", &operation),
            "http://api/v1/ops/00000000-0000-0000-0000-000000000000%2Fa.b_c-d/state?x=1"
        );
        assert_eq!(url("http://api", "/", &operation), "http://api/");
        assert_eq!(escaped("ä %/"), "%C3%A4%20%25%2F");
    }
}
