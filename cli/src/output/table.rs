use comfy_table::{ContentArrangement, presets};
use holdfast_common::text::one_line;

use super::{Terminal, Tone};

/// Rows under a heading, without lines, as wide as they need to be or as the terminal is.
///
/// Text is made safe when it is put in: a cell is one line without control characters.
#[derive(Clone, Debug)]
pub struct Table {
    heading: Vec<&'static str>,
    rows: Vec<Vec<(String, Tone)>>,
}

/// Stand for "a tone begins" and "the tone ends" while columns are measured: characters without a width that no cell
/// has, one for the end and one per tone.
const END: char = '\u{e0100}';

fn begin(tone: Tone) -> char {
    char::from_u32(u32::from(END) + 1 + tone as u32).expect("seven variation selectors after the first")
}

impl Table {
    /// With these columns, and no rows.
    #[must_use]
    pub fn new(heading: &[&'static str]) -> Self {
        Self { heading: heading.to_vec(), rows: Vec::new() }
    }

    /// Adds a row without colours.
    pub fn row<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.row_in_tones(cells.into_iter().map(|cell| (cell, Tone::Plain)));
    }

    /// Adds a row whose cells have tones.
    pub fn row_in_tones<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = (T, Tone)>) {
        self.rows.push(cells.into_iter().map(|(text, tone)| (safe(text.as_ref()), tone)).collect());
    }

    /// Rows so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// With a line feed after each line, and no spaces before it. Wrapped only where the terminal's width is known.
    #[must_use]
    pub fn draw(&self, terminal: &Terminal) -> String {
        let mut table = comfy_table::Table::new();
        table.load_preset(presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Disabled);
        if let Some(width) = terminal.width {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        table.set_header(self.heading.iter().map(|name| marked(&name.to_uppercase(), Tone::Quiet)));
        for row in &self.rows {
            table.add_row(row.iter().map(|(text, tone)| marked(text, *tone)));
        }
        table.column_iter_mut().for_each(|column| {
            column.set_padding((0, 2));
        });
        table.lines().map(|line| painted(line.trim_end(), terminal) + "\n").collect()
    }
}

fn safe(text: &str) -> String {
    one_line(text).replace(|c: char| c == END || Tone::ALL.into_iter().any(|tone| c == begin(tone)), "")
}

fn marked(text: &str, tone: Tone) -> String {
    match tone {
        Tone::Plain => text.to_owned(),
        Tone::Quiet | Tone::Strong | Tone::Running | Tone::Good | Tone::Bad | Tone::Hazard => {
            format!("{}{text}{END}", begin(tone))
        }
    }
}

fn painted(line: &str, terminal: &Terminal) -> String {
    line.chars().fold(String::new(), |mut shown, c| {
        match Tone::ALL.into_iter().find(|tone| c == begin(*tone)) {
            Some(tone) if terminal.colour => shown.push_str(&tone.style().render().to_string()),
            None if c == END && terminal.colour => shown.push_str("\u{1b}[0m"),
            None if c != END => shown.push(c),
            Some(_) | None => {}
        }
        shown
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(&["deployment", "state", "note"]);
        table.row_in_tones([
            ("shop@prod#12", Tone::Plain),
            ("uncertain", Tone::Hazard),
            ("held since 14:20:07Z", Tone::Plain),
        ]);
        table.row_in_tones([("shop@prod#9", Tone::Plain), ("failed", Tone::Bad), ("ä ◆ 漢", Tone::Quiet)]);
        table
    }

    const DRAWN: &str = "\
DEPLOYMENT    STATE      NOTE
shop@prod#12  uncertain  held since 14:20:07Z
shop@prod#9   failed     ä ◆ 漢
";

    fn without_colours(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn columns_stand_under_each_other_with_and_without_colours() {
        assert_eq!(sample().draw(&Terminal::PLAIN), DRAWN);
        let coloured = sample().draw(&Terminal { colour: true, ..Terminal::PLAIN });
        assert!(coloured.contains("\u{1b}["));
        let plain: Vec<_> = without_colours(&coloured).lines().map(|line| line.trim_end().to_owned()).collect();
        assert_eq!(plain.join("\n") + "\n", DRAWN);
    }

    #[test]
    fn only_a_known_width_wraps() {
        let mut table = Table::new(&["name", "text"]);
        table.row(["a", &"word ".repeat(40)]);
        assert_eq!(table.draw(&Terminal::PLAIN).lines().count(), 2);
        let narrow = table.draw(&Terminal { width: Some(40), ..Terminal::PLAIN });
        assert!(narrow.lines().count() > 4, "{narrow}");
        assert!(narrow.lines().all(|line| line.chars().count() <= 40), "{narrow}");
    }

    #[test]
    fn text_from_outside_can_not_break_out_of_its_cell() {
        let mut table = Table::new(&["text"]);
        table.row([format!("\u{1b}[31mred\n\r{}{END}\u{202e}x", begin(Tone::Hazard))]);
        let drawn = table.draw(&Terminal { colour: true, ..Terminal::PLAIN });
        let row = drawn.lines().nth(1).expect("one row");
        assert_eq!(row, "\\u{1b}[31mred\\n\\r\\u{202e}x");
        assert_eq!(drawn.lines().count(), 2);
    }
}
