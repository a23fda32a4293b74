//! `[[step]]` and `[[rollback.step]]`.

use std::collections::BTreeSet;

use crate::code::Code;
use crate::file::field;
use crate::file::reader::{Complaint, Fields, Item, Located, Place, Reader};
use crate::file::system::{Asked, Kind};
use crate::file::template::Template;
use crate::id::{ResourceName, StepName};
use crate::rollback::DataEffect;
use crate::spec::{RetryClass, StepEffect};
use crate::time::Millis;

const KEYS: [&str; 8] = ["name", "effect", "run", "resource", "retry", "data", "with", "timeout"];
const MAX_ARGUMENTS: usize = 256;
const TIMEOUTS: std::ops::RangeInclusive<Millis> = Millis(100)..=Millis::from_secs(7 * 86_400);

/// A step as written. What depends on inputs or on the target is still open.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) name: StepName,
    pub(super) place: Place,
    pub(super) effect: StepEffect,
    pub(super) resource: Option<Located<ResourceName>>,
    pub(super) retry: RetryClass,
    pub(super) work: Work,
    pub(super) revision: Option<Template>,
    pub(super) expected_revision: Option<Template>,
    pub(super) timeout: Option<Millis>,
    /// With the place of the key, or of the step where it says nothing.
    pub(super) data: Located<DataEffect>,
}

/// Where a step stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Forward,
    /// Here a step may put the previous revision back.
    Rollback,
}

#[derive(Clone, Debug)]
pub(super) enum Work {
    Command(Vec<Template>),
    Release {
        archive: Template,
        sha256: Template,
    },
    /// The previous revision of its resource is put back. Only in a rollback.
    Restore,
    /// Asks a change of a system.
    System(Asked),
}

impl Step {
    pub(super) fn read(reader: &mut Reader, item: &Item<'_>, inputs: &BTreeSet<String>, part: Part) -> Option<Self> {
        let fields = reader.table(item, &KEYS)?;
        let name = reader.required(&fields, "name").and_then(|item| reader.parsed::<StepName>(&item));
        let effects = [("mutates", StepEffect::Mutates), ("none", StepEffect::None)];
        let effect = match fields.get("effect") {
            Some(item) => reader.choice(&item, &effects),
            None => Some(StepEffect::Mutates),
        };
        let restores = part == Part::Rollback
            && effect == Some(StepEffect::Mutates)
            && fields.get("run").is_none()
            && fields.get("with").is_none();
        let retry = effect.and_then(|effect| retry(reader, &fields, effect, restores));
        let resource = fields.get("resource").and_then(|item| reader.parsed(&item));
        let timeout = fields.get("timeout").and_then(|item| reader.duration(&item, TIMEOUTS));
        let data = data(reader, &fields, effect);
        let with = With::read(reader, &fields, effect, inputs);
        repeatable(reader, &fields, with.as_ref(), retry);
        let work = match restores {
            true => Some(Work::Restore),
            false => work(reader, &fields, effect, with.as_ref(), inputs),
        };
        let with = with?;
        let own = work.as_ref().and_then(Work::revision).cloned();
        let revision = with.revision.map(|(_, template)| template).or(own);
        let expected_revision = with.expected_revision.map(|(_, template)| template);
        Some(Self {
            name: name?.value,
            place: item.key.clone(),
            effect: effect?,
            resource,
            retry: retry?,
            work: work?,
            revision,
            expected_revision,
            timeout,
            data: data?,
        })
    }
}

impl Work {
    /// The revision that it leaves, where `revision` does not say it.
    fn revision(&self) -> Option<&Template> {
        match self {
            Work::System(asked) => asked.revision(),
            Work::Command(_) | Work::Release { .. } | Work::Restore => None,
        }
    }
}

/// What can't be repeated is not called repeatable.
fn repeatable(reader: &mut Reader, fields: &Fields<'_>, with: Option<&With>, retry: Option<RetryClass>) {
    let why = with.and_then(|with| with.asked.as_ref()).and_then(Asked::unrepeatable);
    if let (Some(why), Some(RetryClass::Idempotent), Some(item)) = (why, retry, fields.get("retry")) {
        reader.fault(Code::InvalidValue, item.place(), why);
    }
}

fn data(reader: &mut Reader, fields: &Fields<'_>, effect: Option<StepEffect>) -> Option<Located<DataEffect>> {
    let Some(item) = fields.get("data") else {
        return Some(Located { value: DataEffect::None, place: fields.place.clone() });
    };
    let effects = [
        ("none", DataEffect::None),
        ("expand", DataEffect::Expand),
        ("contract", DataEffect::Contract),
        ("destructive", DataEffect::Destructive),
    ];
    let value = reader.choice(&item, &effects)?;
    if effect == Some(StepEffect::None) && !value.is_none() {
        let message = "a step with effect = \"none\" changes no data: leave out \"data\", or let it mutate";
        reader.fault(Code::InvalidValue, item.place(), message);
        return None;
    }
    Some(Located { value, place: item.place() })
}

/// To put a revision back under the same operation id is safe to repeat, whoever wrote the file.
fn retry(reader: &mut Reader, fields: &Fields<'_>, effect: StepEffect, restores: bool) -> Option<RetryClass> {
    let Some(item) = fields.get("retry") else {
        return Some(match (effect, restores) {
            (StepEffect::Mutates, true) => RetryClass::Idempotent,
            (StepEffect::Mutates, false) => RetryClass::Unsafe,
            (StepEffect::None, _) => RetryClass::Pure,
        });
    };
    let classes = [("pure", RetryClass::Pure), ("idempotent", RetryClass::Idempotent), ("unsafe", RetryClass::Unsafe)];
    let class = reader.choice(&item, &classes)?;
    let message = match (effect, class) {
        (StepEffect::Mutates, RetryClass::Pure) => "\"pure\" is for steps with effect = \"none\": this one mutates",
        (StepEffect::None, RetryClass::Idempotent | RetryClass::Unsafe) => {
            "a step with effect = \"none\" is \"pure\": it runs again in every attempt"
        }
        (StepEffect::Mutates, RetryClass::Idempotent | RetryClass::Unsafe) | (StepEffect::None, RetryClass::Pure) => {
            return Some(class);
        }
    };
    reader.fault(Code::InvalidValue, item.place(), message);
    None
}

type Keyed = (Place, Template);

/// `with`, by key. Each has the place of its key.
#[derive(Default)]
struct With {
    place: Option<Place>,
    archive: Option<Keyed>,
    sha256: Option<Keyed>,
    revision: Option<Keyed>,
    expected_revision: Option<Keyed>,
    /// What it asks of a system.
    asked: Option<Asked>,
    /// Something in it was refused already.
    is_broken: bool,
}

impl With {
    fn read(
        reader: &mut Reader,
        fields: &Fields<'_>,
        effect: Option<StepEffect>,
        inputs: &BTreeSet<String>,
    ) -> Option<Self> {
        let Some(item) = fields.get("with") else { return Some(Self::default()) };
        if effect == Some(StepEffect::None) {
            reader.fault(
                Code::InvalidValue,
                item.key,
                "a step with effect = \"none\" changes no resource and has no \"with\"",
            );
            return None;
        }
        let before = reader.faults.len();
        let kind = match fields.get("run") {
            Some(_) => Kind::Release,
            None => Kind::of(&reader.open_table(&item)?),
        };
        let keys = if fields.get("run").is_some() { &["revision", "expected_revision"] } else { kind.keys() };
        let with = reader.table(&item, keys)?;
        let asked = Asked::read(reader, kind, &with, inputs);
        let mut take = |key: &str, rule: fn(&str) -> Result<(), Complaint>| {
            let item = with.get(key).filter(|_| keys.contains(&key))?;
            Some((item.key.clone(), reader.ruled_template(&item, inputs, rule)?))
        };
        let taken = Self {
            place: Some(with.place.clone()),
            archive: take("archive", field::archive),
            sha256: take("sha256", field::sha256),
            revision: take("revision", field::revision),
            expected_revision: take("expected_revision", field::revision),
            asked,
            is_broken: false,
        };
        Some(Self { is_broken: reader.faults.len() > before, ..taken })
    }
}

fn work(
    reader: &mut Reader,
    fields: &Fields<'_>,
    effect: Option<StepEffect>,
    with: Option<&With>,
    inputs: &BTreeSet<String>,
) -> Option<Work> {
    if let Some(run) = fields.get("run") {
        let arguments = reader.list(&run, 1..=MAX_ARGUMENTS)?;
        let argv: Vec<_> = arguments.iter().map(|item| reader.template(item, inputs)).collect();
        let argv: Vec<Template> = argv.into_iter().collect::<Option<_>>()?;
        reader.rule(&argv[0], field::program)?;
        return Some(Work::Command(argv));
    }
    if effect == Some(StepEffect::None) {
        reader.fault(Code::MissingKey, fields.place.clone(), "a step with effect = \"none\" needs \"run\"");
        return None;
    }
    let with = with.filter(|with| !with.is_broken)?;
    let mut require = |found: &Option<Keyed>, key: &str| {
        if found.is_none() {
            let place = with.place.clone().unwrap_or_else(|| fields.place.clone());
            let message = match &with.asked {
                None => format!("a step without \"run\" deploys an archive: it needs \"with\" with \"{key}\""),
                Some(_) => format!("\"with\" needs \"{key}\": the revision that its resource has afterwards"),
            };
            reader.fault(Code::MissingKey, place, message);
        }
        found.as_ref().map(|(_, template)| template.clone())
    };
    if let Some(asked) = &with.asked {
        if asked.revision().is_none() {
            require(&with.revision, "revision")?;
        }
        return Some(Work::System(asked.clone()));
    }
    let archive = require(&with.archive, "archive");
    let sha256 = require(&with.sha256, "sha256");
    require(&with.revision, "revision");
    Some(Work::Release { archive: archive?, sha256: sha256? })
}

impl Reader {
    /// A template whose value has a rule. Where it has no gap the rule is asked at once.
    pub(super) fn ruled_template(
        &mut self,
        item: &Item<'_>,
        inputs: &BTreeSet<String>,
        rule: fn(&str) -> Result<(), Complaint>,
    ) -> Option<Template> {
        let template = self.template(item, inputs)?;
        self.rule(&template, rule)?;
        Some(template)
    }

    pub(super) fn rule(&mut self, template: &Template, rule: fn(&str) -> Result<(), Complaint>) -> Option<()> {
        match template.literal().map(|text| rule(&text)) {
            None | Some(Ok(())) => Some(()),
            Some(Err(complaint)) => {
                self.complain(template.place.clone(), complaint);
                None
            }
        }
    }
}
