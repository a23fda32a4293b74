//! `[rollback]`: the way back that a file declares. Here stands what a file may undo, and what it never may.
//!
//! What the steps do to data, those of the rollback included, against the recovery that is declared:
//!
//! | the strongest `data` of a step | no `[rollback]` | `none-needed`, the default | `expand-contract` | `restore:TEXT` |
//! | --- | --- | --- | --- | --- |
//! | `none` | taken | taken | taken | taken |
//! | `expand`, `contract` | taken: nothing is said about going back | a fault: say what becomes of the data | taken | taken |
//! | `destructive` | refused | refused | refused | taken |
//!
//! *Refused* is [`Code::DataDestroyed`]: to start the release before does not bring back what a step destroyed.
//!
//! What going back does:
//!
//! | the file says | and | then |
//! | --- | --- | --- |
//! | `strategy = "previous-revision"` | each mutating step is a switch on a resource that can go back | taken |
//! | | a mutating step is a command, or its resource keeps nothing to go back to | a fault: steps of its own are needed |
//! | `[[rollback.step]]` with `run` or `with` | | read like a `[[step]]` |
//! | `[[rollback.step]]` with neither | its resource can go back | the previous revision is put back |
//! | | its resource can't | a fault |
//! | both, or none of the two | | a fault |
//! | either | there is no `[[verify]]` | a fault: a rollback is only as good as the check after it |
//!
//! Whether a resource can go back is [`ResourceAdapter::reverse`](crate::spec::ResourceAdapter::reverse). Whether the window of
//! `compatible` is still open is asked when somebody goes back: nothing here reads a clock.

use std::collections::BTreeSet;

use jiff::Timestamp;
use toml::value::Datetime;

use crate::adapter::Reverse;
use crate::code::Code;
use crate::file::deployment::MAX_STEPS;
use crate::file::reader::{Fields, Item, Place, Reader, shown};
use crate::file::step::{Part, Step, Work};
use crate::file::tree::Value;
use crate::rollback::{DataEffect, DataRange, DataRecovery};
use crate::spec::{ResourceSpec, StepEffect};
use crate::time::Wall;

const KEYS: [&str; 4] = ["strategy", "step", "compatible", "data_recovery"];
const RESTORE: &str = "restore:";
const RECOVERIES: &str = "\"none-needed\", \"expand-contract\" or \"restore:WHAT WAS TESTED, AND WHEN\"";
/// Longest text on what was tested, and longest range of the data, in bytes.
const MAX_TESTED: usize = 1024;
const MAX_RANGE: usize = 256;

/// The way back as written. What depends on inputs or on the target is still open.
#[derive(Clone, Debug)]
pub(super) struct Rollback {
    pub(super) way: WayBack,
    pub(super) until: Option<Wall>,
    pub(super) data: Option<DataRange>,
    pub(super) recovery: DataRecovery,
    /// Where the recovery stands, or should.
    recovery_place: Place,
}

#[derive(Clone, Debug)]
pub(super) enum WayBack {
    PreviousRevision,
    /// Never empty.
    Steps(Vec<Step>),
}

impl Rollback {
    /// Its own steps. None where it takes the previous revision.
    pub(super) fn steps(&self) -> &[Step] {
        match &self.way {
            WayBack::PreviousRevision => &[],
            WayBack::Steps(steps) => steps,
        }
    }
}

/// `[rollback]` of the file, judged against its steps. `None` where there is none, or where it has faults.
pub(super) fn read(
    reader: &mut Reader,
    top: &Fields<'_>,
    inputs: &BTreeSet<String>,
    forward: &[Step],
) -> Option<Rollback> {
    let Some(item) = top.get("rollback") else {
        refuse_destruction(reader, None, forward);
        return None;
    };
    let fields = reader.table(&item, &KEYS)?;
    let way = way(reader, &fields, inputs);
    let compatible = fields.get("compatible").and_then(|item| reader.table(&item, &["until", "data"]));
    let take = |key| compatible.as_ref().and_then(|compatible| compatible.get(key));
    let (until, data) = (take("until"), take("data"));
    let until = until.and_then(|item| instant(reader, &item));
    let data = data.and_then(|item| range(reader, &item));
    let written = fields.get("data_recovery");
    let recovery_place = written.as_ref().map_or_else(|| fields.place.clone(), Item::place);
    let recovery = match written {
        Some(item) => recovery(reader, &item),
        None => Some(DataRecovery::NoneNeeded),
    };
    needs_a_check(reader, top, &fields);
    let rollback = Rollback { way: way?, until, data, recovery: recovery?, recovery_place };
    refuse_destruction(reader, Some(&rollback), forward);
    needs_a_word_on_data(reader, &rollback, forward);
    Some(rollback)
}

/// [`irreversible`], as far as the file alone shows it: on whatever resource.
pub(super) fn irreversible_anywhere(step: &Step) -> Option<String> {
    match (step.effect, &step.work) {
        (StepEffect::Mutates, Work::Command(_)) => {
            let on =
                step.resource.as_ref().map_or_else(|| "its resource".to_owned(), |name| format!("\"{}\"", name.value));
            Some(format!("a command changes {on}, and nothing takes back what a command did"))
        }
        (StepEffect::Mutates, Work::System(asked)) => {
            Some(format!("the adapter \"{}\" takes nothing back by itself", asked.adapter().name()))
        }
        (StepEffect::None, _) | (StepEffect::Mutates, Work::Release { .. } | Work::Restore) => None,
    }
}

/// Why the previous revision can't be put back where this step changed it.
pub(super) fn irreversible(step: &Step, resource: &ResourceSpec) -> Option<String> {
    let name = &resource.name;
    match (step.effect, &step.work, resource.adapter.reverse()) {
        (StepEffect::None, _, _) => None,
        (StepEffect::Mutates, Work::Command(_), _) => {
            Some(format!("a command changes \"{name}\", and nothing takes back what a command did"))
        }
        (StepEffect::Mutates, Work::System(_) | Work::Release { .. } | Work::Restore, Reverse::None) => {
            Some(format!("\"{name}\" keeps no earlier revision that could be put back"))
        }
        (StepEffect::Mutates, Work::System(_) | Work::Release { .. } | Work::Restore, Reverse::RetainedRevision) => {
            None
        }
    }
}

fn way(reader: &mut Reader, fields: &Fields<'_>, inputs: &BTreeSet<String>) -> Option<WayBack> {
    match (fields.get("strategy"), fields.get("step")) {
        (Some(strategy), None) => {
            reader.choice(&strategy, &[("previous-revision", ())])?;
            Some(WayBack::PreviousRevision)
        }
        (None, Some(list)) => {
            let items = reader.list(&list, 1..=MAX_STEPS)?;
            let steps: Vec<_> = items.iter().map(|item| Step::read(reader, item, inputs, Part::Rollback)).collect();
            Some(WayBack::Steps(steps.into_iter().collect::<Option<_>>()?))
        }
        (Some(strategy), Some(_)) => {
            let message = "going back takes the previous revision or steps of its own: leave out \"strategy\" or [[rollback.step]]";
            reader.fault(Code::InvalidValue, strategy.key, message);
            None
        }
        (None, None) => {
            let message = "needs strategy = \"previous-revision\" or [[rollback.step]]: what going back does";
            reader.fault(Code::MissingKey, fields.place.clone(), message);
            None
        }
    }
}

/// An instant. A local time would mean another one on every host.
fn instant(reader: &mut Reader, item: &Item<'_>) -> Option<Wall> {
    let text = match &item.node.value {
        Value::Date(text) | Value::Text(text) => text,
        Value::Integer(_) | Value::Boolean(_) | Value::OtherNumber | Value::Null | Value::List(_) | Value::Table(_) => {
            return reader.wrong_kind(item, "a date and time with its offset");
        }
    };
    let written = text.parse::<Datetime>().ok().filter(|date| date.offset.is_some());
    let instant = written.and_then(|date| date.to_string().parse::<Timestamp>().ok());
    if instant.is_none() {
        let message =
            format!("{} is no date and time with its offset: write it like 2027-01-31T00:00:00Z", shown(text));
        reader.fault(Code::InvalidValue, item.place(), message);
    }
    instant.map(|instant| Wall(instant.as_microsecond()))
}

fn range(reader: &mut Reader, item: &Item<'_>) -> Option<DataRange> {
    let text = reader.plain_text(item)?;
    let range = DataRange::parse(text).filter(|_| text.len() <= MAX_RANGE);
    if range.is_none() {
        let message = format!(
            "{} is no range of data versions: write it like \"0040..0042\", the lowest first, at most {MAX_RANGE} bytes",
            shown(text)
        );
        reader.fault(Code::InvalidValue, item.place(), message);
    }
    range
}

fn recovery(reader: &mut Reader, item: &Item<'_>) -> Option<DataRecovery> {
    let text = reader.plain_text(item)?;
    let Some(tested) = text.strip_prefix(RESTORE).map(str::trim) else {
        let known = [("none-needed", DataRecovery::NoneNeeded), ("expand-contract", DataRecovery::ExpandContract)];
        if let Some((_, recovery)) = known.into_iter().find(|(word, _)| *word == text) {
            return Some(recovery);
        }
        reader.fault(Code::InvalidValue, item.place(), format!("{} is not one of {RECOVERIES}", shown(text)));
        return None;
    };
    if (1..=MAX_TESTED).contains(&tested.len()) {
        return Some(DataRecovery::Restore { tested: tested.to_owned() });
    }
    let message = format!(
        "\"{RESTORE}\" is followed by what was tested, and when: 1 to {MAX_TESTED} bytes, these are {}",
        tested.len()
    );
    reader.fault(Code::InvalidValue, item.place(), message);
    None
}

fn needs_a_check(reader: &mut Reader, top: &Fields<'_>, rollback: &Fields<'_>) {
    let is_checked = top.get("verify").is_some_and(|checks| match &checks.node.value {
        Value::List(checks) => !checks.is_empty(),
        // Refused already.
        Value::Text(_)
        | Value::Integer(_)
        | Value::Boolean(_)
        | Value::OtherNumber
        | Value::Date(_)
        | Value::Null
        | Value::Table(_) => true,
    });
    if !is_checked {
        let message = "needs a [[verify]]: a rollback is only as good as the check after it";
        reader.fault(Code::MissingKey, rollback.place.clone(), message);
    }
}

/// The rule that no file gets around: what destroys data has a recovery that was tried.
fn refuse_destruction(reader: &mut Reader, rollback: Option<&Rollback>, forward: &[Step]) {
    let lacks = match rollback.map(|rollback| (&rollback.recovery, &rollback.way)) {
        None => "the file declares no [rollback]",
        Some((DataRecovery::Restore { .. }, _)) => return,
        Some((DataRecovery::ExpandContract, _)) => {
            "data_recovery = \"expand-contract\" holds only where nothing is destroyed"
        }
        Some((DataRecovery::NoneNeeded, WayBack::PreviousRevision)) => {
            "its rollback only puts the previous revision back"
        }
        Some((DataRecovery::NoneNeeded, WayBack::Steps(_))) => "its rollback steps come without a tested recovery",
    };
    for step in forward.iter().chain(rollback.map_or(&[][..], Rollback::steps)) {
        match step.data.value {
            DataEffect::Destructive => {
                let on =
                    step.resource.as_ref().map_or_else(String::new, |resource| format!(" of \"{}\"", resource.value));
                let message = format!(
                    "the step \"{}\" destroys data{on}, and {lacks}: starting the previous image does not bring the data back",
                    step.name
                );
                reader.fault(Code::DataDestroyed, step.data.place.clone(), message);
            }
            DataEffect::None | DataEffect::Expand | DataEffect::Contract => {}
        }
    }
}

/// `none-needed` is a claim of its own, and a step that changes data makes it false.
fn needs_a_word_on_data(reader: &mut Reader, rollback: &Rollback, forward: &[Step]) {
    if rollback.recovery != DataRecovery::NoneNeeded {
        return;
    }
    for step in forward.iter().chain(rollback.steps()) {
        let does = match step.data.value {
            DataEffect::Expand => "expands",
            DataEffect::Contract => "contracts",
            DataEffect::None | DataEffect::Destructive => continue,
        };
        let message = format!(
            "the step \"{}\" {does} the data, so going back needs a word on it: data_recovery = \"expand-contract\" where the release \
             before lives with that, else \"restore:WHAT WAS TESTED, AND WHEN\"",
            step.name
        );
        reader.fault(Code::InvalidValue, rollback.recovery_place.clone(), message);
        return;
    }
}
