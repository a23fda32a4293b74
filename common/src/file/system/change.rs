//! What a step's `with` asks of a system, before its inputs are known.

use std::collections::{BTreeMap, BTreeSet};

use crate::adapter::Adapter;
use crate::code::Code;
use crate::file::field;
use crate::file::reader::{Complaint, Fields, Item, Place, Reader, shown};
use crate::file::template::Template;
use crate::rollback::DataEffect;
use crate::system::{Archive, Change, Commit, ExternalChange, Migrate, Submit};

use super::{git, http};

const MAX_ENTRIES: usize = 1000;
const MAX_PATH: usize = 1024;
const MAX_MESSAGE: usize = 200;

/// Which adapter the keys of a `with` are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::file) enum Kind {
    Release,
    Migrate,
    Commit,
    Submit,
    External,
}

impl Kind {
    /// By the first of its own keys that is there.
    pub(in crate::file) fn of(with: &Fields<'_>) -> Self {
        let marks = [
            (Kind::Migrate, ["migrations", "to"].as_slice()),
            (Kind::Commit, &["commit", "files"]),
            (Kind::Submit, &["body"]),
            (Kind::External, &["settings"]),
        ];
        let found = marks.iter().find(|(_, keys)| keys.iter().any(|key| with.get(key).is_some()));
        found.map_or(Kind::Release, |(kind, _)| *kind)
    }

    /// The keys that may stand beside each other.
    pub(in crate::file) fn keys(self) -> &'static [&'static str] {
        match self {
            Kind::Release => &[
                "archive",
                "sha256",
                "revision",
                "expected_revision",
                "migrations",
                "to",
                "commit",
                "files",
                "body",
                "settings",
            ],
            Kind::Migrate => &["archive", "sha256", "expected_revision", "migrations", "to", "transaction"],
            Kind::Commit => &["archive", "sha256", "revision", "expected_revision", "commit", "files", "keep"],
            Kind::Submit => &["revision", "expected_revision", "body", "content_type", "headers"],
            Kind::External => &["archive", "sha256", "revision", "expected_revision", "settings"],
        }
    }
}

/// A change with its gaps.
#[derive(Clone, Debug)]
pub(in crate::file) enum Asked {
    Migrate {
        archive: Option<(Template, Template)>,
        migrations: Template,
        to: Template,
        transaction: bool,
    },
    Commit {
        archive: Option<(Template, Template)>,
        files: BTreeMap<String, Template>,
        keep: bool,
        message: Option<Template>,
    },
    Submit {
        body: Template,
        content_type: String,
        headers: BTreeMap<String, Template>,
    },
    External {
        archive: Option<(Template, Template)>,
        settings: BTreeMap<String, Template>,
    },
}

/// Fills a template and asks its rule.
pub(in crate::file) trait Fill {
    fn fill(&mut self, template: &Template, rule: fn(&str) -> Result<(), Complaint>) -> Option<String>;
}

impl Asked {
    /// Reads it. `None` where a fault was recorded, or for a release.
    pub(in crate::file) fn read(
        reader: &mut Reader,
        kind: Kind,
        with: &Fields<'_>,
        inputs: &BTreeSet<String>,
    ) -> Option<Self> {
        match kind {
            Kind::Release => None,
            Kind::Migrate => migrate(reader, with, inputs),
            Kind::Commit => commit(reader, with, inputs),
            Kind::Submit => submit(reader, with, inputs),
            Kind::External => {
                let archive = archive(reader, with, inputs);
                let settings = table(reader, with.get("settings"), inputs, |_| Ok(()));
                Some(Asked::External { archive: archive?, settings: settings? })
            }
        }
    }

    /// Whose it is.
    pub(in crate::file) fn adapter(&self) -> Adapter {
        match self {
            Asked::Migrate { .. } => Adapter::Postgres,
            Asked::Commit { .. } => Adapter::Git,
            Asked::Submit { .. } => Adapter::Http,
            Asked::External { .. } => Adapter::External,
        }
    }

    /// The revision that it leaves, where it is not said by `revision`.
    pub(in crate::file) fn revision(&self) -> Option<&Template> {
        match self {
            Asked::Migrate { to, .. } => Some(to),
            Asked::Commit { .. } | Asked::Submit { .. } | Asked::External { .. } => None,
        }
    }

    /// Why it can't be repeated, where it can't.
    pub(in crate::file) fn unrepeatable(&self) -> Option<&'static str> {
        match self {
            Asked::Migrate { transaction: false, .. } => Some(
                "a migration outside of a transaction may be done by half: transaction = false makes the step \"unsafe\"",
            ),
            Asked::Migrate { transaction: true, .. }
            | Asked::Commit { .. }
            | Asked::Submit { .. }
            | Asked::External { .. } => None,
        }
    }

    /// With its gaps filled, and what the step says that it does to data.
    pub(in crate::file) fn resolve(&self, fill: &mut impl Fill, data: DataEffect) -> Option<Change> {
        let whole = |entries: Vec<Option<(String, String)>>| entries.into_iter().collect::<Option<BTreeMap<_, _>>>();
        Some(match self {
            Asked::Migrate { archive, migrations, to, transaction } => {
                let archive = filled_archive(archive.as_ref(), fill);
                let migrations = fill.fill(migrations, folder);
                let to = fill.fill(to, version);
                Change::Migrate(Migrate {
                    archive: archive?,
                    migrations: migrations?,
                    to: to?,
                    transaction: *transaction,
                    data,
                })
            }
            Asked::Commit { archive, files, keep, message } => {
                let archive = filled_archive(archive.as_ref(), fill);
                let files = whole(
                    files.iter().map(|(path, text)| Some((path.clone(), fill.fill(text, |_| Ok(()))?))).collect(),
                );
                let message = message.as_ref().map_or(Some(None), |text| fill.fill(text, self::message).map(Some));
                Change::Commit(Commit { archive: archive?, files: files?, keep: *keep, message: message? })
            }
            Asked::Submit { body, content_type, headers } => {
                let body = fill.fill(body, |_| Ok(()));
                let headers = whole(
                    headers.iter().map(|(name, text)| Some((name.clone(), fill.fill(text, header_value)?))).collect(),
                );
                Change::Submit(Submit { body: body?, content_type: content_type.clone(), headers: headers? })
            }
            Asked::External { archive, settings } => {
                let archive = filled_archive(archive.as_ref(), fill);
                let settings = whole(
                    settings.iter().map(|(key, text)| Some((key.clone(), fill.fill(text, |_| Ok(()))?))).collect(),
                );
                Change::External(ExternalChange { archive: archive?, settings: settings? })
            }
        })
    }
}

fn filled_archive(archive: Option<&(Template, Template)>, fill: &mut impl Fill) -> Option<Option<Archive>> {
    let Some((archive, sha256)) = archive else { return Some(None) };
    let archive = fill.fill(archive, field::archive);
    let sha256 = fill.fill(sha256, field::sha256);
    Some(Some(Archive { archive: archive?, sha256: sha256? }))
}

fn migrate(reader: &mut Reader, with: &Fields<'_>, inputs: &BTreeSet<String>) -> Option<Asked> {
    let archive = archive(reader, with, inputs);
    let migrations = reader.required(with, "migrations").and_then(|item| reader.ruled_template(&item, inputs, folder));
    let to = reader.required(with, "to").and_then(|item| reader.ruled_template(&item, inputs, version));
    let transaction = with.get("transaction").map_or(Some(true), |item| reader.boolean(&item));
    Some(Asked::Migrate { archive: archive?, migrations: migrations?, to: to?, transaction: transaction? })
}

fn commit(reader: &mut Reader, with: &Fields<'_>, inputs: &BTreeSet<String>) -> Option<Asked> {
    let archive = archive(reader, with, inputs);
    let files = table(reader, with.get("files"), inputs, |path| git::below(path, MAX_PATH));
    let keep = with.get("keep").map_or(Some(true), |item| reader.boolean(&item));
    let message = with.get("commit").map_or(Some(None), |item| reader.ruled_template(&item, inputs, message).map(Some));
    let (archive, files) = (archive?, files?);
    if archive.is_none() && files.is_empty() {
        reader.fault(
            Code::MissingKey,
            with.place.clone(),
            "a commit needs files: \"files\", or \"archive\" with \"sha256\"",
        );
        return None;
    }
    Some(Asked::Commit { archive, files, keep: keep?, message: message? })
}

fn submit(reader: &mut Reader, with: &Fields<'_>, inputs: &BTreeSet<String>) -> Option<Asked> {
    let body = reader.required(with, "body").and_then(|item| reader.lines_template(&item, inputs));
    let content_type = match with.get("content_type") {
        Some(item) => reader.ruled(&item, header_value),
        None => Some("application/json".to_owned()),
    };
    let headers = table(reader, with.get("headers"), inputs, http::header);
    Some(Asked::Submit { body: body?, content_type: content_type?, headers: headers? })
}

/// The two keys of an archive, both or none.
fn archive(reader: &mut Reader, with: &Fields<'_>, inputs: &BTreeSet<String>) -> Option<Option<(Template, Template)>> {
    let (archive, sha256) = (with.get("archive"), with.get("sha256"));
    match (archive, sha256) {
        (None, None) => Some(None),
        (Some(archive), Some(sha256)) => {
            let archive = reader.ruled_template(&archive, inputs, field::archive);
            let sha256 = reader.ruled_template(&sha256, inputs, field::sha256);
            Some(Some((archive?, sha256?)))
        }
        (Some(item), None) | (None, Some(item)) => {
            reader.fault(Code::MissingKey, item.key, "\"archive\" and \"sha256\" belong together");
            None
        }
    }
}

/// A table of texts, which may have lines.
fn table(
    reader: &mut Reader,
    item: Option<Item<'_>>,
    inputs: &BTreeSet<String>,
    rule: fn(&str) -> Result<(), Complaint>,
) -> Option<BTreeMap<String, Template>> {
    let Some(item) = item else { return Some(BTreeMap::new()) };
    let fields = reader.open_table(&item)?;
    let entries: Vec<_> = fields.keys().filter_map(|key| Some((key.to_owned(), fields.get(key)?))).collect();
    if entries.len() > MAX_ENTRIES {
        reader.complain(item.place(), Complaint::invalid(format!("at most {MAX_ENTRIES} entries are allowed")));
        return None;
    }
    let read: Vec<_> = entries.into_iter().map(|(key, entry)| keyed(reader, key, &entry, inputs, rule)).collect();
    read.into_iter().collect()
}

fn keyed(
    reader: &mut Reader,
    key: String,
    entry: &Item<'_>,
    inputs: &BTreeSet<String>,
    rule: fn(&str) -> Result<(), Complaint>,
) -> Option<(String, Template)> {
    if let Err(complaint) = rule(&key) {
        let place = Place { at: entry.key.at, path: entry.key.path.clone() };
        reader.complain(place, complaint);
        return None;
    }
    Some((key, reader.lines_template(entry, inputs)?))
}

/// A folder of migrations.
fn folder(text: &str) -> Result<(), Complaint> {
    let parts = text.trim_end_matches('/').trim_start_matches('/').split('/');
    let odd = |part: &str| matches!(part, "" | "..");
    if (1..=MAX_PATH).contains(&text.len()) && !parts.into_iter().any(odd) {
        return Ok(());
    }
    Err(Complaint::invalid(format!("{} is no folder: 1 to {MAX_PATH} bytes, no empty part and no \"..\"", shown(text))))
}

/// What stands before the first `_` of a file's name.
fn version(text: &str) -> Result<(), Complaint> {
    if text.contains('_') {
        return Err(Complaint::invalid(format!(
            "{} is no version: it ends before the first \"_\" of a file's name",
            shown(text)
        )));
    }
    field::revision(text)
}

/// One line: what follows it are trailers.
fn message(text: &str) -> Result<(), Complaint> {
    if (1..=MAX_MESSAGE).contains(&text.len()) && !text.contains(char::is_control) {
        return Ok(());
    }
    Err(Complaint::invalid(format!(
        "a commit's first line has 1 to {MAX_MESSAGE} bytes and no line feed, this one has {} bytes",
        text.len()
    )))
}

fn header_value(text: &str) -> Result<(), Complaint> {
    if text.len() <= MAX_PATH && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        return Ok(());
    }
    Err(Complaint::invalid(format!(
        "{} is no header's value: at most {MAX_PATH} printable ASCII characters",
        shown(text)
    )))
}
