//! Checks a file, by itself.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead};

use holdfast_common::time::Wall;
use holdfast_coordinator_core::event::{Event, Recorded};
use holdfast_coordinator_core::history::History;
use holdfast_coordinator_core::state::EventSequence;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::line::{FORMAT, Head, Line, Tip, time};
use crate::store::Digest;
use crate::store::chain::{GENESIS, Link};
use crate::store::rows::ActRow;
use crate::verify::check_act;

/// Longest line that is read. Nothing that is written is as long.
const LONGEST: usize = 16 * 1024 * 1024;

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The line, from 1.
    pub line: u64,
    /// What.
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// What a file holds, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Whether nothing is wrong.
    pub sound: bool,
    /// Its first line.
    pub head: Option<Head>,
    /// Events in it.
    pub events: u64,
    /// Pieces of evidence.
    pub evidence: u64,
    /// Decisions.
    pub decisions: u64,
    /// Acts about no target.
    pub acts: u64,
    /// Refusals.
    pub refusals: u64,
    /// Where each target's chain ends.
    pub heads: BTreeMap<String, Tip>,
    /// Where the chain of acts ends.
    pub last_act: Option<Tip>,
    /// In the order of the lines.
    pub faults: Vec<Fault>,
    /// The hash of every event, by target, from the first.
    #[serde(skip)]
    hashes: BTreeMap<String, Vec<String>>,
    #[serde(skip)]
    act_hashes: Vec<String>,
}

/// Reads all of it.
///
/// # Errors
/// It can't be read.
pub fn check(mut file: impl BufRead) -> io::Result<Checked> {
    let mut check = Check::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let most = u64::try_from(LONGEST).unwrap_or(u64::MAX);
        io::Read::take(&mut file, most).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(check.end());
        }
        check.line(&line);
    }
}

/// What is wrong between an earlier file and a later one of the same store: the later one must go on from the heads of the
/// earlier one.
#[must_use]
pub fn goes_on(earlier: &Checked, later: &Checked) -> Vec<String> {
    let mut wrong = Vec::new();
    let store = |file: &Checked| file.head.as_ref().map(|head| head.store.clone());
    if store(earlier) != store(later) {
        wrong.push("the two files are of different stores".to_owned());
        return wrong;
    }
    let whole = later.head.as_ref().is_some_and(|head| head.whole);
    for (target, tip) in &earlier.heads {
        match later.hashes.get(target) {
            None if whole => {
                wrong.push(format!("{target}: its events were in the earlier file, and none of them is here"))
            }
            // The later file is not of this target.
            None => {}
            Some(hashes) => wrong.extend(kept(&format!("{target}: event"), tip, hashes)),
        }
    }
    if let Some(tip) = earlier.last_act.as_ref().filter(|_| whole) {
        wrong.extend(kept("act", tip, &later.act_hashes));
    }
    wrong
}

fn kept(what: &str, tip: &Tip, hashes: &[String]) -> Option<String> {
    let place = usize::try_from(tip.sequence).ok()?.checked_sub(1)?;
    match hashes.get(place) {
        Some(hash) if *hash == tip.hash => None,
        Some(hash) => Some(format!(
            "{what} {} is another one than in the earlier file: the history was rewritten (it was {}, here it is {hash})",
            tip.sequence, tip.hash
        )),
        None => Some(format!("{what} {} is in the earlier file and not here: the history was cut", tip.sequence)),
    }
}

#[derive(Default)]
struct Check {
    told: Checked,
    number: u64,
    sum: Sha256,
    /// Of each target: its history while it hangs together.
    histories: BTreeMap<String, Option<History>>,
    /// What the event before must be followed by.
    owed: Option<Line>,
    /// The line on which evidence or a decision may stand.
    last_told: Option<u64>,
    ended: bool,
}

impl Check {
    fn line(&mut self, bytes: &[u8]) {
        self.number += 1;
        if self.ended {
            return self.fault("it stands behind the last line".to_owned());
        }
        if bytes.last() != Some(&b'\n') {
            self.fault("the line is cut off".to_owned());
        }
        let line = match serde_json::from_slice::<Line>(bytes) {
            Ok(line) => line,
            Err(error) => {
                self.sum.update(bytes);
                return self.fault(format!("it is no line of an audit file: {error}"));
            }
        };
        if self.number == 1 && !matches!(line, Line::Head(_)) {
            self.fault("the file does not begin with its first line".to_owned());
        }
        if let Some(owed) = self.owed.take()
            && owed != line
        {
            self.fault(match owed {
                Line::Evidence { event, .. } => format!("the evidence of event {event} is not here, or is another one"),
                Line::Decision { event, .. } => format!("the decision of event {event} is not here, or is another one"),
                Line::Head(_) | Line::Event { .. } | Line::Act { .. } | Line::Refusal { .. } | Line::End { .. } => {
                    "another line belongs here".to_owned()
                }
            });
        } else {
            self.unasked(&line);
        }
        if !matches!(line, Line::End { .. }) {
            self.sum.update(bytes);
        }
        self.take(line);
    }

    /// Evidence and decisions stand behind the event that has them, and nowhere else.
    fn unasked(&mut self, line: &Line) {
        let told = match line {
            Line::Evidence { event, .. } | Line::Decision { event, .. } => *event,
            Line::Head(_) | Line::Event { .. } | Line::Act { .. } | Line::Refusal { .. } | Line::End { .. } => return,
        };
        if self.last_told != Some(self.number) {
            self.fault(format!("it does not stand behind event {told}, or that event does not have it"));
        }
    }

    fn take(&mut self, line: Line) {
        match line {
            Line::Head(head) => self.head(head),
            Line::Event { target, sequence, at, time: shown, deployment, body, before, hash } => {
                self.told.events += 1;
                if shown != time(at) {
                    self.fault(format!("{target} event {sequence}: its time is not the one that was hashed"));
                }
                self.event(&target, sequence, at, deployment.as_deref(), &body, &before, &hash);
                self.owed = Line::told(&target, sequence, &body);
                if self.owed.is_some() {
                    self.last_told = Some(self.number + 1);
                }
                self.told.hashes.entry(target.clone()).or_default().push(hash.clone());
                self.told.heads.insert(target, Tip { sequence, hash });
            }
            Line::Evidence { .. } => self.told.evidence += 1,
            Line::Decision { .. } => self.told.decisions += 1,
            Line::Act { sequence, at, time: shown, by, kind, about, detail, before, hash } => {
                self.told.acts += 1;
                if shown != time(at) {
                    self.fault(format!("act {sequence}: its time is not the one that was hashed"));
                }
                let (last, last_hash) = self
                    .told
                    .last_act
                    .take()
                    .map_or_else(|| (0, GENESIS.to_owned()), |Tip { sequence, hash }| (sequence, hash));
                let act = ActRow { sequence, at: Wall(at), by, kind, about, detail, before_hash: before, hash };
                if let Some(found) = check_act(&act, last, &last_hash) {
                    self.fault(found.to_string());
                }
                self.told.act_hashes.push(act.hash.clone());
                self.told.last_act = Some(Tip { sequence, hash: act.hash });
            }
            Line::Refusal { .. } => self.told.refusals += 1,
            Line::End { lines, sha256, heads, acts } => self.last(lines, &sha256, &heads, acts.as_ref()),
        }
    }

    fn head(&mut self, head: Head) {
        if self.number != 1 {
            return self.fault("a second first line".to_owned());
        }
        if head.format != FORMAT {
            self.fault(format!("its format is {}, this version checks {FORMAT}", head.format));
        }
        self.told.head = Some(head);
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one line")]
    fn event(
        &mut self,
        target: &str,
        sequence: u64,
        at: i64,
        deployment: Option<&str>,
        body: &str,
        before: &str,
        hash: &str,
    ) {
        let (last, last_hash) = match self.told.heads.get(target) {
            Some(tip) => (tip.sequence, tip.hash.clone()),
            None => (0, GENESIS.to_owned()),
        };
        let own = Link { before, target, sequence, at, deployment, body }.hash();
        let wrong = if own != hash {
            Some(format!("its hash is not the hash of what it says (it is {hash}, and should be {own})"))
        } else if sequence > last + 1 {
            Some(format!("missing: it follows event {last}"))
        } else if sequence <= last {
            Some(format!("it stands behind event {last}: out of order, or twice"))
        } else if before != last_hash {
            Some(format!("it does not follow event {last}: the hash before it is another one"))
        } else {
            None
        };
        if let Some(wrong) = wrong {
            self.fault(format!("{target} event {sequence}: {wrong}"));
            self.histories.insert(target.to_owned(), None);
            return;
        }
        let history = self.histories.entry(target.to_owned()).or_insert_with(|| Some(History::default()));
        let Some(whole) = history else { return };
        let wrong = match recorded(sequence, at, deployment, body) {
            Ok(recorded) => match whole.follow(&recorded) {
                Ok(None) => return,
                Ok(Some(violation)) => format!("it breaks {}: {}", violation.invariant, violation.because),
                Err(illegal) => format!("it can't follow on the events before it: {}", illegal.because),
            },
            Err(why) => format!("it can't be read: {why}"),
        };
        *history = None;
        self.fault(format!("{target} event {sequence}: {wrong}"));
    }

    fn last(&mut self, lines: u64, sha256: &str, heads: &BTreeMap<String, Tip>, acts: Option<&Tip>) {
        self.ended = true;
        let before = self.number - 1;
        if lines != before {
            self.fault(format!("{lines} lines were written, and {before} are here"));
        }
        let sum = Digest(self.sum.clone().finalize().into()).to_string();
        if sum != sha256 {
            self.fault(format!("the lines were changed: their SHA-256 is {sum}, and was {sha256}"));
        }
        let mut wrong = Vec::new();
        for (target, tip) in heads.iter().filter(|(target, tip)| self.told.heads.get(*target) != Some(*tip)) {
            wrong.push(format!("{target}: event {} is named as the last one, and is not", tip.sequence));
        }
        for target in self.told.heads.keys().filter(|target| !heads.contains_key(*target)) {
            wrong.push(format!("{target}: its last event is not named"));
        }
        if acts != self.told.last_act.as_ref() {
            wrong.push("another act is named as the last one".to_owned());
        }
        wrong.into_iter().for_each(|wrong| self.fault(wrong));
    }

    fn fault(&mut self, what: String) {
        self.told.faults.push(Fault { line: self.number, what });
    }

    fn end(mut self) -> Checked {
        if self.number == 0 {
            self.fault("the file is empty".to_owned());
        } else if !self.ended {
            let number = self.number;
            self.fault(format!("the file ends without its last line: it was cut off after line {number}"));
        }
        self.told.sound = self.told.faults.is_empty();
        self.told
    }
}

fn recorded(sequence: u64, at: i64, deployment: Option<&str>, body: &str) -> Result<Recorded, String> {
    let event: Event = serde_json::from_str(body).map_err(|error| error.to_string())?;
    let deployment = deployment.map(str::parse).transpose();
    let deployment = deployment.map_err(|_| "its deployment is no identity".to_owned())?;
    Ok(Recorded { sequence: EventSequence(sequence), at: Wall(at), deployment, event })
}
