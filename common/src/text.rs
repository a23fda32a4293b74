//! Text from agents, targets and commands is data: it never reaches a terminal or a page raw.

use std::error::Error;

/// Replaces control characters, terminal escapes and direction overrides by visible escapes like `\u{1b}`.
/// Line feeds and tabs stay.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        match c {
            '\n' | '\t' => shown.push(c),
            c if c.is_control() || is_direction(c) => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
        shown
    })
}

/// [`printable`] on one line: line feeds and tabs are escaped too.
#[must_use]
pub fn one_line(text: &str) -> String {
    printable(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// An error and what caused it, each said once: many texts end with their cause's already.
#[must_use]
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
        source = error.source();
    }
    text
}

/// Cuts a text to at most `max` bytes at a character border and marks the cut.
#[must_use]
pub fn bounded(text: &str, max: usize) -> String {
    const MARK: &str = " [cut]";
    if text.len() <= max {
        return text.to_owned();
    }
    let mut end = max.saturating_sub(MARK.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MARK}", &text[..end])
}

fn is_direction(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_controls_and_direction_overrides() {
        assert_eq!(printable("a\u{1b}[31mb\r\u{202e}c\n"), "a\\u{1b}[31mb\\r\\u{202e}c\n");
        assert_eq!(one_line("a\nb"), "a\\nb");
        assert_eq!(bounded("abcdefghij", 8), "ab [cut]");
        assert_eq!(bounded("äääää", 9), "ä [cut]");
    }

    #[derive(Debug, thiserror::Error)]
    enum Layer {
        #[error("could not read it: {source}")]
        Says { source: std::io::Error },
        #[error("could not start")]
        Hides { source: Box<Layer> },
    }

    #[test]
    fn every_cause_is_said_once() {
        let says = || Layer::Says { source: std::io::Error::other("no such disk") };
        assert_eq!(chain(&says()), "could not read it: no such disk");
        assert_eq!(
            chain(&Layer::Hides { source: Box::new(says()) }),
            "could not start: could not read it: no such disk"
        );
    }
}
