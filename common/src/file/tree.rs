//! One tree for both notations, with the place of every key and value.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use crate::code::Code;
use crate::file::json;
use crate::file::reader::Fault;
use crate::file::{Errors, MAX_DEPTH, MAX_FILE, MAX_VALUES};

/// A value and the byte offset at which it begins.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) at: usize,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Boolean(bool),
    /// A fraction, or an integer that 64 bits can't hold. No key takes one.
    OtherNumber,
    /// TOML only: a date, a time, or both, as text.
    Date(String),
    /// JSON only.
    Null,
    List(Vec<Node>),
    Table(Table),
}

pub(super) type Table = BTreeMap<String, Entry>;

/// A key's place and its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) at: usize,
    pub(super) node: Node,
}

impl Value {
    /// What it is, for people.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Boolean(_) => "true or false",
            Value::OtherNumber => "a number that is not a 64-bit integer",
            Value::Date(_) => "a date",
            Value::Null => "null",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

/// Counts what is read, so that no file can make the reader work without bound.
pub(super) struct Budget {
    values: usize,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { values: MAX_VALUES }
    }

    /// Takes one value at `depth`.
    pub(super) fn take(&mut self, at: usize, depth: usize) -> Result<(), Fault> {
        if depth > MAX_DEPTH {
            return Err(Fault::at(Code::TooLarge, at, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.values = self
            .values
            .checked_sub(1)
            .ok_or_else(|| Fault::at(Code::TooLarge, at, format!("more than {MAX_VALUES} values")))?;
        Ok(())
    }
}

/// Reads TOML, or JSON where the text begins with `{`. The root is always a table.
pub(super) fn read(text: &str) -> Result<Node, Errors> {
    if text.len() > MAX_FILE {
        return Err(Errors::too_large(text.len()));
    }
    let node = if text.trim_start().starts_with('{') { json::read(text) } else { read_toml(text) };
    node.map_err(|fault| Errors::one(text, fault))
}

fn read_toml(text: &str) -> Result<Node, Fault> {
    let root = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Fault::at(Code::FileSyntax, at, format!("not TOML: {}", error.message()))
    })?;
    let table = toml_table(root.get_ref(), 1, &mut Budget::new())?;
    Ok(Node { at: 0, value: Value::Table(table) })
}

fn toml_table(table: &DeTable<'_>, depth: usize, budget: &mut Budget) -> Result<Table, Fault> {
    table
        .iter()
        .map(|(key, value)| {
            let node = toml_node(value, depth, budget)?;
            Ok((key.get_ref().to_string(), Entry { at: key.span().start, node }))
        })
        .collect()
}

fn toml_node(value: &Spanned<DeValue<'_>>, depth: usize, budget: &mut Budget) -> Result<Node, Fault> {
    let at = value.span().start;
    budget.take(at, depth)?;
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => toml_integer(integer),
        DeValue::Float(_) => Value::OtherNumber,
        DeValue::Boolean(truth) => Value::Boolean(*truth),
        DeValue::Datetime(date) => Value::Date(date.to_string()),
        DeValue::Array(list) => {
            Value::List(list.iter().map(|item| toml_node(item, depth + 1, budget)).collect::<Result<_, _>>()?)
        }
        DeValue::Table(table) => Value::Table(toml_table(table, depth + 1, budget)?),
    };
    Ok(Node { at, value })
}

fn toml_integer(integer: &DeInteger<'_>) -> Value {
    i64::from_str_radix(integer.as_str(), integer.radix()).map_or(Value::OtherNumber, Value::Integer)
}
