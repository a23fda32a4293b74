//! JSON with the place of every key and value.
//!
//! `serde_json` judges the syntax first; this scanner then finds its way through text that is known to be JSON, and
//! hands every string and number back to `serde_json`.

use std::collections::btree_map::Entry as Slot;

use serde::de::IgnoredAny;

use crate::code::Code;
use crate::file::reader::Fault;
use crate::file::tree::{Budget, Entry, Node, Table, Value};
use crate::text::{bounded, one_line};

pub(super) fn read(text: &str) -> Result<Node, Fault> {
    let judged: Result<IgnoredAny, serde_json::Error> = serde_json::from_str(text);
    judged.map_err(|error| syntax(offset(text, error.line(), error.column()), &without_place(&error)))?;
    Scanner { text, at: 0, budget: Budget::new() }.node(0)
}

fn syntax(at: usize, message: &str) -> Fault {
    Fault::at(Code::FileSyntax, at, format!("not JSON: {message}"))
}

/// The byte that `serde_json` names: its lines count from 1, its columns count the bytes read of the line. Column 0 is the
/// line feed before it.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    (start + column).saturating_sub(1).min(text.len())
}

fn without_place(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.rfind(" at line ").map_or(message.clone(), |end| message[..end].to_owned())
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    budget: Budget,
}

impl Scanner<'_> {
    fn node(&mut self, depth: usize) -> Result<Node, Fault> {
        self.skip_space();
        let at = self.at;
        self.budget.take(at, depth)?;
        let value = match self.peek() {
            Some(b'{') => Value::Table(self.table(depth)?),
            Some(b'[') => Value::List(self.list(depth)?),
            Some(b'"') => Value::Text(self.string()?),
            _ => self.bare()?,
        };
        Ok(Node { at, value })
    }

    fn table(&mut self, depth: usize) -> Result<Table, Fault> {
        let mut table = Table::new();
        self.at += 1;
        while !self.closes(b'}')? {
            let at = self.at;
            let key = self.string()?;
            self.skip_space();
            self.expect(b':')?;
            let node = self.node(depth + 1)?;
            match table.entry(key) {
                Slot::Vacant(slot) => slot.insert(Entry { at, node }),
                Slot::Occupied(slot) => {
                    let key = one_line(&bounded(slot.key(), 80));
                    return Err(Fault::at(Code::FileSyntax, at, format!("the key \"{key}\" stands here twice")));
                }
            };
        }
        Ok(table)
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Fault> {
        let mut list = Vec::new();
        self.at += 1;
        while !self.closes(b']')? {
            list.push(self.node(depth + 1)?);
        }
        Ok(list)
    }

    /// Takes the closing bracket, or the comma before the next member.
    fn closes(&mut self, bracket: u8) -> Result<bool, Fault> {
        self.skip_space();
        match self.peek() {
            Some(byte) if byte == bracket => {
                self.at += 1;
                Ok(true)
            }
            Some(b',') => {
                self.at += 1;
                self.skip_space();
                Ok(false)
            }
            Some(_) => Ok(false),
            None => Err(syntax(self.at, "unexpected end")),
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        let start = self.at;
        self.expect(b'"')?;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => return Err(syntax(start, "a string has no end")),
            }
        }
        self.at += 1;
        serde_json::from_str(&self.text[start..self.at]).map_err(|error| syntax(start, &without_place(&error)))
    }

    fn bare(&mut self) -> Result<Value, Fault> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| c.is_ascii_whitespace() || ",]}".contains(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        self.at += end;
        match serde_json::from_str(word).map_err(|error| syntax(self.at - end, &without_place(&error)))? {
            serde_json::Value::Null => Ok(Value::Null),
            serde_json::Value::Bool(truth) => Ok(Value::Boolean(truth)),
            serde_json::Value::Number(number) => Ok(number.as_i64().map_or(Value::OtherNumber, Value::Integer)),
            serde_json::Value::String(_) | serde_json::Value::Array(_) | serde_json::Value::Object(_) => {
                Err(syntax(self.at - end, "expected a value"))
            }
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.peek() != Some(byte) {
            return Err(syntax(self.at, &format!("expected `{}`", char::from(byte))));
        }
        self.at += 1;
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }
}
