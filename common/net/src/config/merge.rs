//! Puts variables over a file and keeps track of where each value came from.
//!
//! Every value of a parsed file has a span. A value from a variable gets one past the end of the file, at an offset that
//! names the variable, so that one error path serves both.

use std::borrow::Cow;
use std::ffi::OsString;
use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::schema::{self, Key, Kind, Schema};
use super::{Error, OPERATOR_VARIABLES, PREFIX, Place, STEP_VARIABLES};

/// A variable that is set, and its key.
pub(super) struct Override<'a> {
    key: &'a Key,
    name: String,
    value: String,
}

/// Sorts the environment into overrides, variables of others (left out) and errors.
pub(super) fn overrides(
    schema: &Schema,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Vec<Override<'_>>, Error> {
    let mut found = Vec::new();
    for (name, value) in environment {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        if value.is_empty() || STEP_VARIABLES.contains(&name) {
            continue;
        }
        match schema.keys().find(|key| key.variable() == name) {
            Some(key) => found.push(Override { key, name: name.to_owned(), value: text(name, value)? }),
            None if OPERATOR_VARIABLES.contains(&name) => {}
            None => refuse_if_ours(schema, name)?,
        }
    }
    Ok(found)
}

fn text(name: &str, value: OsString) -> Result<String, Error> {
    value.into_string().map_err(|_| Error::NotText { place: Place::Variable(name.to_owned()) })
}

fn refuse_if_ours(schema: &Schema, name: &str) -> Result<(), Error> {
    let suggestion = nearest(name, schema.keys().map(Key::variable));
    let in_section = schema.sections().any(|path| {
        name.strip_prefix(&schema::variable(path)).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    });
    if in_section || suggestion.is_some() {
        return Err(Error::UnknownVariable { name: name.to_owned(), suggestion });
    }
    Ok(())
}

/// The candidate that is at most one or two letters off.
fn nearest(text: &str, candidates: impl Iterator<Item = String>) -> Option<String> {
    let allowed = if text.trim_start_matches(PREFIX).len() > 5 { 2 } else { 1 };
    candidates
        .map(|candidate| (strsim::osa_distance(text, &candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

pub(super) struct Sources<'a> {
    pub(super) file: Option<&'a Path>,
    pub(super) text: &'a str,
    pub(super) schema: &'a Schema,
    pub(super) overrides: &'a [Override<'a>],
}

impl Sources<'_> {
    pub(super) fn deserialize<T: DeserializeOwned>(&self) -> Result<T, Error> {
        let mut root = DeTable::parse(self.text).map_err(|error| self.syntax(&error))?;
        self.refuse_unknown(root.get_ref(), &mut Vec::new())?;
        for (index, change) in self.overrides.iter().enumerate() {
            let span = self.span_of(index);
            let value = respan(parse(change)?, &span);
            self.insert(root.get_mut(), &change.key.path, &span, value)?;
        }
        let origin = root.clone();
        T::deserialize(Deserializer::from(root)).map_err(|error| self.explain(&error, origin.get_ref()))
    }

    fn refuse_unknown<'t>(&self, table: &'t DeTable<'_>, path: &mut Vec<&'t str>) -> Result<(), Error> {
        for (name, value) in table {
            path.push(name.get_ref());
            if let (true, Some(inner)) = (self.schema.is_table(path), value.get_ref().as_table()) {
                self.refuse_unknown(inner, path)?;
            } else if !self.schema.is_key(path) && !self.schema.is_table(path) {
                return Err(self.unknown(path, name.span().start));
            }
            path.pop();
        }
        Ok(())
    }

    fn unknown(&self, path: &[&str], offset: usize) -> Error {
        let (name, table) = path.split_last().expect("a key was just pushed");
        let suggestion = nearest(name, self.schema.names_in(table).map(str::to_owned));
        Error::UnknownKey { place: self.place(offset), key: path.join("."), suggestion }
    }

    /// Offsets from `text.len() + 1` on are the overrides, one each.
    fn span_of(&self, index: usize) -> Range<usize> {
        let start = self.text.len() + 1 + index;
        start..start + 1
    }

    fn insert<'i>(
        &self,
        table: &mut DeTable<'i>,
        path: &[&'static str],
        span: &Range<usize>,
        value: Spanned<DeValue<'i>>,
    ) -> Result<(), Error> {
        let Some((name, rest)) = path.split_first() else { return Ok(()) };
        let key = Spanned::new(span.clone(), Cow::Borrowed(*name));
        if rest.is_empty() {
            table.insert(key, value);
            return Ok(());
        }
        let inner = table.entry(key).or_insert_with(|| Spanned::new(span.clone(), DeValue::Table(DeTable::new())));
        let place = inner.span().start;
        let found = inner.get_ref().type_str();
        let DeValue::Table(inner) = inner.get_mut() else {
            let message = format!("expected a table, found {found}");
            return Err(Error::Value { place: self.place(place), key: (*name).to_owned(), message });
        };
        self.insert(inner, rest, span, value)
    }

    fn override_at(&self, offset: usize) -> Option<&Override<'_>> {
        self.overrides.get(offset.checked_sub(self.text.len() + 1)?)
    }

    fn place(&self, offset: usize) -> Place {
        if let Some(change) = self.override_at(offset) {
            return Place::Variable(change.name.clone());
        }
        let Some(file) = self.file else { return Place::Nowhere };
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Place::Position {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    fn syntax(&self, error: &toml::de::Error) -> Error {
        let place = self.place(error.span().map_or(0, |span| span.start));
        Error::Syntax { place, message: error.message().to_owned() }
    }

    fn explain(&self, error: &toml::de::Error, root: &DeTable<'_>) -> Error {
        let offset = error.span().map_or(0, |span| span.start);
        let place = self.place(offset);
        let path = match (self.override_at(offset), error.span()) {
            (Some(change), _) => change.key.path.iter().map(|name| (*name).to_owned()).collect(),
            (None, Some(span)) => path_to(root, &span),
            (None, None) => Vec::new(),
        };
        let missing = error.message().strip_prefix("missing field `").and_then(|rest| rest.split_once('`'));
        if let Some((name, _)) = missing {
            let path: Vec<_> = path.iter().map(String::as_str).chain([name]).collect();
            let place = self.file.filter(|_| path.len() == 1).map_or(place, |file| Place::File(file.to_owned()));
            // No variable sets a key of a table in a list, only the whole list.
            let variable = self.schema.is_key(&path).then(|| schema::variable(&path));
            return Error::Missing { place, key: path.join("."), variable };
        }
        Error::Value { place, key: path.join("."), message: error.message().trim_end().to_owned() }
    }
}

/// The innermost value whose span holds `span`: the key that an error is about, like `resource[0].at[1]`.
fn path_to(table: &DeTable<'_>, span: &Range<usize>) -> Vec<String> {
    let of_name = |name: &Spanned<_>| holds(&name.span(), span).then(Default::default);
    let found = table.iter().find_map(|(name, value)| Some((name, way_into(value, span).or_else(|| of_name(name))?)));
    let Some((name, (items, rest))) = found else { return Vec::new() };
    [format!("{}{items}", name.get_ref())].into_iter().chain(rest).collect()
}

/// The items of lists, and the keys behind them. `None`: it does not lead there.
fn way_into(value: &Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<(String, Vec<String>)> {
    let item = |(at, item)| way_into(item, span).map(|(items, rest)| (format!("[{at}]{items}"), rest));
    let inside = match value.get_ref() {
        DeValue::Table(table) => Some((String::new(), path_to(table, span))).filter(|(_, rest)| !rest.is_empty()),
        DeValue::Array(list) => list.iter().enumerate().find_map(item),
        _ => None,
    };
    inside.or_else(|| holds(&value.span(), span).then(Default::default))
}

fn holds(outer: &Range<usize>, span: &Range<usize>) -> bool {
    outer.start <= span.start && span.end <= outer.end
}

fn parse<'i>(change: &'i Override<'_>) -> Result<DeValue<'i>, Error> {
    let bare = || DeValue::String(Cow::Borrowed(&change.value));
    let parsed = DeValue::parse(change.value.trim()).map(Spanned::into_inner);
    match change.key.kind {
        Kind::Text => Ok(bare()),
        Kind::Any => Ok(parsed.unwrap_or_else(|_| bare())),
        Kind::Toml | Kind::Table(_) => parsed.map_err(|error| Error::Value {
            place: Place::Variable(change.name.clone()),
            key: change.key.dotted(),
            message: error.message().to_owned(),
        }),
    }
}

/// Gives a parsed variable, and all inside it, one span.
fn respan<'i>(mut value: DeValue<'i>, span: &Range<usize>) -> Spanned<DeValue<'i>> {
    let again = |inner: &mut Spanned<DeValue<'i>>| {
        let taken = std::mem::replace(inner.get_mut(), DeValue::Boolean(false));
        *inner = respan(taken, span);
    };
    if let DeValue::Array(array) = &mut value {
        array.iter_mut().for_each(again);
    } else if let DeValue::Table(table) = &mut value {
        table.iter_mut().for_each(|(_, inner)| again(inner));
    }
    Spanned::new(span.clone(), value)
}
