//! `[inputs]`: what a deployment file asks for at submission.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::code::Code;
use crate::file::MAX_INPUT;
use crate::file::reader::{Complaint, Fault, Item, Place, Reader, shown, without_controls};
use crate::file::suggest::nearest;
use crate::file::tree::Value;

const MAX_INPUTS: usize = 100;
const MAX_NAME: usize = 64;

/// The type of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InputKind {
    /// Any text without control characters.
    String,
    /// A decimal integer of 64 bits.
    Integer,
    /// `true` or `false`.
    Boolean,
}

impl fmt::Display for InputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InputKind::String => "string",
            InputKind::Integer => "integer",
            InputKind::Boolean => "boolean",
        })
    }
}

impl InputKind {
    /// The value as it is substituted.
    fn canonical(self, text: &str) -> Result<String, Complaint> {
        if text.len() > MAX_INPUT {
            return Err(Complaint {
                code: Code::TooLarge,
                message: format!("has {} bytes, at most {MAX_INPUT} are allowed", text.len()),
            });
        }
        without_controls(text)?;
        let wrong = || Complaint::invalid(format!("{} is not of type {self}", shown(text)));
        match self {
            InputKind::String => Ok(text.to_owned()),
            InputKind::Integer => text.parse::<i64>().map(|number| number.to_string()).map_err(|_| wrong()),
            InputKind::Boolean => text.parse::<bool>().map(|truth| truth.to_string()).map_err(|_| wrong()),
        }
    }
}

/// One declared input.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its type.
    pub kind: InputKind,
    /// The value where none is given. Without one the input is required.
    pub default: Option<String>,
    /// The only values allowed, where there are any.
    pub one_of: Vec<String>,
    place: Place,
}

impl Input {
    fn accept(&self, text: &str) -> Result<String, Complaint> {
        let value = self.kind.canonical(text)?;
        if self.one_of.is_empty() || self.one_of.contains(&value) {
            return Ok(value);
        }
        let allowed: Vec<String> = self.one_of.iter().map(|word| shown(word)).collect();
        Err(Complaint::invalid(format!("{} is not one of {}", shown(&value), allowed.join(", "))))
    }
}

/// All of them. `names` also has those whose declaration is wrong, so that their uses are not blamed too.
#[derive(Clone, Debug, Default)]
pub(super) struct Inputs {
    pub(super) declared: BTreeMap<String, Input>,
    pub(super) names: BTreeSet<String>,
    place: Option<Place>,
}

impl Inputs {
    pub(super) fn read(reader: &mut Reader, item: Option<Item<'_>>) -> Self {
        let mut inputs = Self::default();
        let Some(fields) = item.and_then(|item| reader.open_table(&item)) else { return inputs };
        inputs.place = Some(fields.place.clone());
        if fields.keys().count() > MAX_INPUTS {
            reader.fault(Code::InvalidValue, fields.place.clone(), format!("at most {MAX_INPUTS} inputs are allowed"));
            return inputs;
        }
        for name in fields.keys() {
            let item = fields.get(name).expect("the key is there");
            inputs.names.insert(name.to_owned());
            if let Some(input) = read_one(reader, name, &item) {
                inputs.declared.insert(name.to_owned(), input);
            }
        }
        inputs
    }

    /// The values that are known without anybody giving one.
    pub(super) fn defaults(&self) -> BTreeMap<String, String> {
        let default = |(name, input): (&String, &Input)| input.default.clone().map(|value| (name.clone(), value));
        self.declared.iter().filter_map(default).collect()
    }

    /// Types what was given and fills in the defaults. What is wrong stands at the declaration.
    pub(super) fn values(&self, reader: &mut Reader, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut values = self.defaults();
        for (name, text) in given {
            let Some(input) = self.declared.get(name) else {
                self.undeclared(reader, name);
                continue;
            };
            match input.accept(text) {
                Ok(value) => {
                    values.insert(name.clone(), value);
                }
                Err(complaint) => {
                    let code = if complaint.code == Code::TooLarge { Code::TooLarge } else { Code::InvalidInput };
                    let message = format!("the value given for \"{name}\": {}", complaint.message);
                    given_fault(reader, code, input.place.clone(), message);
                }
            }
        }
        for (name, input) in
            self.declared.iter().filter(|(name, _)| !values.contains_key(*name) && !given.contains_key(*name))
        {
            let message = format!("the input \"{name}\" is required: give it with --set {name}=...");
            given_fault(reader, Code::InvalidInput, input.place.clone(), message);
        }
        values
    }

    fn undeclared(&self, reader: &mut Reader, name: &str) {
        let place = self.place.clone().unwrap_or(Place { at: 0, path: "inputs".to_owned() });
        reader.faults.push(Fault {
            code: Code::InvalidInput,
            place,
            message: format!("the file declares no input {}", shown(name)),
            suggestion: nearest(name, self.declared.keys().map(String::as_str)),
            about_given: true,
        });
    }
}

/// The file is sound, what was given for it is not.
fn given_fault(reader: &mut Reader, code: Code, place: Place, message: String) {
    reader.faults.push(Fault { code, place, message, suggestion: None, about_given: true });
}

fn read_one(reader: &mut Reader, name: &str, item: &Item<'_>) -> Option<Input> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.len() > MAX_NAME || !name.starts_with(|c: char| c.is_ascii_alphabetic()) || !name.chars().all(plain) {
        let message = format!(
            "{} is no name for an input: up to {MAX_NAME} letters, digits, \"_\" and \"-\", a letter first",
            shown(name)
        );
        reader.fault(Code::InvalidValue, Place { at: item.key.at, path: "inputs".to_owned() }, message);
        return None;
    }
    let fields = reader.table(item, &["type", "default", "required", "one_of"])?;
    let kinds = [("string", InputKind::String), ("integer", InputKind::Integer), ("boolean", InputKind::Boolean)];
    let kind = reader.required(&fields, "type").and_then(|item| reader.choice(&item, &kinds));
    let required = match fields.get("required") {
        Some(item) => Some((reader.boolean(&item)?, item)),
        None => None,
    };
    let mut input = Input { kind: kind?, default: None, one_of: Vec::new(), place: item.key.clone() };
    if let Some(list) = fields.get("one_of") {
        let items = reader.list(&list, 1..=MAX_INPUTS)?;
        input.one_of = items.iter().map(|item| value(reader, &input, item)).collect::<Option<_>>()?;
    }
    if let Some(default) = fields.get("default") {
        input.default = Some(value(reader, &input, &default)?);
    }
    match (required, &input.default) {
        (Some((true, item)), Some(_)) => {
            reader.fault(
                Code::InvalidValue,
                item.key,
                "an input with a default is never required: leave out one of both",
            );
            None
        }
        (Some((false, item)), None) => {
            reader.fault(Code::InvalidValue, item.key, "an input that is not required needs a default");
            None
        }
        (Some(_) | None, _) => Some(input),
    }
}

/// A value in the file, of the input's own type.
fn value(reader: &mut Reader, input: &Input, item: &Item<'_>) -> Option<String> {
    let text = match (&item.node.value, input.kind) {
        (Value::Text(_), InputKind::String) => reader.plain_text(item)?.to_owned(),
        (Value::Integer(number), InputKind::Integer) => number.to_string(),
        (Value::Boolean(truth), InputKind::Boolean) => truth.to_string(),
        (_, kind) => return wrong_type(reader, item, kind),
    };
    match input.accept(&text) {
        Ok(value) => Some(value),
        Err(complaint) => {
            reader.complain(item.place(), complaint);
            None
        }
    }
}

fn wrong_type(reader: &mut Reader, item: &Item<'_>, kind: InputKind) -> Option<String> {
    let message = format!("the input is of type {kind}, this is {}", item.node.value.kind());
    reader.fault(Code::InvalidValue, item.place(), message);
    None
}
