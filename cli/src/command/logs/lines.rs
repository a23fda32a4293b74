use holdfast_common::text::one_line;

/// A line that is longer is shown in parts.
const LONGEST: usize = 64 * 1024;

/// Puts bytes that come in pieces together to lines that are safe to show.
#[derive(Debug, Default)]
pub(super) struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// The lines that are complete now, each with its line feed.
    pub(super) fn push(&mut self, data: &[u8], colour: bool) -> String {
        self.rest.extend_from_slice(data);
        let end = match self.rest.iter().rposition(|byte| *byte == b'\n') {
            Some(feed) => feed + 1,
            None if self.rest.len() > LONGEST => self.rest.len(),
            None => return String::new(),
        };
        let rest = self.rest.split_off(end);
        let whole = std::mem::replace(&mut self.rest, rest);
        shown(&whole, colour)
    }

    /// What is left, as a line.
    pub(super) fn finish(&mut self, colour: bool) -> String {
        shown(&std::mem::take(&mut self.rest), colour)
    }
}

fn shown(bytes: &[u8], colour: bool) -> String {
    String::from_utf8_lossy(bytes).lines().map(|text| line(text, colour) + "\n").collect()
}

/// One line: its colours are kept where there are any, or taken away; tabs stay; everything else that is not text is
/// made visible.
fn line(text: &str, colour: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut coloured = false;
    let mut rest = text;
    while let Some(start) = rest.find('\u{1b}') {
        shown.push_str(&visible(&rest[..start]));
        let (escape, after) = match sgr(&rest[start..]) {
            Some(length) => rest[start..].split_at(length),
            None => rest[start..].split_at(1),
        };
        if escape.len() == 1 {
            shown.push_str(&visible(escape));
        } else if colour {
            shown.push_str(escape);
            coloured = true;
        }
        rest = after;
    }
    shown.push_str(&visible(rest));
    if coloured {
        shown.push_str("\u{1b}[0m");
    }
    shown
}

fn visible(text: &str) -> String {
    text.split('\t').map(one_line).collect::<Vec<_>>().join("\t")
}

/// Length of a colour sequence at the start of a text: ESC [ digits ; : m.
fn sgr(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("\u{1b}[")?;
    let end = inner.find(|c: char| !c.is_ascii_digit() && c != ';' && c != ':')?;
    inner[end..].starts_with('m').then_some(2 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_and_colours_survive_wherever_pieces_end() {
        let text = "grün \u{1b}[1;32mok\u{1b}[0m\r\nsecond\tline\nno end".as_bytes();
        let expected = "grün \u{1b}[1;32mok\u{1b}[0m\u{1b}[0m\nsecond\tline\nno end\n";
        for size in 1..text.len() {
            let mut lines = Lines::default();
            let mut shown: String = text.chunks(size).map(|piece| lines.push(piece, true)).collect();
            shown.push_str(&lines.finish(true));
            assert_eq!(shown, expected, "pieces of {size}");
        }
    }

    #[test]
    fn nothing_but_colour_reaches_a_terminal_and_off_it_not_even_that() {
        let evil = "a\u{1b}[31mred\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\rb\u{202e}c\u{1b}[?1049h\u{1b}[31";
        let coloured = line(evil, true);
        assert_eq!(coloured.matches('\u{1b}').count(), 2, "{coloured:?}");
        assert!(coloured.starts_with("a\u{1b}[31mred\\u{1b}[2J") && coloured.ends_with("\u{1b}[0m"), "{coloured:?}");
        let plain = line(evil, false);
        assert!(!plain.chars().any(char::is_control), "{plain:?}");
        assert!(plain.starts_with("ared\\u{1b}[2J"), "{plain:?}");
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory() {
        let mut lines = Lines::default();
        let shown = lines.push(&vec![b'x'; LONGEST + 1], true);
        assert_eq!(shown.len(), LONGEST + 2);
        assert_eq!(lines.finish(true), "");
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_replacements() {
        assert_eq!(Lines::default().push(b"a\xff\n", false), "a\u{fffd}\n");
    }
}
