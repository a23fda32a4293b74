//! The last lines of a watch on a terminal: what it is at, and whether anybody is heard.
//!
//! A spinner claims life, so it turns only while the attempt is heard, and freezes into a silence that counts. Nothing here
//! is a share of a whole: how far a change has come nobody knows before it is over.
//!
//! ```text
//! ◐  shop@prod#12  active 02:14
//!    attempt 1 on web-07 under fence 1.42
//!    step 2 of 4: switch, begun 00:12 ago
//!    cancel  ◆ requested 14:20:30Z  ■ recorded 14:20:30Z  ├┤ delivered not observed ...
//! ```

use std::time::Duration;

use holdfast_common::text::one_line;
use holdfast_common::time::{Millis, Wall};
use holdfast_proto::convert::duration_to_wire;
use holdfast_proto::v1::{self, AttemptState, DeploymentState, StepEffect, StepState};

use super::{Canvas, facets, stages, stamp, word};
use crate::output::{Mark, Terminal, Tone, time};

/// Columns before the text of a line, where the mark stands.
const MARGIN: usize = 3;

/// What the lines are made of.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// The deployment as last told, and how long ago that was.
    pub told: Option<(v1::Deployment, Duration)>,
    /// How long the coordinator has been silent, where it is.
    pub lost: Option<Duration>,
    /// Counts the frames.
    pub turn: usize,
}

/// Text in one tone.
type Piece = (String, Tone);

impl Progress {
    /// The frame, each line cut to the terminal's width.
    #[must_use]
    pub fn lines(&self, canvas: Canvas<'_>) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(lost) = self.lost {
            let silent = time::silent(millis(lost));
            lines.push(marked(
                Mark::NoContact.symbol(canvas.terminal),
                vec![
                    ("no contact with the coordinator, ".to_owned(), Tone::Plain),
                    (silent, Tone::Hazard),
                    ("; the deployment goes on".to_owned(), Tone::Plain),
                ],
            ));
        }
        if let Some((deployment, ago)) = self.told.as_ref().filter(|_| self.lost.is_none()) {
            self.deployment(deployment, *ago, canvas, &mut lines);
        }
        lines.iter().map(|line| drawn(line, canvas.terminal)).collect()
    }

    fn deployment(&self, deployment: &v1::Deployment, ago: Duration, canvas: Canvas<'_>, lines: &mut Vec<Vec<Piece>>) {
        let about = deployment.summary.clone().unwrap_or_default();
        let attempt = deployment.attempts.last().filter(|attempt| attempt.lease_ttl.is_some());
        let silent = attempt.and_then(|attempt| silence(attempt, ago));
        let mark = match (attempt, silent) {
            (Some(_), None) => self.spinner(canvas.terminal),
            (Some(_), Some(_)) => Mark::NoContact.symbol(canvas.terminal).to_owned(),
            // Nobody is at work, so nothing turns.
            (None, _) => String::new(),
        };
        let since = since(stamp::wall(about.submitted_at.as_ref()), canvas.now);
        lines.push(marked(
            &mark,
            vec![
                (one_line(&about.label), Tone::Strong),
                ("  ".to_owned(), Tone::Plain),
                (word::deployment_state(about.state), stamp::state_tone(about.state)),
                (format!(" {since}"), Tone::Quiet),
            ],
        ));
        match attempt {
            Some(attempt) => {
                of_attempt(attempt, silent, canvas, lines);
                lines.extend(waits_besides(deployment));
            }
            None => lines.extend(waits(deployment, about.state)),
        }
        if let Some(cancel) = &deployment.cancellation {
            lines.push(cancelling(cancel, canvas));
        }
    }

    fn spinner(&self, terminal: &Terminal) -> String {
        let turns: &[char] = if terminal.unicode { &['◐', '◓', '◑', '◒'] } else { &['|', '/', '-', '\\'] };
        turns[self.turn % turns.len()].to_string()
    }
}

/// How long nobody has heard of the attempt, where that is longer than heartbeats leave.
fn silence(attempt: &v1::Attempt, ago: Duration) -> Option<Millis> {
    let heard = stamp::span(attempt.silent_for.as_ref())?;
    let heard = Millis(heard.0.saturating_add(millis(ago).0));
    facets::silence(&v1::Attempt { silent_for: Some(duration_to_wire(heard)), ..attempt.clone() })
}

fn waits(deployment: &v1::Deployment, state: i32) -> Option<Vec<Piece>> {
    let why = match deployment.waiting.as_str() {
        "" if state == DeploymentState::Active as i32 => "between two attempts".to_owned(),
        "" => return None,
        why => format!("waits: {}", one_line(why)),
    };
    Some(marked("", vec![(why, Tone::Plain)]))
}

/// What the next step of a running attempt waits for, where that is known.
fn waits_besides(deployment: &v1::Deployment) -> Option<Vec<Piece>> {
    let why = Some(one_line(&deployment.waiting)).filter(|why| !why.is_empty())?;
    Some(marked("", vec![(format!("waits: {why}"), Tone::Hazard)]))
}

fn of_attempt(attempt: &v1::Attempt, silent: Option<Millis>, canvas: Canvas<'_>, lines: &mut Vec<Vec<Piece>>) {
    let (agent, fence) = (one_line(&attempt.agent), one_line(&attempt.fence_text));
    let mut first = vec![(format!("attempt {} on {agent} under fence {fence}", attempt.number), Tone::Plain)];
    if attempt.state == AttemptState::Offered as i32 {
        let at = since(stamp::wall(attempt.offered_at.as_ref()), canvas.now);
        first.push((format!(", offered {at} ago and not taken yet"), Tone::Plain));
    }
    if let Some(silent) = silent {
        first.push((", ".to_owned(), Tone::Plain));
        first.push((time::silent(silent), Tone::Hazard));
    }
    lines.push(marked("", first));
    lines.extend(facets::away(attempt, canvas).map(|away| marked("", vec![(away, Tone::Plain)])));
    if attempt.state != AttemptState::Offered as i32 {
        lines.extend(step(attempt, canvas));
    }
    for late in attempt.steps.iter().filter(|step| step.over_deadline && step.ended.is_none()) {
        let text = format!("step {} is over its deadline, and no end was seen", one_line(&late.name));
        lines.push(marked(Mark::Deadline.symbol(canvas.terminal), vec![(text, Tone::Bad)]));
    }
}

/// The step that it is at: the one that has begun or may have, else the one that comes next.
fn step(attempt: &v1::Attempt, canvas: Canvas<'_>) -> Option<Vec<Piece>> {
    let at = |state: StepState| attempt.steps.iter().position(|step| step.state == state as i32);
    let index = at(StepState::Started).or_else(|| at(StepState::Permitted)).or_else(|| at(StepState::Pending))?;
    let step = &attempt.steps[index];
    let ago = |at: Option<&prost_types::Timestamp>| since(stamp::wall(at), canvas.now);
    let (how, tone) = match StepState::try_from(step.state) {
        Ok(StepState::Started) => {
            let begun = step.started.as_ref().and_then(|seen| seen.received_at.as_ref());
            (format!("begun {} ago", ago(begun)), Tone::Running)
        }
        Ok(StepState::Permitted) => {
            (format!("permitted {} ago: it may have begun", ago(step.permitted_at.as_ref())), Tone::Running)
        }
        Ok(_) | Err(_) => ("comes next".to_owned(), Tone::Quiet),
    };
    let effect = if step.effect == StepEffect::None as i32 { " (changes nothing)" } else { "" };
    let place = format!("step {} of {}: ", index + 1, attempt.steps.len());
    Some(marked(
        "",
        vec![
            (place, Tone::Plain),
            (one_line(&step.name), Tone::Strong),
            (format!(", {how}"), tone),
            (effect.to_owned(), Tone::Quiet),
        ],
    ))
}

fn cancelling(cancel: &v1::Cancellation, canvas: Canvas<'_>) -> Vec<Piece> {
    let mut pieces = vec![("cancel".to_owned(), Tone::Strong)];
    for stage in stages(cancel, canvas) {
        let seen = stage.at.is_some();
        let mark = if seen { stage.mark.symbol(canvas.terminal).trim_end() } else { unseen(canvas.terminal) };
        let tone = if seen { Tone::Plain } else { Tone::Quiet };
        pieces.push((format!("  {mark} {}", stage.name), tone));
    }
    marked("", pieces)
}

/// In the place of a stage's mark, for one that nobody saw.
fn unseen(terminal: &Terminal) -> &'static str {
    if terminal.unicode { "·" } else { "." }
}

/// `02:14`, or `1:02:03`. Two clocks that differ never make it run backwards.
fn since(at: Option<Wall>, now: Wall) -> String {
    let Some(at) = at else { return "--:--".to_owned() };
    let seconds = now.0.saturating_sub(at.0).max(0) / 1_000_000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours == 0 { format!("{minutes:02}:{seconds:02}") } else { format!("{hours}:{minutes:02}:{seconds:02}") }
}

/// A line with its mark in the margin.
fn marked(mark: &str, pieces: Vec<Piece>) -> Vec<Piece> {
    let width = mark.chars().count();
    let mut line = vec![(format!("{mark}{:blank$}", "", blank = MARGIN.saturating_sub(width)), Tone::Plain)];
    line.extend(pieces);
    line
}

/// Cut to the width first, so that no colour is cut in the middle.
fn drawn(line: &[Piece], terminal: &Terminal) -> String {
    let mut left = usize::from(terminal.width.unwrap_or(80)).saturating_sub(1);
    let mut text = String::new();
    for (piece, tone) in line {
        let part: String = piece.chars().take(left).collect();
        left -= part.chars().count();
        if !part.is_empty() {
            text.push_str(&tone.paint(&part, terminal));
        }
    }
    text
}

fn millis(length: Duration) -> Millis {
    Millis(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
}
