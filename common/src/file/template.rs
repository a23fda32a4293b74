//! `${inputs.NAME}` in a string: the only substitution there is, made once.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::Code;
use crate::file::reader::{Complaint, Fault, Item, Place, Reader, shown};
use crate::file::suggest::nearest;

const PREFIX: &str = "inputs.";

/// A string of the file with its gaps.
#[derive(Clone, Debug)]
pub(super) struct Template {
    pieces: Vec<Piece>,
    pub(super) place: Place,
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Input(String),
}

impl Template {
    /// The string that it always is, where it has no gap.
    pub(super) fn literal(&self) -> Option<String> {
        self.expand(&BTreeMap::new())
    }

    /// Fills every gap, or `None` where a value is missing. The values are not looked at.
    pub(super) fn expand(&self, values: &BTreeMap<String, String>) -> Option<String> {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => Some(text.as_str()),
                Piece::Input(name) => values.get(name).map(String::as_str),
            })
            .collect()
    }
}

impl Reader {
    /// A string in which declared inputs may stand.
    pub(super) fn template(&mut self, item: &Item<'_>, declared: &BTreeSet<String>) -> Option<Template> {
        let text = self.text(item)?;
        self.gaps(item, text, declared)
    }

    /// The same, and it may have lines.
    pub(super) fn lines_template(&mut self, item: &Item<'_>, declared: &BTreeSet<String>) -> Option<Template> {
        let text = self.lines(item)?;
        self.gaps(item, text, declared)
    }

    fn gaps(&mut self, item: &Item<'_>, text: &str, declared: &BTreeSet<String>) -> Option<Template> {
        let pieces = match pieces(text) {
            Ok(pieces) => pieces,
            Err(complaint) => {
                self.complain(item.place(), complaint);
                return None;
            }
        };
        let before = self.faults.len();
        for piece in &pieces {
            match piece {
                Piece::Input(name) if !declared.contains(name) => self.faults.push(Fault {
                    code: Code::InvalidInput,
                    place: item.place(),
                    message: format!("the input {} is not declared under [inputs]", shown(name)),
                    suggestion: nearest(name, declared.iter().map(String::as_str)),
                    about_given: false,
                }),
                Piece::Input(_) | Piece::Text(_) => {}
            }
        }
        (self.faults.len() == before).then(|| Template { pieces, place: item.place() })
    }

    /// A string in which nothing may be substituted.
    pub(super) fn plain_text<'t>(&mut self, item: &Item<'t>) -> Option<&'t str> {
        let text = self.text(item)?;
        if text.contains("${") {
            let message = "\"${\" stands for an input, and nothing is substituted here";
            self.fault(Code::InvalidValue, item.place(), message);
            return None;
        }
        Some(text)
    }

    /// The same, with a rule.
    pub(super) fn ruled(&mut self, item: &Item<'_>, rule: fn(&str) -> Result<(), Complaint>) -> Option<String> {
        let text = self.plain_text(item)?;
        match rule(text) {
            Ok(()) => Some(text.to_owned()),
            Err(complaint) => {
                self.complain(item.place(), complaint);
                None
            }
        }
    }
}

fn pieces(text: &str) -> Result<Vec<Piece>, Complaint> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let inside = &rest[start + 2..];
        let end = inside.find('}').ok_or_else(|| Complaint::invalid("\"${\" without its \"}\""))?;
        let name = inside[..end].strip_prefix(PREFIX).ok_or_else(|| unknown(&inside[..end]))?;
        pieces.push(Piece::Text(rest[..start].to_owned()));
        pieces.push(Piece::Input(name.to_owned()));
        rest = &inside[end + 1..];
    }
    pieces.push(Piece::Text(rest.to_owned()));
    Ok(pieces)
}

fn unknown(name: &str) -> Complaint {
    let found = shown(&format!("${{{name}}}"));
    Complaint::invalid(format!(
        "{found} is not known: \"${{inputs.NAME}}\" is the only substitution, and there is no shell"
    ))
}
