//! The one shape in which a refusal reaches a person or a program: what happened, what is known and not known, what
//! follows, and what to do next.
//!
//! Every text in it is made printable on one line when it is put in: parts of it come from agents, targets and files.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::text::one_line;

/// A refusal as it is shown, sent in gRPC error details, and printed as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Wire", into = "Wire")]
pub struct Problem {
    /// The stable code.
    pub code: Code,
    /// What happened, on one line.
    pub title: String,
    /// What has been observed or recorded.
    pub known: Vec<String>,
    /// What nobody can tell now.
    pub not_known: Vec<String>,
    /// What follows for the caller and the target.
    pub so: Vec<String>,
    /// What to do, as command lines where there are any.
    pub next: Vec<String>,
    /// Facts for programs, like `target` or `deployment`.
    pub metadata: BTreeMap<String, String>,
}

impl Problem {
    /// With nothing but a title.
    #[must_use]
    pub fn new(code: Code, title: impl AsRef<str>) -> Self {
        Self {
            code,
            title: one_line(title.as_ref()),
            known: Vec::new(),
            not_known: Vec::new(),
            so: Vec::new(),
            next: Vec::new(),
            metadata: BTreeMap::new(),
        }
    }

    /// What is recorded with a reason was asked for without one, which that option gives.
    #[must_use]
    pub fn without_reason(option: &str) -> Self {
        Self::new(Code::ReasonMissing, "this is recorded for ever and needs a reason").next(format!("{option} TEXT"))
    }

    /// Adds a line of what is known.
    #[must_use]
    pub fn known(mut self, line: impl AsRef<str>) -> Self {
        self.known.push(one_line(line.as_ref()));
        self
    }

    /// Adds a line of what is not known.
    #[must_use]
    pub fn not_known(mut self, line: impl AsRef<str>) -> Self {
        self.not_known.push(one_line(line.as_ref()));
        self
    }

    /// Adds a line of what follows.
    #[must_use]
    pub fn so(mut self, line: impl AsRef<str>) -> Self {
        self.so.push(one_line(line.as_ref()));
        self
    }

    /// Adds a line of what to do.
    #[must_use]
    pub fn next(mut self, line: impl AsRef<str>) -> Self {
        self.next.push(one_line(line.as_ref()));
        self
    }

    /// Adds a fact for programs. An empty one is left out.
    #[must_use]
    pub fn with(mut self, key: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        if !value.as_ref().is_empty() {
            self.metadata.insert(one_line(key.as_ref()), one_line(value.as_ref()));
        }
        self
    }

    /// The command that tells more.
    #[must_use]
    pub fn more(&self) -> String {
        format!("holdfast explain {}", self.code)
    }
}

impl fmt::Display for Problem {
    /// No line feed at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.code, one_line(&self.title))?;
        let more = [self.more()];
        let parts: [(&str, &[String]); 5] = [
            ("known", &self.known),
            ("not known", &self.not_known),
            ("so", &self.so),
            ("next", &self.next),
            ("more", &more),
        ];
        for (name, lines) in parts {
            for (index, line) in lines.iter().enumerate() {
                let name = if index == 0 { name } else { "" };
                write!(f, "\n  {name:<9}  {}", one_line(line))?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

/// [`Problem`] in JSON: the code as `HF-2031`, and the line `more`.
#[derive(Serialize, Deserialize)]
struct Wire {
    code: String,
    title: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    known: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    not_known: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    so: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    next: Vec<String>,
    #[serde(default)]
    more: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
}

impl From<Problem> for Wire {
    fn from(problem: Problem) -> Self {
        let shown = |lines: &[String]| lines.iter().map(|line| one_line(line)).collect();
        Self {
            code: problem.code.to_string(),
            title: one_line(&problem.title),
            known: shown(&problem.known),
            not_known: shown(&problem.not_known),
            so: shown(&problem.so),
            next: shown(&problem.next),
            more: problem.more(),
            metadata: problem.metadata.iter().map(|(key, value)| (one_line(key), one_line(value))).collect(),
        }
    }
}

/// A code that this version does not have.
#[derive(Debug, thiserror::Error)]
#[error("the code {0:?} is not known to this version")]
pub struct UnknownCode(String);

impl TryFrom<Wire> for Problem {
    type Error = UnknownCode;

    fn try_from(wire: Wire) -> Result<Self, UnknownCode> {
        let code = Code::parse(&wire.code).ok_or(UnknownCode(wire.code))?;
        let shown = |lines: &[String]| lines.iter().map(|line| one_line(line)).collect();
        Ok(Self {
            code,
            title: one_line(&wire.title),
            known: shown(&wire.known),
            not_known: shown(&wire.not_known),
            so: shown(&wire.so),
            next: shown(&wire.next),
            metadata: wire.metadata.iter().map(|(key, value)| (one_line(key), one_line(value))).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held() -> Problem {
        Problem::new(Code::TargetUncertain, "shop@prod is held by shop@prod#12, which is uncertain")
            .known("step switch was permitted 14:20:07Z on web-07 under fence 42; last word 14:20:09Z")
            .not_known("whether switch finished; whether web-07 is still working")
            .so("shop@prod#13 waits; nothing starts on shop@prod until #12 is reconciled")
            .next("holdfast reconcile inspect shop@prod#12")
            .with("target", "shop@prod")
    }

    #[test]
    fn shows_what_is_known_what_is_not_what_follows_and_what_to_do() {
        let expected = "\
error[HF-2031]: shop@prod is held by shop@prod#12, which is uncertain
  known      step switch was permitted 14:20:07Z on web-07 under fence 42; last word 14:20:09Z
  not known  whether switch finished; whether web-07 is still working
  so         shop@prod#13 waits; nothing starts on shop@prod until #12 is reconciled
  next       holdfast reconcile inspect shop@prod#12
  more       holdfast explain HF-2031";
        assert_eq!(held().to_string(), expected);
    }

    #[test]
    fn json_has_the_same_fields_and_reads_back() {
        let json = serde_json::to_value(held()).expect("plain data");
        assert_eq!(json["code"], "HF-2031");
        assert_eq!(json["more"], "holdfast explain HF-2031");
        assert_eq!(json["not_known"][0], "whether switch finished; whether web-07 is still working");
        assert_eq!(json["metadata"]["target"], "shop@prod");
        assert_eq!(serde_json::from_value::<Problem>(json).expect("reads back"), held());
    }

    #[test]
    fn text_from_outside_is_made_printable_on_every_way_out() {
        let mut problem = Problem::new(Code::Internal, "a\u{1b}[31m\nb").known("c\u{202e}d");
        assert_eq!(problem.title, "a\\u{1b}[31m\\nb");
        problem.so.push("raw\r\n\u{7}".to_owned());
        let json = serde_json::to_string(&problem).expect("plain data");
        let shown = problem.to_string();
        assert!(shown.replace('\n', "").chars().all(|c| !c.is_control()), "{shown:?}");
        assert!(json.contains("raw\\\\r\\\\n\\\\u{7}"), "{json}");
    }

    #[test]
    fn a_code_of_another_version_is_refused_by_name() {
        let error = serde_json::from_str::<Problem>(r#"{"code":"HF-9999","title":"x"}"#).expect_err("unknown");
        assert!(error.to_string().contains("HF-9999"), "{error}");
    }
}
