//! The deployment file, as written.

use std::collections::{BTreeMap, BTreeSet};

use crate::archive::ArchiveSource;
use crate::code::Code;
use crate::file::inputs::{Input, Inputs};
use crate::file::reader::{Fields, Item, Place, Reader, shown};
use crate::file::rollback::{self, Rollback};
use crate::file::step::{Part, Step, Work};
use crate::file::target::TOP_KEYS as TARGET_KEYS;
use crate::file::template::Template;
use crate::file::tree::{self, Node, Value};
use crate::file::verify::{self, Check};
use crate::file::{Errors, SCHEMA, field, later, reconcile, text};
use crate::id::TargetName;
use crate::recovery::Policy;
use crate::spec::{OrderKey, RetrySpec, Timeouts};
use crate::time::Millis;

/// The keys at the top of the file.
pub(super) const TOP_KEYS: [&str; 12] = [
    "schema",
    "target",
    "inputs",
    "lease",
    "step",
    "verify",
    "cancel",
    "timeouts",
    "retry",
    "rollback",
    "reconcile",
    "order",
];

/// Most steps of one list.
pub(super) const MAX_STEPS: usize = 100;
const HOUR: Millis = Millis::from_secs(3600);
const MONTH: Millis = Millis::from_secs(30 * 86_400);
const DEFAULT_TTL: Millis = Millis::from_secs(30);
const DEFAULT_GRACE: Millis = Millis::from_secs(10);
const DEFAULT_RETRY: RetrySpec = RetrySpec {
    max_attempts: 3,
    backoff_initial: Millis::from_secs(2),
    backoff_max: Millis::from_secs(60),
    transient_exit_codes: BTreeSet::new(),
};

/// A deployment file that is right in itself. What depends on inputs and on the target is open until
/// [`resolve`](DeploymentFile::resolve).
#[derive(Clone, Debug)]
pub struct DeploymentFile {
    /// For the line and column of what turns out to be wrong later.
    pub(super) text: String,
    pub(super) target: Option<TargetName>,
    pub(super) inputs: Inputs,
    pub(super) lease_ttl: Millis,
    pub(super) cancel_grace: Millis,
    pub(super) retry: RetrySpec,
    pub(super) timeouts: Timeouts,
    // Stricter than the target, or as it is.
    pub(super) policy: Option<Policy>,
    pub(super) order: Option<Order>,
    pub(super) steps: Vec<Step>,
    pub(super) checks: Vec<Check>,
    pub(super) rollback: Option<Rollback>,
}

impl DeploymentFile {
    /// Reads TOML, or JSON where the text begins with `{`. At most [`MAX_FILE`](crate::file::MAX_FILE) bytes.
    pub fn parse(text: &str) -> Result<Self, Errors> {
        let root = tree::read(text)?;
        let mut reader = Reader::default();
        let file = Self::read(&mut reader, &root, text);
        match file.filter(|_| reader.faults.is_empty()) {
            Some(file) => Ok(file),
            None => {
                later::other_file(&mut reader, &TARGET_KEYS, "a target's file: holdfast target apply FILE");
                Err(Errors::of(text, reader.faults))
            }
        }
    }

    /// [`parse`](Self::parse) of the bytes of a file.
    pub fn parse_bytes(bytes: &[u8]) -> Result<Self, Errors> {
        Self::parse(text(bytes)?)
    }

    /// The target that the file names, where it names one.
    #[must_use]
    pub fn target(&self) -> Option<&TargetName> {
        self.target.as_ref()
    }

    /// The declared inputs by name.
    #[must_use]
    pub fn inputs(&self) -> &BTreeMap<String, Input> {
        &self.inputs.declared
    }

    /// The files to upload, those of the rollback included, each with the digest that the file gives, as far as these inputs and the defaults tell them.
    /// Faults are left to [`resolve`](Self::resolve).
    #[must_use]
    pub fn uploads(&self, inputs: &BTreeMap<String, String>) -> BTreeSet<(String, String)> {
        let values = self.inputs.values(&mut Reader::default(), inputs);
        let upload = |step: &Step| {
            let Work::Release { archive, sha256 } = &step.work else { return None };
            match ArchiveSource::of(&archive.expand(&values)?) {
                Ok(ArchiveSource::Upload(path)) => Some((path.to_owned(), sha256.expand(&values)?)),
                Ok(ArchiveSource::Host(_) | ArchiveSource::Https(_)) | Err(_) => None,
            }
        };
        self.all_steps().filter_map(upload).collect()
    }

    /// The steps, and those of the rollback behind them.
    pub(super) fn all_steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().chain(self.rollback.as_ref().map_or(&[][..], Rollback::steps))
    }

    fn read(reader: &mut Reader, root: &Node, text: &str) -> Option<Self> {
        let fields = open(reader, root, &TOP_KEYS)?;
        let target = fields.get("target").and_then(|item| reader.parsed(&item)).map(|name| name.value);
        let inputs = Inputs::read(reader, fields.get("inputs"));
        let lease_ttl = span(reader, fields.get("lease"), "ttl", Millis::from_secs(1)..=HOUR, DEFAULT_TTL);
        let cancel_grace = span(reader, fields.get("cancel"), "grace", Millis(0)..=HOUR, DEFAULT_GRACE);
        let retry = retry(reader, fields.get("retry"));
        let timeouts = timeouts(reader, fields.get("timeouts"));
        let policy = reconcile::of_deployment(reader, fields.get("reconcile"));
        let order = fields.get("order").and_then(|item| order(reader, &item, &inputs));
        let checks = verify::read(reader, fields.get("verify"), &inputs.names);
        let steps = steps(reader, &fields, &inputs)?;
        let rollback = rollback::read(reader, &fields, &inputs.names, &steps);
        unique(reader, &steps, &checks, rollback.as_ref().map_or(&[], Rollback::steps));
        let text = text.to_owned();
        Some(Self {
            text,
            target,
            inputs,
            lease_ttl,
            cancel_grace,
            retry,
            timeouts,
            policy,
            order,
            steps,
            checks,
            rollback,
        })
    }
}

/// The order key as written.
#[derive(Clone, Debug)]
pub(super) enum Order {
    /// A number.
    Key(OrderKey),
    /// A string that must come to one.
    Text(Template),
}

/// Opens the root and looks at `schema` before anything else: another schema has other keys.
pub(super) fn open<'t>(reader: &mut Reader, root: &'t Node, known: &[&str]) -> Option<Fields<'t>> {
    let item = Item { node: root, key: Place { at: 0, path: String::new() } };
    let top = reader.open_table(&item)?;
    let schema = reader.required(&top, "schema").and_then(|schema| reader.text(&schema).map(|text| (schema, text)));
    match schema {
        Some((_, text)) if text == SCHEMA => reader.table(&item, known),
        Some((schema, text)) => {
            let is_version = text.strip_prefix("holdfast/v").is_some_and(|version| version.parse::<u32>().is_ok());
            let code = if is_version { Code::NotSupported } else { Code::InvalidValue };
            reader.fault(
                code,
                schema.place(),
                format!("the schema {} is not known to this version: it reads \"{SCHEMA}\"", shown(text)),
            );
            None
        }
        None => None,
    }
}

fn steps(reader: &mut Reader, fields: &Fields<'_>, inputs: &Inputs) -> Option<Vec<Step>> {
    let list = reader.required(fields, "step")?;
    let items = reader.list(&list, 1..=MAX_STEPS)?;
    Some(items.iter().filter_map(|item| Step::read(reader, item, &inputs.names, Part::Forward)).collect())
}

/// Steps, checks and the steps of the rollback share one list of names.
fn unique(reader: &mut Reader, steps: &[Step], checks: &[Check], back: &[Step]) {
    let mut taken = BTreeSet::new();
    let steps = steps.iter().map(|step| (&step.name, &step.place));
    let checks = checks.iter().map(|check| (&check.name, &check.place));
    let back = back.iter().map(|step| (&step.name, &step.place));
    for (name, place) in steps.chain(checks).chain(back) {
        if !taken.insert(name) {
            let message = format!("the name \"{name}\" is taken by an earlier step");
            reader.fault(Code::InvalidValue, place.clone(), message);
        }
    }
}

/// `[timeouts]`.
fn timeouts(reader: &mut Reader, item: Option<Item<'_>>) -> Timeouts {
    let Some(fields) = item.and_then(|item| reader.table(&item, &["queue", "deployment"])) else {
        return Timeouts::default();
    };
    let mut take = |key| fields.get(key).and_then(|item| reader.duration(&item, Millis(100)..=MONTH));
    Timeouts { queue: take("queue"), deployment: take("deployment") }
}

/// The one duration of a table.
fn span(
    reader: &mut Reader,
    table: Option<Item<'_>>,
    key: &str,
    range: std::ops::RangeInclusive<Millis>,
    default: Millis,
) -> Millis {
    let fields = table.and_then(|item| reader.table(&item, &[key]));
    let item = fields.and_then(|fields| fields.get(key));
    item.and_then(|item| reader.duration(&item, range)).unwrap_or(default)
}

/// A number, or a string that comes to one once its inputs stand in it.
fn order(reader: &mut Reader, item: &Item<'_>, inputs: &Inputs) -> Option<Order> {
    match &item.node.value {
        Value::Integer(number) => match u64::try_from(*number).ok().and_then(OrderKey::new) {
            Some(key) => Some(Order::Key(key)),
            None => {
                reader.complain(item.place(), field::no_order(&number.to_string()));
                None
            }
        },
        Value::Text(_) => reader.ruled_template(item, &inputs.names, field::order).map(Order::Text),
        Value::Boolean(_) | Value::OtherNumber | Value::Date(_) | Value::Null | Value::List(_) | Value::Table(_) => {
            reader.wrong_kind(item, "an integer, or a string that comes to one")
        }
    }
}

fn retry(reader: &mut Reader, item: Option<Item<'_>>) -> RetrySpec {
    let keys = ["max_attempts", "backoff", "transient_exit_codes"];
    let Some(fields) = item.and_then(|item| reader.table(&item, &keys)) else { return DEFAULT_RETRY };
    let transient_exit_codes = transient_exit_codes(reader, fields.get("transient_exit_codes"));
    let max_attempts = fields.get("max_attempts").and_then(|item| reader.integer(&item, 1..=100));
    let max_attempts = max_attempts.unwrap_or(DEFAULT_RETRY.max_attempts);
    let mut retry = RetrySpec { max_attempts, transient_exit_codes, ..DEFAULT_RETRY };
    let Some(backoff) = fields.get("backoff").and_then(|item| reader.table(&item, &["initial", "max"])) else {
        return retry;
    };
    let mut take = |key| {
        let item = backoff.get(key)?;
        reader.duration(&item, Millis(10)..=HOUR)
    };
    let (initial, max) = (take("initial"), take("max"));
    retry.backoff_initial = initial.unwrap_or(DEFAULT_RETRY.backoff_initial.min(max.unwrap_or(HOUR)));
    retry.backoff_max = max.unwrap_or(DEFAULT_RETRY.backoff_max.max(retry.backoff_initial));
    if retry.backoff_initial > retry.backoff_max {
        let message = format!("initial {} is longer than max {}", retry.backoff_initial, retry.backoff_max);
        reader.fault(Code::InvalidValue, backoff.place.clone(), message);
    }
    retry
}

/// `retry.transient_exit_codes`: 0 is no failure, and what is above 255 no process can exit with.
fn transient_exit_codes(reader: &mut Reader, item: Option<Item<'_>>) -> BTreeSet<u8> {
    let codes = item.and_then(|item| reader.list(&item, 0..=255)).unwrap_or_default();
    codes.iter().filter_map(|code| reader.integer(code, 1..=255)).filter_map(|code| u8::try_from(code).ok()).collect()
}
