//! Answers: JSON, always.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use crate::store::{Deployment, Submitted};

pub(crate) type Answer = Response<Full<Bytes>>;

pub(crate) fn json(status: StatusCode, value: &Value) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(value.to_string())));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

pub(crate) fn refused(status: StatusCode, reason: &str, more: &Value) -> Answer {
    let mut value = json!({ "reason": reason });
    if let (Some(all), Some(more)) = (value.as_object_mut(), more.as_object()) {
        all.extend(more.clone());
    }
    json(status, &value)
}

/// What became of a submission.
pub(crate) fn submitted(submitted: &Submitted) -> Answer {
    match submitted {
        Submitted::Accepted(deployment) => json(StatusCode::ACCEPTED, &shown(deployment)),
        Submitted::Known(deployment) => json(StatusCode::OK, &shown(deployment)),
        Submitted::FencedOff { highest } => {
            refused(StatusCode::CONFLICT, "fenced_off", &json!({ "highest_fence": highest }))
        }
        Submitted::Busy { with } => refused(StatusCode::CONFLICT, "busy", &json!({ "with": with })),
        Submitted::Revision { found } => {
            refused(StatusCode::PRECONDITION_FAILED, "revision", &json!({ "revision": found }))
        }
        Submitted::OtherBody => refused(StatusCode::UNPROCESSABLE_ENTITY, "key_used_for_another_body", &json!({})),
    }
}

pub(crate) fn shown(deployment: &Deployment) -> Value {
    json!({
        "operation": deployment.key,
        "state": deployment.state.word(),
        "revision": deployment.revision,
        "fence": deployment.fence,
        "reason": deployment.reason,
    })
}
