use serde_json::json;

use super::{Health, Report};

/// One of the three pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// Whether the service's own work loop turns.
    Live,
    /// Whether every part does its work.
    Ready,
    /// Figures.
    Metrics,
}

impl Page {
    /// Every page.
    pub const ALL: [Page; 3] = [Page::Live, Page::Ready, Page::Metrics];

    /// Its path.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Page::Live => "/livez",
            Page::Ready => "/readyz",
            Page::Metrics => "/metrics",
        }
    }

    /// The page of a path, compared byte by byte.
    #[must_use]
    pub fn at(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|page| page.path() == path)
    }
}

/// What of a request matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Which page.
    pub page: Page,
    /// Whether `verbose` is in the query.
    pub verbose: bool,
    /// What the caller would like to get.
    pub accept: String,
}

/// An answer without its headers' names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// 200, or 503 where something does not do its work.
    pub status: u16,
    /// The content type.
    pub content_type: &'static str,
    /// The text.
    pub body: String,
}

/// Plain text.
pub(super) const TEXT: &str = "text/plain; charset=utf-8";
/// Text of metrics with `# EOF`, for those that ask for it.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Text of metrics as every scraper reads it.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Which of the two text forms of metrics is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Prometheus 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Asked {
    /// Answers it.
    pub fn answer(&self, health: &Health, metrics: impl FnOnce(Form) -> String) -> Answer {
        match self.page {
            Page::Live => self.tell(&health.liveness(), "alive"),
            Page::Ready => self.tell(&health.readiness(), "ready"),
            Page::Metrics if self.accept.contains("application/openmetrics-text") => {
                Answer { status: 200, content_type: OPEN_METRICS, body: metrics(Form::OpenMetrics) }
            }
            Page::Metrics => Answer { status: 200, content_type: PROMETHEUS, body: metrics(Form::Prometheus) },
        }
    }

    fn tell(&self, report: &Report, word: &'static str) -> Answer {
        let status = if report.is_ok() { 200 } else { 503 };
        if self.accept.contains("application/json") {
            return Answer { status, content_type: "application/json", body: json(report, word) };
        }
        let body = if self.verbose { every_part(report, word) } else { in_short(report, word) };
        Answer { status, content_type: TEXT, body }
    }
}

/// One word, and each part that does not do its work.
fn in_short(report: &Report, word: &str) -> String {
    let wrong: String = report.wrong().map(|(name, why)| format!("{name}: {why}\n")).collect();
    format!("{}\n{wrong}", headline(report, word))
}

fn every_part(report: &Report, word: &str) -> String {
    let mut lines = vec![headline(report, word)];
    for part in &report.parts {
        lines.push(match &part.state {
            super::State::Ok => format!("[ok]   {}", part.name),
            super::State::Not(why) => format!("[not]  {}: {why}", part.name),
        });
    }
    lines.extend(report.notes.iter().map(|(name, text)| format!("[note] {name}: {text}")));
    lines.join("\n") + "\n"
}

fn headline(report: &Report, word: &str) -> String {
    if report.is_ok() { word.to_owned() } else { format!("not {word}") }
}

fn json(report: &Report, word: &'static str) -> String {
    let parts: Vec<_> = report
        .parts
        .iter()
        .map(|part| match &part.state {
            super::State::Ok => json!({ "name": part.name, "ok": true }),
            super::State::Not(why) => json!({ "name": part.name, "ok": false, "why": why }),
        })
        .collect();
    let notes: Vec<_> = report.notes.iter().map(|(name, text)| json!({ "name": name, "text": text })).collect();
    json!({ word: report.is_ok(), "parts": parts, "notes": notes }).to_string() + "\n"
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    fn ask(path: &str, verbose: bool, accept: &str) -> Answer {
        let health = Health::new();
        health.alive("work loop", || State::Ok);
        health.ready("store", || State::Ok);
        health.ready("disk", || State::Not("no room".to_owned()));
        health.note("coordinator", || "in contact".to_owned());
        let asked = Asked { page: Page::at(path).expect("a page"), verbose, accept: accept.to_owned() };
        asked.answer(&health, |form| format!("{form:?}"))
    }

    #[test]
    fn every_page_answers_in_the_form_that_is_asked_for() {
        assert_eq!(ask("/livez", false, "*/*"), Answer { status: 200, content_type: TEXT, body: "alive\n".to_owned() });
        let short = ask("/readyz", false, "");
        assert_eq!((short.status, short.body.as_str()), (503, "not ready\ndisk: no room\n"));
        let long = ask("/readyz", true, "");
        let lines = "not ready\n[ok]   store\n[not]  disk: no room\n[note] coordinator: in contact\n";
        assert_eq!((long.status, long.body.as_str()), (503, lines));
        let told: serde_json::Value = serde_json::from_str(&ask("/readyz", false, "application/json").body).unwrap();
        assert_eq!(told["ready"], false);
        assert_eq!(told["parts"][1], serde_json::json!({ "name": "disk", "ok": false, "why": "no room" }));
        assert_eq!(told["notes"][0]["text"], "in contact");
        assert_eq!(ask("/metrics", false, "").body, "Prometheus");
        assert_eq!(ask("/metrics", false, "application/openmetrics-text;version=1.0.0,*/*;q=0.1").body, "OpenMetrics");
    }

    #[test]
    fn another_spelling_of_a_path_is_no_page() {
        for path in ["", "/", "/livez/", "//livez", "/LIVEZ", "/metrics/..", "/%6civez"] {
            assert_eq!(Page::at(path), None, "{path}");
        }
    }
}
