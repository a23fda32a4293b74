//! A question to a resource. It is on record before it is sent: that is said at once, with who is to answer, and the answer is
//! waited for by the deployment's events.

use holdfast_common::text::one_line;
use holdfast_proto::v1;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use crate::client::Client;
use crate::command::Context;
use crate::command::target::READING;
use crate::failure::Failure;
use crate::follow::{Follower, News};

/// The answer, where one comes in time. Says what is waited for meanwhile.
pub(super) async fn answer(
    client: &Client,
    deployment: &str,
    inquiry: &str,
    context: &mut Context,
) -> Result<Option<v1::Evidence>, Failure> {
    let until = Instant::now() + READING.into();
    let mut events = Follower::start(client.clone(), deployment.to_owned(), 1, true);
    loop {
        let Ok(news) = timeout_at(until, events.next()).await else { return Ok(None) };
        let event = match news? {
            Some(News::Event(event)) => event,
            Some(News::CaughtUp | News::Lost(_)) => continue,
            None => return Ok(None),
        };
        match word(&event, inquiry) {
            Some(Word::Asked { agent }) => waits(&event, &agent, deployment, context)?,
            Some(Word::Answered { evidence }) => return found(client, deployment, &evidence).await,
            None => {}
        }
    }
}

/// What an event says of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    /// It was put on record; this agent is to answer.
    Asked { agent: String },
    /// The answer is this piece of evidence.
    Answered { evidence: String },
}

/// Of that question; `None` where it is about anything else.
fn word(event: &v1::Event, inquiry: &str) -> Option<Word> {
    let body: Value = serde_json::from_str(&event.body_json).ok()?;
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let is_it = |pointer: &str| text(pointer).as_deref() == Some(inquiry);
    match event.kind.as_str() {
        "inquiry_opened" if is_it("/inquiry/id") => Some(Word::Asked { agent: text("/inquiry/agent")? }),
        "evidence_filed" if is_it("/evidence/body/inquiry") => Some(Word::Answered { evidence: text("/evidence/id")? }),
        _ => None,
    }
}

fn waits(event: &v1::Event, agent: &str, deployment: &str, context: &mut Context) -> Result<(), Failure> {
    let (agent, deployment) = (one_line(agent), one_line(deployment));
    context.printer.talk(&format!("on record: {}", one_line(&event.sentence)))?;
    Ok(context.printer.talk(&format!(
        "waiting at most {READING} for the answer of {agent}; one that comes later is kept: holdfast evidence {deployment}"
    ))?)
}

async fn found(client: &Client, deployment: &str, id: &str) -> Result<Option<v1::Evidence>, Failure> {
    let all = client.evidence(deployment).await?;
    Ok(all.evidence.into_iter().find(|piece| piece.id == id))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_words_on_the_same_question_are_taken_for_it() {
        let event = |kind: &str, body: Value| v1::Event {
            kind: kind.to_owned(),
            body_json: body.to_string(),
            ..v1::Event::default()
        };
        let asked = event("inquiry_opened", json!({ "inquiry": { "id": "q1", "agent": "web-02" } }));
        assert_eq!(word(&asked, "q1"), Some(Word::Asked { agent: "web-02".to_owned() }));
        assert_eq!(word(&asked, "q2"), None);
        let answered = event("evidence_filed", json!({ "evidence": { "id": "e1", "body": { "inquiry": "q1" } } }));
        assert_eq!(word(&answered, "q1"), Some(Word::Answered { evidence: "e1".to_owned() }));
        assert_eq!(word(&answered, "q2"), None);
        assert_eq!(word(&event("evidence_filed", json!({ "evidence": { "id": "e2", "body": {} } })), "q1"), None);
        assert_eq!(word(&event("of another version", Value::Null), "q1"), None);
    }
}
