use std::collections::BTreeMap;

use holdfast_common::text::{bounded, one_line};
use holdfast_common::time::Wall;
use holdfast_proto::v1;
use serde_json::Value;

use crate::output::{Mark, Terminal, Tone, time};
use crate::view::stamp;

/// Longest name of a speaker that is shown, in bytes.
const NAME: usize = 64;

/// Says of each event who saw it. Remembers which agent has which attempt.
#[derive(Debug, Default)]
pub struct Teller {
    agents: BTreeMap<String, String>,
}

/// Who saw an event, and how it came to be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// How; `None` for what the coordinator recorded of its own.
    pub mark: Option<Mark>,
    /// Who.
    pub who: String,
}

impl Teller {
    /// Of one more event.
    pub fn told(&mut self, event: &v1::Event) -> Told {
        let body: Value = serde_json::from_str(&event.body_json).unwrap_or(Value::Null);
        let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let attempt = text("/attempt").unwrap_or_default();
        if let (false, Some(agent)) = (attempt.is_empty(), text("/agent")) {
            self.agents.insert(attempt.clone(), agent);
        }
        let reported_by = || self.agents.get(&attempt).cloned().unwrap_or_else(|| "agent".to_owned());
        let person = |pointer: &str| text(pointer).unwrap_or_else(|| "operator".to_owned());
        let (mark, who) = match event.kind.as_str() {
            "target_declared" | "submitted" | "inquiry_opened" | "cancel_after_end" => {
                (Some(Mark::Asked), person("/by"))
            }
            "cancel_recorded" => match text("/cause/by") {
                Some(by) => (Some(Mark::Asked), by),
                None => (Some(Mark::Deadline), "coordinator".to_owned()),
            },
            "hold_placed" => (Some(Mark::Asked), person("/hold/by")),
            "hold_ended" => match text("/how/name") {
                Some(by) => (Some(Mark::Asked), by),
                None => (Some(Mark::Deadline), "coordinator".to_owned()),
            },
            "decided" => (Some(Mark::Decided), person("/record/by")),
            "offer_accepted" | "offer_declined" | "report_accepted" => (Some(Mark::Reported), reported_by()),
            "evidence_filed" => evidence(&text),
            "deadline_passed" => (Some(Mark::Deadline), "coordinator".to_owned()),
            "attempt_ended" if is_lost(text("/state").as_deref()) => (Some(Mark::NoContact), "coordinator".to_owned()),
            _ => (None, "coordinator".to_owned()),
        };
        Told { mark, who: bounded(&one_line(&who), NAME) }
    }

    /// The event on one line: when, who saw it, one sentence.
    pub fn line(&mut self, event: &v1::Event, now: Wall, terminal: &Terminal) -> String {
        let told = self.told(event);
        let at = stamp::wall(event.at.as_ref()).map_or_else(|| "--:--:--Z".to_owned(), |at| time::near(at, now));
        let mark = told.mark.map_or("  ", |mark| mark.symbol(terminal));
        let sentence = tone(event).paint(&one_line(&event.sentence), terminal);
        format!("{at}  {mark} {:<12} {sentence}\n", told.who)
    }
}

fn evidence(text: &impl Fn(&str) -> Option<String>) -> (Option<Mark>, String) {
    let by = || text("/evidence/body/by").unwrap_or_else(|| "operator".to_owned());
    let agent = || text("/evidence/body/agent").unwrap_or_else(|| "agent".to_owned());
    match text("/evidence/body/kind").as_deref() {
        Some("attested" | "note") => (Some(Mark::Asked), by()),
        Some("inspection" | "fenced_off") => (Some(Mark::Read), agent()),
        _ => (Some(Mark::Reported), agent()),
    }
}

fn is_lost(state: Option<&str>) -> bool {
    matches!(state, Some("lapsed" | "interrupted" | "uncertain"))
}

fn tone(event: &v1::Event) -> Tone {
    let moved = matches!(event.kind.as_str(), "deployment_moved" | "deployment_ended");
    if moved { stamp::state_tone(event.state_after) } else { Tone::Plain }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, body: &Value) -> v1::Event {
        v1::Event { kind: kind.to_owned(), body_json: body.to_string(), ..v1::Event::default() }
    }

    #[test]
    fn who_saw_it_and_how_stand_beside_every_event() {
        let mut teller = Teller::default();
        let mut told = |kind: &str, body: Value| {
            let told = teller.told(&event(kind, &body));
            (told.mark, told.who)
        };
        assert_eq!(told("submitted", json!({ "by": "alice" })), (Some(Mark::Asked), "alice".to_owned()));
        assert_eq!(told("report_accepted", json!({ "attempt": "a1" })), (Some(Mark::Reported), "agent".to_owned()));
        assert_eq!(
            told("lease_granted", json!({ "attempt": "a1", "agent": "web-07" })),
            (None, "coordinator".to_owned())
        );
        assert_eq!(told("report_accepted", json!({ "attempt": "a1" })), (Some(Mark::Reported), "web-07".to_owned()));
        assert_eq!(told("attempt_ended", json!({ "attempt": "a1", "state": "uncertain" })).0, Some(Mark::NoContact));
        assert_eq!(told("attempt_ended", json!({ "attempt": "a1", "state": "succeeded" })).0, None);
        assert_eq!(told("cancel_recorded", json!({ "cause": { "cause": "operator", "by": "bob" } })).1, "bob");
        assert_eq!(told("cancel_recorded", json!({ "cause": { "cause": "timeout" } })).0, Some(Mark::Deadline));
        assert_eq!(told("hold_placed", json!({ "hold": { "by": "bob" } })), (Some(Mark::Asked), "bob".to_owned()));
        assert_eq!(told("hold_ended", json!({ "how": { "by": "operator", "name": "eve" } })).1, "eve");
        assert_eq!(told("hold_ended", json!({ "how": { "by": "time" } })).0, Some(Mark::Deadline));
        assert_eq!(told("decided", json!({ "record": { "by": "bob" } })), (Some(Mark::Decided), "bob".to_owned()));
        for (kind, mark) in [
            ("inspection", Mark::Read),
            ("fenced_off", Mark::Read),
            ("late_report", Mark::Reported),
            ("attested", Mark::Asked),
        ] {
            let body = json!({ "evidence": { "body": { "kind": kind, "agent": "x", "by": "x" } } });
            assert_eq!(told("evidence_filed", body), (Some(mark), "x".to_owned()), "{kind}");
        }
        assert_eq!(told("of another version", Value::Null), (None, "coordinator".to_owned()));
    }

    #[test]
    fn nothing_in_an_event_reaches_the_terminal_raw() {
        let body = json!({ "by": "al\u{1b}[31mice\n" });
        let event = v1::Event { sentence: "a\u{9b}31m\r\nb\u{202e}".to_owned(), ..event("submitted", &body) };
        let line = Teller::default().line(&event, Wall(0), &Terminal::PLAIN);
        assert_eq!(line.matches('\n').count(), 1);
        assert!(!line.trim_end().chars().any(|c| c.is_control() || c == '\u{202e}'), "{line:?}");
    }
}
