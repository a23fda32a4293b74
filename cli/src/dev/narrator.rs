//! Telling what happens, line by line, on stdout.

use std::io::{self, Write};

use anstream::{AutoStream, ColorChoice};
use holdfast_common::text::one_line;
use holdfast_common::time::Wall;
use holdfast_proto::convert::wall_from_wire;
use holdfast_proto::v1;

use crate::output::{Mark, Options, Table, Terminal, Tone, time};

/// What is told is out at once: a tour is watched.
#[derive(Debug)]
pub(super) struct Narrator<O: Write = AutoStream<io::Stdout>> {
    terminal: Terminal,
    out: O,
    checked: u32,
}

impl Narrator {
    /// On this process's stdout.
    pub(super) fn new(options: &Options) -> Self {
        let out = io::stdout();
        let terminal = Terminal::of(&out, options.ascii);
        let choice = if terminal.colour { ColorChoice::Always } else { ColorChoice::Never };
        Self { terminal, out: AutoStream::new(out, choice), checked: 0 }
    }
}

impl<O: Write> Narrator<O> {
    /// How many statements were found true.
    pub(super) fn checked(&self) -> u32 {
        self.checked
    }

    /// A line as it is.
    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")?;
        self.out.flush()
    }

    /// A chapter begins.
    pub(super) fn chapter(&mut self, number: u32, title: &str) -> io::Result<()> {
        let title = Tone::Strong.paint(&format!("{number}. {title}"), &self.terminal);
        self.line(&format!("\n{title}"))
    }

    /// In the tour's own words.
    pub(super) fn say(&mut self, text: &str) -> io::Result<()> {
        text.lines().try_for_each(|line| self.line(&format!("   {line}")))
    }

    /// A fact, how it came to be known, and when. Its text is data.
    pub(super) fn fact(&mut self, mark: Option<Mark>, at: Option<Wall>, text: &str) -> io::Result<()> {
        let symbol = mark.map_or("  ", |mark| mark.symbol(&self.terminal));
        let at = at.map(time::clock).unwrap_or_default();
        let at = Tone::Quiet.paint(&format!("{at:9}"), &self.terminal);
        let text = one_line(text);
        let text = match mark {
            Some(Mark::NoContact) => Tone::Hazard.paint(&text, &self.terminal),
            Some(Mark::Asked | Mark::Decided | Mark::Reported | Mark::Read | Mark::Deadline) | None => text,
        };
        self.line(&format!("   {symbol}  {at}  {text}"))
    }

    /// A named line below a fact.
    pub(super) fn detail(&mut self, name: &str, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let name = Tone::Quiet.paint(&format!("{name:12}"), &self.terminal);
        self.line(&format!("       {name} {}", one_line(text)))
    }

    /// An event of a deployment.
    pub(super) fn event(&mut self, event: &v1::Event) -> io::Result<()> {
        let at = event.at.and_then(|at| wall_from_wire("at", Some(at)).ok());
        self.fact(mark(event), at, &event.sentence)
    }

    /// A table.
    pub(super) fn table(&mut self, table: &Table) -> io::Result<()> {
        let plain = Terminal { width: self.terminal.width.map(|width| width.saturating_sub(7)), ..self.terminal };
        table.draw(&plain).lines().try_for_each(|line| self.line(&format!("       {line}")))
    }

    /// A statement that was just found true.
    pub(super) fn is_true(&mut self, statement: &str) -> io::Result<()> {
        self.checked += 1;
        let symbol = if self.terminal.unicode { "✓ " } else { "ok" };
        let symbol = Tone::Good.paint(symbol, &self.terminal);
        self.line(&format!("   {symbol}  {}", one_line(statement)))
    }
}

/// How an event came to be known. What the coordinator itself recorded has no mark.
fn mark(event: &v1::Event) -> Option<Mark> {
    match event.kind.as_str() {
        "submitted" | "cancel_recorded" | "cancel_after_end" | "inquiry_opened" => Some(Mark::Asked),
        "decided" => Some(Mark::Decided),
        "offer_accepted" | "offer_declined" | "report_accepted" => Some(Mark::Reported),
        "evidence_filed" => Some(mark_of_evidence(event)),
        "deadline_passed" => Some(Mark::Deadline),
        "deployment_moved" if event.state_after() == v1::DeploymentState::Uncertain => Some(Mark::NoContact),
        _ => None,
    }
}

fn mark_of_evidence(event: &v1::Event) -> Mark {
    let body: serde_json::Value = serde_json::from_str(&event.body_json).unwrap_or_default();
    let kind = body.pointer("/evidence/body/kind").and_then(serde_json::Value::as_str);
    match kind {
        Some("inspection" | "fenced_off") => Mark::Read,
        _ => Mark::Reported,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(unicode: bool, tell: impl FnOnce(&mut Narrator<&mut Vec<u8>>)) -> String {
        let mut out = Vec::new();
        tell(&mut Narrator { terminal: Terminal { unicode, ..Terminal::PLAIN }, out: &mut out, checked: 0 });
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn facts_are_lines_with_their_mark_and_time_and_nothing_raw() {
        let fact = |narrator: &mut Narrator<&mut Vec<u8>>| {
            let at = Some(Wall(1_795_962_007_999_000));
            narrator.fact(Some(Mark::Reported), at, "web-01 began\u{1b}[31m look").expect("a buffer");
            narrator.fact(None, None, "recorded").expect("a buffer");
            narrator.is_true("it is so").expect("a buffer");
            assert_eq!(narrator.checked(), 1);
        };
        let expected = "   ├┤  14:20:07Z  web-01 began\\u{1b}[31m look\n                  recorded\n   ✓   it is so\n";
        assert_eq!(told(true, fact), expected);
        assert!(told(false, fact).is_ascii());
    }

    #[test]
    fn what_an_event_rests_on_decides_its_mark() {
        let event = |kind: &str, body: &str, state: v1::DeploymentState| v1::Event {
            kind: kind.to_owned(),
            body_json: body.to_owned(),
            state_after: state as i32,
            ..v1::Event::default()
        };
        let (active, uncertain) = (v1::DeploymentState::Active, v1::DeploymentState::Uncertain);
        let reading = r#"{"event":"evidence_filed","evidence":{"body":{"kind":"inspection"}}}"#;
        let late = r#"{"event":"evidence_filed","evidence":{"body":{"kind":"late_report"}}}"#;
        for (event, expected) in [
            (event("submitted", "{}", active), Some(Mark::Asked)),
            (event("permit_granted", "{}", active), None),
            (event("deployment_moved", "{}", active), None),
            (event("deployment_moved", "{}", uncertain), Some(Mark::NoContact)),
            (event("evidence_filed", reading, uncertain), Some(Mark::Read)),
            (event("evidence_filed", late, uncertain), Some(Mark::Reported)),
            (event("evidence_filed", "", uncertain), Some(Mark::Reported)),
        ] {
            assert_eq!(mark(&event), expected, "{event:?}");
        }
    }
}
