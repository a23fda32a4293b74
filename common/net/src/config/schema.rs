//! The keys of a configuration type, asked from its `Deserialize`.
//!
//! A struct tells a deserializer its field names before it reads any value. So the probe walks to one key at a time,
//! notes what the type asks for there, and stops with an error. What the type asks for also says how a variable's text
//! has to be read.

use std::cell::Cell;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};

/// What a type asks for at one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A struct with these fields.
    Table(&'static [&'static str]),
    /// Text, or something that is written as text.
    Text,
    /// A number, a truth value, a list, a map.
    Toml,
    /// Decides by what it finds.
    Any,
}

/// One key that is no table.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) path: Vec<&'static str>,
    pub(super) kind: Kind,
}

impl Key {
    pub(super) fn dotted(&self) -> String {
        self.path.join(".")
    }

    pub(super) fn variable(&self) -> String {
        variable(&self.path)
    }
}

/// The variable of a key, or the stem of a table's variables.
pub(super) fn variable(path: &[&str]) -> String {
    format!("{}{}", super::PREFIX, path.join("_").to_uppercase().replace('-', "_"))
}

/// All tables and keys of a configuration.
#[derive(Debug)]
pub(super) struct Schema {
    tables: Vec<Vec<&'static str>>,
    keys: Vec<Key>,
}

impl Schema {
    pub(super) fn of<T: DeserializeOwned>() -> Self {
        let mut schema = Self { tables: Vec::new(), keys: Vec::new() };
        schema.explore::<T>(&mut Vec::new());
        schema
    }

    fn explore<T: DeserializeOwned>(&mut self, path: &mut Vec<&'static str>) {
        // A configuration is at most a few tables deep; a type that contains itself would never end.
        const DEEPEST: usize = 8;
        match kind_at::<T>(path) {
            Kind::Table(fields) if path.len() < DEEPEST => {
                self.tables.push(path.clone());
                for field in fields {
                    path.push(field);
                    self.explore::<T>(path);
                    path.pop();
                }
            }
            kind @ (Kind::Table(_) | Kind::Text | Kind::Toml | Kind::Any) => {
                self.keys.push(Key { path: path.clone(), kind });
            }
        }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.keys.iter()
    }

    /// Tables below the root.
    pub(super) fn sections(&self) -> impl Iterator<Item = &[&'static str]> {
        self.tables.iter().map(Vec::as_slice).filter(|path| !path.is_empty())
    }

    pub(super) fn is_table(&self, path: &[&str]) -> bool {
        self.tables.iter().any(|table| table == path)
    }

    pub(super) fn is_key(&self, path: &[&str]) -> bool {
        self.keys.iter().any(|key| key.path == path)
    }

    /// The names that a table may hold.
    pub(super) fn names_in<'a>(&'a self, table: &'a [&str]) -> impl Iterator<Item = &'static str> + 'a {
        let keys = self.keys.iter().map(|key| key.path.as_slice());
        keys.chain(self.sections()).filter_map(move |path| {
            let (last, parent) = path.split_last()?;
            (parent == table).then_some(*last)
        })
    }
}

fn kind_at<T: DeserializeOwned>(path: &[&'static str]) -> Kind {
    let found = Cell::new(Kind::Any);
    // The probe always ends in `Stop`, or in a type that needs no value at all: either way `found` says what was asked.
    let _ = T::deserialize(Probe { path, found: &found });
    found.get()
}

struct Probe<'a> {
    path: &'a [&'static str],
    found: &'a Cell<Kind>,
}

impl Probe<'_> {
    fn stop<V>(&self, kind: Kind) -> Result<V, Stop> {
        self.found.set(kind);
        Err(Stop)
    }
}

macro_rules! asks_for {
    ($kind:expr; $($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
            self.stop($kind)
        })*
    };
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Stop;

    asks_for! { Kind::Any; deserialize_any deserialize_ignored_any deserialize_identifier }
    asks_for! { Kind::Text; deserialize_str deserialize_string deserialize_char }
    asks_for! { Kind::Toml;
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
        deserialize_bytes deserialize_byte_buf deserialize_unit deserialize_seq deserialize_map
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        // TOML's own types (positions, dates) pass as structs with private names.
        if name.starts_with("$__") {
            return self.stop(Kind::Any);
        }
        match self.path.split_first() {
            None => self.stop(Kind::Table(fields)),
            Some((key, path)) => visitor.visit_map(One { key: Some(key), value: Probe { path, found: self.found } }),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Stop> {
        self.stop(Kind::Text)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, _: V) -> Result<V::Value, Stop> {
        self.stop(Kind::Toml)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Stop> {
        self.stop(Kind::Toml)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(self, _: &'static str, _: usize, _: V) -> Result<V::Value, Stop> {
        self.stop(Kind::Toml)
    }
}

/// A map with the one key that leads on.
struct One<'a> {
    key: Option<&'static str>,
    value: Probe<'a>,
}

impl<'de> MapAccess<'de> for One<'_> {
    type Error = Stop;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Stop> {
        let Some(key) = self.key.take() else { return Ok(None) };
        let key: StrDeserializer<'_, Stop> = key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Stop> {
        seed.deserialize(Probe { path: self.value.path, found: self.value.found })
    }
}

/// The end of a probe.
#[derive(Debug)]
struct Stop;

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("asked enough")
    }
}

impl std::error::Error for Stop {}

impl de::Error for Stop {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}
