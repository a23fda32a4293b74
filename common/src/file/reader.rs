//! Takes typed values out of the tree and collects what is wrong with them.
//!
//! A method that answers `None` has recorded why.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::code::Code;
use crate::file::suggest::nearest;
use crate::file::tree::{Node, Table, Value};
use crate::text::{bounded, one_line};
use crate::time::Millis;

/// Where something stands: byte offset and dotted key path.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) at: usize,
    pub(super) path: String,
}

/// A value together with where it stands.
#[derive(Clone, Debug)]
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) place: Place,
}

/// Something wrong, before its line and column are counted.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) code: Code,
    pub(super) place: Place,
    pub(super) message: String,
    pub(super) suggestion: Option<String>,
    /// It is about a value that was given for an input, not about the file.
    pub(super) about_given: bool,
}

impl Fault {
    pub(super) fn at(code: Code, at: usize, message: String) -> Self {
        Self { code, place: Place { at, path: String::new() }, message, suggestion: None, about_given: false }
    }
}

/// What a value's own rule says against it.
#[derive(Debug)]
pub(super) struct Complaint {
    pub(super) code: Code,
    pub(super) message: String,
}

impl Complaint {
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self { code: Code::InvalidValue, message: message.into() }
    }
}

/// A value in the tree with its key.
#[derive(Clone, Debug)]
pub(super) struct Item<'t> {
    pub(super) node: &'t Node,
    /// Where the key stands; in a list, where the value does.
    pub(super) key: Place,
}

impl Item<'_> {
    pub(super) fn place(&self) -> Place {
        Place { at: self.node.at, path: self.key.path.clone() }
    }
}

/// A table whose keys are all known.
pub(super) struct Fields<'t> {
    table: &'t Table,
    /// Where the table's own key stands.
    pub(super) place: Place,
}

impl<'t> Fields<'t> {
    pub(super) fn get(&self, key: &str) -> Option<Item<'t>> {
        let entry = self.table.get(key)?;
        let path = if self.place.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.place.path) };
        Some(Item { node: &entry.node, key: Place { at: entry.at, path } })
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &'t str> {
        self.table.keys().map(String::as_str)
    }
}

/// Collects faults.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) faults: Vec<Fault>,
}

impl Reader {
    pub(super) fn fault(&mut self, code: Code, place: Place, message: impl Into<String>) {
        self.faults.push(Fault { code, place, message: message.into(), suggestion: None, about_given: false });
    }

    pub(super) fn complain(&mut self, place: Place, complaint: Complaint) {
        self.fault(complaint.code, place, complaint.message);
    }

    /// A part that the schema has and this version can't honour.
    pub(super) fn not_supported(&mut self, item: &Item<'_>, what: &str) {
        self.fault(Code::NotSupported, item.key.clone(), format!("{what}: not supported by this version"));
    }

    /// A table in which any key may stand.
    pub(super) fn open_table<'t>(&mut self, item: &Item<'t>) -> Option<Fields<'t>> {
        let Value::Table(table) = &item.node.value else { return self.wrong_kind(item, "a table") };
        Some(Fields { table, place: item.key.clone() })
    }

    /// A table in which only the known keys may stand. The others are recorded, the known ones can still be read.
    pub(super) fn table<'t>(&mut self, item: &Item<'t>, known: &[&str]) -> Option<Fields<'t>> {
        let fields = self.open_table(item)?;
        for (key, entry) in fields.table.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            let path = format!(
                "{}{}{}",
                fields.place.path,
                if fields.place.path.is_empty() { "" } else { "." },
                bounded(key, 80)
            );
            self.faults.push(Fault {
                code: Code::UnknownKey,
                place: Place { at: entry.at, path },
                message: format!("unknown key {}", shown(key)),
                suggestion: nearest(key, known.iter().copied()),
                about_given: false,
            });
        }
        Some(fields)
    }

    pub(super) fn required<'t>(&mut self, fields: &Fields<'t>, key: &str) -> Option<Item<'t>> {
        let item = fields.get(key);
        if item.is_none() {
            self.fault(Code::MissingKey, fields.place.clone(), format!("the key \"{key}\" is required here"));
        }
        item
    }

    pub(super) fn list<'t>(&mut self, item: &Item<'t>, length: RangeInclusive<usize>) -> Option<Vec<Item<'t>>> {
        let Value::List(nodes) = &item.node.value else { return self.wrong_kind(item, "a list") };
        if !length.contains(&nodes.len()) {
            let (min, max) = length.into_inner();
            let message = format!("has {} entries, {min} to {max} are allowed", nodes.len());
            self.fault(Code::InvalidValue, item.key.clone(), message);
            return None;
        }
        let element = |(index, node): (usize, &'t Node)| Item {
            node,
            key: Place { at: node.at, path: format!("{}[{index}]", item.key.path) },
        };
        Some(nodes.iter().enumerate().map(element).collect())
    }

    /// A string without control characters.
    pub(super) fn text<'t>(&mut self, item: &Item<'t>) -> Option<&'t str> {
        let Value::Text(text) = &item.node.value else { return self.wrong_kind(item, "a string") };
        match without_controls(text) {
            Ok(()) => Some(text),
            Err(complaint) => {
                self.complain(item.place(), complaint);
                None
            }
        }
    }

    /// A string of any number of lines.
    pub(super) fn lines<'t>(&mut self, item: &Item<'t>) -> Option<&'t str> {
        let Value::Text(text) = &item.node.value else { return self.wrong_kind(item, "a string") };
        match text.split(['\n', '\t']).try_for_each(without_controls) {
            Ok(()) => Some(text),
            Err(complaint) => {
                self.complain(item.place(), complaint);
                None
            }
        }
    }

    /// A string that another type reads.
    pub(super) fn parsed<T: FromStr>(&mut self, item: &Item<'_>) -> Option<Located<T>>
    where
        T::Err: Display,
    {
        let text = self.text(item)?;
        match text.parse() {
            Ok(value) => Some(Located { value, place: item.place() }),
            Err(error) => {
                self.fault(Code::InvalidValue, item.place(), format!("{}: {error}", shown(text)));
                None
            }
        }
    }

    pub(super) fn duration(&mut self, item: &Item<'_>, range: RangeInclusive<Millis>) -> Option<Millis> {
        let span = self.parsed::<Millis>(item)?.value;
        if range.contains(&span) {
            return Some(span);
        }
        let (min, max) = range.into_inner();
        self.fault(Code::InvalidValue, item.place(), format!("{span} is outside {min} to {max}"));
        None
    }

    pub(super) fn integer(&mut self, item: &Item<'_>, range: RangeInclusive<u32>) -> Option<u32> {
        let Value::Integer(number) = &item.node.value else { return self.wrong_kind(item, "an integer") };
        match u32::try_from(*number).ok().filter(|number| range.contains(number)) {
            Some(number) => Some(number),
            None => {
                let (min, max) = range.into_inner();
                self.fault(Code::InvalidValue, item.place(), format!("{number} is outside {min} to {max}"));
                None
            }
        }
    }

    pub(super) fn boolean(&mut self, item: &Item<'_>) -> Option<bool> {
        let Value::Boolean(truth) = &item.node.value else { return self.wrong_kind(item, "true or false") };
        Some(*truth)
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(&mut self, item: &Item<'_>, choices: &[(&'static str, T)]) -> Option<T> {
        let text = self.text(item)?;
        if let Some((_, value)) = choices.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let words: Vec<String> = choices.iter().map(|(word, _)| format!("{word:?}")).collect();
        self.faults.push(Fault {
            code: Code::InvalidValue,
            place: item.place(),
            message: format!("{} is not one of {}", shown(text), words.join(", ")),
            suggestion: nearest(text, choices.iter().map(|(word, _)| *word)),
            about_given: false,
        });
        None
    }

    pub(super) fn wrong_kind<T>(&mut self, item: &Item<'_>, expected: &str) -> Option<T> {
        self.fault(Code::InvalidValue, item.place(), format!("expected {expected}, found {}", item.node.value.kind()));
        None
    }
}

/// A text from the file in an error message: quoted, on one line, not too long.
pub(super) fn shown(text: &str) -> String {
    format!("\"{}\"", one_line(&bounded(text, 80)))
}

/// Control characters have no place in a name, a path or an argument. A script with several lines belongs in a file.
pub(super) fn without_controls(text: &str) -> Result<(), Complaint> {
    match text.chars().find(|c| c.is_control()) {
        None => Ok(()),
        Some(c) => Err(Complaint::invalid(format!("control characters are not allowed: found {c:?}"))),
    }
}
