use prost::Message;
use serde_json::Value;

/// An answer of the API as programs get it: protobuf's JSON mapping, but what is recorded as JSON is shown as JSON, in
/// `body`, and not as a text of it in `bodyJson`.
#[must_use]
pub fn answer<M: Message>(kind: &str, message: &M) -> Value {
    opened(holdfast_proto::json::to_json(kind, message))
}

fn opened(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(fields.into_iter().map(|(key, value)| field(key, value)).collect()),
        Value::Array(items) => Value::Array(items.into_iter().map(opened).collect()),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}

fn field(key: String, value: Value) -> (String, Value) {
    match (key.as_str(), &value) {
        ("bodyJson", Value::String(text)) => match serde_json::from_str(text) {
            Ok(body) => ("body".to_owned(), body),
            // Not ours to judge: it stays as it came.
            Err(_) => (key, value),
        },
        _ => (key, opened(value)),
    }
}

#[cfg(test)]
mod tests {
    use holdfast_proto::v1;

    use super::*;

    #[test]
    fn what_is_recorded_as_json_is_shown_as_json_wherever_it_stands() {
        let body = r#"{"event":"permit_granted","fence":1099511627818,"bodyJson":"{}"}"#;
        let event = v1::Event { sequence: 7, body_json: body.to_owned(), ..v1::Event::default() };
        let whole = answer("WatchEventsResponse", &v1::WatchEventsResponse { event: Some(event) });
        assert_eq!(whole["event"]["body"]["fence"].as_u64(), Some(1_099_511_627_818));
        assert_eq!(whole["event"]["body"]["bodyJson"], "{}", "what is inside stays as it is");
        assert_eq!(whole["event"].get("bodyJson"), None);
        let broken = v1::Event { body_json: "{".to_owned(), ..v1::Event::default() };
        assert_eq!(answer("Event", &broken)["bodyJson"], "{");
    }
}
