//! What was measured: each figure beside its ceiling, with the ratio, the aim, and whether it is reached.

use std::io::Write as _;

use holdfast_tests::machine;
use serde_json::{Value, json};

use crate::options::{Options, Part};
use crate::raw::Disk;

/// A ceiling that moved more than this between two looks at it was not measured on a quiet machine.
const QUIET: f64 = 1.25;

/// All of it, printed as it comes.
pub(crate) struct Report {
    figures: Vec<Figure>,
    disks: Vec<Disk>,
    notes: Vec<String>,
    part: Option<Part>,
    load: f64,
    options: String,
}

/// One line.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
    ceiling: Option<Ceiling>,
    aim: Option<Aim>,
}

/// What a figure is compared with.
#[derive(Clone, Debug)]
struct Ceiling {
    what: &'static str,
    value: f64,
}

/// What is to be reached.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Aim {
    /// The ratio to the ceiling.
    RatioAtLeast(f64),
    /// The ratio to the ceiling.
    RatioAtMost(f64),
    /// The figure itself.
    AtMost(f64),
}

impl Figure {
    pub(crate) fn new(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { what: what.into(), value, unit, ceiling: None, aim: None }
    }

    /// Beside that ceiling, in the same unit.
    pub(crate) fn of(mut self, what: &'static str, value: f64) -> Self {
        self.ceiling = Some(Ceiling { what, value });
        self
    }

    pub(crate) fn aim(mut self, aim: Aim) -> Self {
        self.aim = Some(aim);
        self
    }

    fn ratio(&self) -> Option<f64> {
        self.ceiling.as_ref().map(|ceiling| self.value / ceiling.value)
    }

    fn reached(&self) -> Option<bool> {
        Some(match self.aim? {
            Aim::RatioAtLeast(least) => self.ratio()? >= least,
            Aim::RatioAtMost(most) => self.ratio()? <= most,
            Aim::AtMost(most) => self.value <= most,
        })
    }

    fn line(&self) -> String {
        let figure = format!("{:<52} {:>12} {:<10}", self.what, number(self.value), self.unit);
        let beside = self.ceiling.as_ref().map_or_else(String::new, |ceiling| {
            format!("{:>7} of {} {}", number(self.value / ceiling.value), number(ceiling.value), ceiling.what)
        });
        let aim = self.aim.map_or_else(String::new, |aim| {
            let reached = if self.reached() == Some(true) { "reached" } else { "MISSED" };
            format!("  {reached} ({})", aim.text(self.unit))
        });
        format!("{figure} {beside}{aim}").trim_end().to_owned()
    }

    fn json(&self) -> Value {
        json!({
            "what": self.what,
            "figure": self.value,
            "unit": self.unit,
            "ceiling": self.ceiling.as_ref().map(|ceiling| json!({ "what": ceiling.what, "figure": ceiling.value })),
            "ratio": self.ratio(),
            "aim": self.aim.map(|aim| aim.text(self.unit)),
            "reached": self.reached(),
        })
    }
}

impl Aim {
    fn text(self, unit: &str) -> String {
        match self {
            Aim::RatioAtLeast(least) => format!("at least {} of it", number(least)),
            Aim::RatioAtMost(most) => format!("at most {} of it", number(most)),
            Aim::AtMost(most) => format!("at most {} {unit}", number(most)),
        }
    }
}

impl Report {
    pub(crate) fn new(options: &Options) -> Self {
        let report = Self {
            figures: Vec::new(),
            disks: Vec::new(),
            notes: Vec::new(),
            part: None,
            load: machine::load(),
            options: format!("{options:?}"),
        };
        say(&format!("{} processors, load {:.2}", machine::processors(), report.load));
        report
    }

    pub(crate) fn part(&mut self, part: Part) {
        self.part = Some(part);
        say(&format!("\n{part:?}").to_lowercase());
    }

    pub(crate) fn put(&mut self, figure: Figure) {
        say(&figure.line());
        self.figures.push(figure);
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        say(&format!("  {note}"));
        self.notes.push(note);
    }

    /// Keeps a look at the disk's ceilings, for what they say of the machine.
    pub(crate) fn disk(&mut self, disk: Disk) -> Disk {
        self.disks.push(disk);
        disk
    }

    /// The figure of that name, if it was measured before.
    pub(crate) fn measured(&self, what: &str) -> Option<f64> {
        self.figures.iter().rev().find(|figure| figure.what == what).map(|figure| figure.value)
    }

    /// How many aims were reached, and whether the machine was quiet.
    pub(crate) fn close(&mut self) {
        let aims: Vec<bool> = self.figures.iter().filter_map(Figure::reached).collect();
        let reached = aims.iter().filter(|reached| **reached).count();
        say(&format!("\n{reached} of {} aims reached", aims.len()));
        for note in self.unquiet() {
            self.note(note);
        }
    }

    /// Why these figures say less than they seem to.
    fn unquiet(&self) -> Vec<String> {
        let mut why = Vec::new();
        if self.load > machine::processors() as f64 / 4.0 {
            why.push(format!("the machine was not quiet: its load was {:.2} before the first measurement", self.load));
        }
        for (what, pick) in Disk::ALL {
            let seen = || self.disks.iter().map(pick);
            let (least, most) = (seen().fold(f64::MAX, f64::min), seen().fold(0.0, f64::max));
            if most > least * QUIET {
                let (least, most) = (number(least), number(most));
                why.push(format!("the machine was not quiet: {what} moved between {least}/s and {most}/s"));
            }
        }
        why
    }

    pub(crate) fn json(&self) -> String {
        let figures: Vec<Value> = self.figures.iter().map(Figure::json).collect();
        let disks: Vec<Value> = self.disks.iter().map(Disk::json).collect();
        let whole = json!({
            "processors": machine::processors(),
            "load_before": self.load,
            "quiet": self.unquiet().is_empty(),
            "options": self.options,
            "figures": figures,
            "disk": disks,
            "notes": self.notes,
        });
        format!("{whole:#}\n")
    }
}

/// Four digits that count.
fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 1000.0 => format!("{value:.0}"),
        large if large >= 100.0 => format!("{value:.1}"),
        large if large >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

fn say(line: &str) {
    let _nobody_reads = writeln!(std::io::stdout(), "{line}");
}
