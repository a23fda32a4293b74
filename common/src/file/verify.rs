//! `[[verify]]`: what must be seen healthy after the change, before the deployment has succeeded.

use std::collections::BTreeSet;

use crate::code::Code;
use crate::file::field;
use crate::file::reader::{Fields, Item, Place, Reader};
use crate::file::template::Template;
use crate::id::StepName;
use crate::time::Millis;

const KEYS: [&str; 7] = ["name", "http", "tcp", "command", "for", "interval", "timeout"];
const MAX_CHECKS: usize = 20;
const MAX_ARGUMENTS: usize = 256;
const DAY: Millis = Millis::from_secs(86_400);
const INTERVALS: std::ops::RangeInclusive<Millis> = Millis(100)..=Millis::from_secs(3600);
const DEFAULT_INTERVAL: Millis = Millis::from_secs(1);
/// What a check gets beyond its window where the file says nothing.
const DEFAULT_SPARE: Millis = Millis::from_secs(300);

/// A check as written. What depends on inputs is still open.
#[derive(Clone, Debug)]
pub(super) struct Check {
    pub(super) name: StepName,
    pub(super) place: Place,
    pub(super) probe: ProbeText,
    pub(super) hold: Millis,
    pub(super) interval: Millis,
    pub(super) give_up: Millis,
}

/// One kind of look, as written.
#[derive(Clone, Debug)]
pub(super) enum ProbeText {
    Http { url: Template, expect_status: u16, expect_body: Option<Template> },
    Tcp { address: Template },
    Command { argv: Vec<Template> },
}

/// All of them, in file order.
pub(super) fn read(reader: &mut Reader, item: Option<Item<'_>>, inputs: &BTreeSet<String>) -> Vec<Check> {
    let Some(items) = item.and_then(|list| reader.list(&list, 0..=MAX_CHECKS)) else { return Vec::new() };
    items.iter().enumerate().filter_map(|(index, item)| Check::read(reader, item, index, inputs)).collect()
}

impl Check {
    fn read(reader: &mut Reader, item: &Item<'_>, index: usize, inputs: &BTreeSet<String>) -> Option<Self> {
        let fields = reader.table(item, &KEYS)?;
        let name = match fields.get("name") {
            Some(item) => reader.parsed::<StepName>(&item).map(|name| name.value),
            None => Some(StepName::new(format!("verify-{}", index + 1)).expect("plain letters and a number")),
        };
        let probe = probe(reader, &fields, inputs);
        let mut span = |key, range, default| match fields.get(key) {
            Some(item) => reader.duration(&item, range),
            None => Some(default),
        };
        let hold = span("for", Millis(0)..=DAY, Millis(0));
        let spare = hold.map_or(DEFAULT_SPARE, |hold| Millis(hold.0 + DEFAULT_SPARE.0));
        let give_up = span("timeout", Millis(100)..=Millis(DAY.0 * 7), spare);
        let interval =
            span("interval", INTERVALS, default_interval(hold.unwrap_or(Millis(0)), give_up.unwrap_or(spare)));
        let (hold, interval, give_up) = (hold?, interval?, give_up?);
        let check = Self { name: name?, place: item.key.clone(), probe: probe?, hold, interval, give_up };
        check.can_hold(reader).then_some(check)
    }

    /// A check that can't have held before its time is up would always fail.
    fn can_hold(&self, reader: &mut Reader) -> bool {
        let Self { hold, interval, give_up, .. } = self;
        let why = if hold >= give_up {
            format!("must hold for {hold} and gives up after {give_up}: the timeout must be longer")
        } else if interval >= give_up {
            format!("looks every {interval} and gives up after {give_up}: the timeout must be longer")
        } else if hold.0 > 0 && interval > hold {
            format!("looks every {interval} and must hold for {hold}: one look in that window proves nothing")
        } else {
            return true;
        };
        reader.fault(Code::InvalidValue, self.place.clone(), why);
        false
    }
}

/// Short windows are looked at more often.
fn default_interval(hold: Millis, give_up: Millis) -> Millis {
    let window = if hold == Millis(0) { give_up } else { hold };
    DEFAULT_INTERVAL.min(Millis(window.0 / 2)).max(Millis(10))
}

fn probe(reader: &mut Reader, fields: &Fields<'_>, inputs: &BTreeSet<String>) -> Option<ProbeText> {
    let kinds = ["http", "tcp", "command"];
    let given: Vec<Item<'_>> = kinds.iter().filter_map(|kind| fields.get(kind)).collect();
    match given.as_slice() {
        [_] => {}
        [] => {
            let message = "needs one of \"http\", \"tcp\" and \"command\": what is looked at";
            reader.fault(Code::MissingKey, fields.place.clone(), message);
            return None;
        }
        [_, second, ..] => {
            let message = "looks at one thing: give \"http\", \"tcp\" or \"command\", and a [[verify]] for each";
            reader.fault(Code::InvalidValue, second.key.clone(), message);
            return None;
        }
    }
    if let Some(item) = fields.get("http") {
        return http(reader, &item, inputs);
    }
    if let Some(item) = fields.get("tcp") {
        let fields = reader.table(&item, &["address"])?;
        let address = reader.required(&fields, "address")?;
        let address = reader.ruled_template(&address, inputs, field::address)?;
        return Some(ProbeText::Tcp { address });
    }
    let item = fields.get("command")?;
    let arguments = reader.list(&item, 1..=MAX_ARGUMENTS)?;
    let argv: Vec<_> = arguments.iter().map(|item| reader.template(item, inputs)).collect();
    let argv: Vec<Template> = argv.into_iter().collect::<Option<_>>()?;
    reader.rule(&argv[0], field::program)?;
    Some(ProbeText::Command { argv })
}

fn http(reader: &mut Reader, item: &Item<'_>, inputs: &BTreeSet<String>) -> Option<ProbeText> {
    let fields = reader.table(item, &["url", "expect_status", "expect_body"])?;
    let url = reader.required(&fields, "url").and_then(|item| reader.ruled_template(&item, inputs, field::url));
    let status = reader.required(&fields, "expect_status").and_then(|item| reader.integer(&item, 100..=599));
    let expect_body = match fields.get("expect_body") {
        Some(item) => Some(reader.ruled_template(&item, inputs, field::expected_body)?),
        None => None,
    };
    let expect_status = u16::try_from(status?).expect("checked by its range");
    Some(ProbeText::Http { url: url?, expect_status, expect_body })
}
