use std::io::{self, Write};

use anstream::{AutoStream, ColorChoice};
use serde_json::Value;

use holdfast_common::text::one_line;

use super::{Format, Options, Table, Terminal};

/// Several things of one kind.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The API's whole answer.
    pub whole: Value,
    /// Its items, each as in the answer.
    pub items: Vec<Value>,
    /// A name for each item.
    pub names: Vec<String>,
    /// For people.
    pub table: Table,
    /// What to say on stderr when there is nothing to show, like `no deployments`.
    pub nothing: &'static str,
}

/// One thing.
#[derive(Clone, Debug)]
pub struct Record {
    /// The API's answer.
    pub whole: Value,
    /// Its name.
    pub name: String,
    /// For people, with its line feeds. Drawn for [`Printer::terminal`].
    pub text: String,
}

/// Lines of a block at most, so that it fits on any screen.
const BLOCK: usize = 20;

/// Stdout and stderr in the chosen format. Errors are those of writing; see [`super::exit::is_closed_pipe`].
#[derive(Debug)]
pub struct Printer<O: Write = AutoStream<io::Stdout>, E: Write = AutoStream<io::Stderr>> {
    format: Format,
    terminal: Terminal,
    talk_terminal: Terminal,
    /// Columns of the line on stderr that the next output replaces; 0 where there is none.
    passing: usize,
    /// Lines on stderr below the cursor that the next output replaces.
    block: usize,
    out: O,
    err: E,
}

/// Over any two streams.
pub type BoxedPrinter = Printer<Box<dyn Write + Send>, Box<dyn Write + Send>>;

impl Printer {
    /// Of this process.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        let (terminal, talk_terminal) = (Terminal::of(&out, options.ascii), Terminal::of(&err, options.ascii));
        // Stdout is left as it is, because `raw` bytes must arrive as they are: what is drawn for it has colours only
        // where the terminal has.
        let talk = if talk_terminal.colour { ColorChoice::Always } else { ColorChoice::Never };
        Self {
            format: options.format(),
            terminal,
            talk_terminal,
            passing: 0,
            block: 0,
            out: AutoStream::new(out, ColorChoice::AlwaysAnsi),
            err: AutoStream::new(err, talk),
        }
    }
}

impl<O: Write, E: Write> Printer<O, E> {
    /// Over streams of the caller's.
    #[must_use]
    pub fn over(format: Format, terminal: Terminal, talk_terminal: Terminal, out: O, err: E) -> Self {
        Self { format, terminal, talk_terminal, passing: 0, block: 0, out, err }
    }

    /// The same, whatever its streams are.
    #[must_use]
    pub fn boxed(self) -> BoxedPrinter
    where
        O: Send + 'static,
        E: Send + 'static,
    {
        let Self { format, terminal, talk_terminal, passing, block, out, err } = self;
        Printer { format, terminal, talk_terminal, passing, block, out: Box::new(out), err: Box::new(err) }
    }

    /// What stdout can show.
    #[must_use]
    pub fn terminal(&self) -> &Terminal {
        &self.terminal
    }

    /// What stderr can show.
    #[must_use]
    pub fn talk_terminal(&self) -> &Terminal {
        &self.talk_terminal
    }

    /// The chosen format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Several things of one kind.
    pub fn listing(&mut self, listing: &Listing) -> io::Result<()> {
        match self.format {
            Format::Table if listing.table.is_empty() => self.talk(listing.nothing),
            Format::Table => self.write(&listing.table.draw(&self.terminal)),
            Format::Json => self.document(&listing.whole),
            Format::Jsonl => listing.items.iter().try_for_each(|item| self.line(&json_line(item))),
            Format::Name => listing.names.iter().try_for_each(|name| self.line(name)),
        }
    }

    /// One thing.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        match self.format {
            Format::Table => self.write(&record.text),
            Format::Json => self.document(&record.whole),
            Format::Jsonl => self.line(&json_line(&record.whole)),
            Format::Name => self.line(&record.name),
        }
    }

    /// One of a stream without a known end: JSON is one object per line in both JSON formats, and each is out at once.
    pub fn streamed(&mut self, record: &Record) -> io::Result<()> {
        match self.format {
            Format::Table => self.write(&record.text)?,
            Format::Json | Format::Jsonl => self.line(&json_line(&record.whole))?,
            Format::Name => self.line(&record.name)?,
        }
        self.out.flush()
    }

    /// A line of talk, on stderr.
    pub fn talk(&mut self, line: &str) -> io::Result<()> {
        self.clear()?;
        writeln!(self.err, "{line}")
    }

    /// A question on stderr, without a line feed.
    pub fn ask(&mut self, question: &str) -> io::Result<()> {
        self.clear()?;
        write!(self.err, "{question}")?;
        self.err.flush()
    }

    /// A line on stderr that the next output replaces. Only where stderr is interactive; plain text, cut to the width.
    pub fn passing(&mut self, line: &str) -> io::Result<()> {
        if !self.talk_terminal.interactive {
            return Ok(());
        }
        let width = usize::from(self.talk_terminal.width.unwrap_or(80)).saturating_sub(1);
        let line: String = line.chars().take(width).collect();
        let length = line.chars().count();
        write!(self.err, "\r{line}{:blank$}\r", "", blank = self.passing.saturating_sub(length))?;
        self.passing = length;
        self.err.flush()
    }

    /// Whether [`Self::block`] draws anything: where a person sits, on a terminal that moves its cursor.
    #[must_use]
    pub fn redraws(&self) -> bool {
        // A stream without colours is one from which every escape is taken.
        self.talk_terminal.interactive && self.talk_terminal.colour
    }

    /// Lines on stderr that the next output replaces, cut to the width and to the first [`BLOCK`]. Only where
    /// [`Self::redraws`] says so.
    pub fn block(&mut self, lines: &[String]) -> io::Result<()> {
        if !self.redraws() {
            return Ok(());
        }
        self.clear()?;
        let width = usize::from(self.talk_terminal.width.unwrap_or(80)).saturating_sub(1);
        let more = lines.len().saturating_sub(BLOCK);
        let rest = (more > 0).then(|| format!("and {more} more"));
        let shown: Vec<&String> = lines.iter().take(BLOCK).chain(&rest).collect();
        for line in &shown {
            let line: String = line.chars().take(width).collect();
            writeln!(self.err, "{line}")?;
        }
        write!(self.err, "\r\u{1b}[{}A", shown.len())?;
        self.block = shown.len();
        self.err.flush()
    }

    /// Takes the passing line or block away.
    pub fn clear(&mut self) -> io::Result<()> {
        if self.block > 0 {
            self.block = 0;
            write!(self.err, "\r\u{1b}[J")?;
            self.err.flush()?;
        }
        if self.passing == 0 {
            return Ok(());
        }
        write!(self.err, "\r{:blank$}\r", "", blank = self.passing)?;
        self.passing = 0;
        self.err.flush()
    }

    /// Bytes as they are, on stdout.
    pub fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.clear()?;
        self.out.write_all(bytes)?;
        self.out.flush()
    }

    fn document(&mut self, value: &Value) -> io::Result<()> {
        self.line(&ascii_controls(&format!("{value:#}")))
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.clear()?;
        writeln!(self.out, "{line}")
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.clear()?;
        self.out.write_all(text.as_bytes())
    }
}

/// A value on one line.
#[must_use]
pub fn json_line(value: &Value) -> String {
    ascii_controls(&value.to_string())
}

/// JSON escapes the controls of ASCII only. Others move terminals too; in JSON they can only stand in strings, where an
/// escape means the same.
fn ascii_controls(json: &str) -> String {
    json.chars().fold(String::with_capacity(json.len()), |mut shown, c| {
        match c {
            '\n' => shown.push(c),
            c if one_line(c.encode_utf8(&mut [0; 4])).starts_with("\\u{") => {
                shown.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => shown.push(c),
        }
        shown
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn printed(format: Format, print: impl FnOnce(&mut Printer<&mut Vec<u8>, &mut Vec<u8>>)) -> (String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let (terminal, talk_terminal) = (Terminal::PLAIN, Terminal::PLAIN);
        print(&mut Printer::over(format, terminal, talk_terminal, &mut out, &mut err));
        (String::from_utf8(out).expect("text"), String::from_utf8(err).expect("text"))
    }

    fn listing(names: &[&str]) -> Listing {
        let items: Vec<_> = names.iter().map(|name| json!({ "name": name })).collect();
        let mut table = Table::new(&["name"]);
        names.iter().for_each(|name| table.row([name]));
        let names = names.iter().map(ToString::to_string).collect();
        Listing { whole: json!({ "targets": items }), items, names, table, nothing: "no targets" }
    }

    #[test]
    fn a_listing_in_each_format() {
        for (format, expected) in [
            (Format::Table, "NAME\na\nb\n"),
            (
                Format::Json,
                "{\n  \"targets\": [\n    {\n      \"name\": \"a\"\n    },\n    {\n      \"name\": \"b\"\n    }\n  ]\n}\n",
            ),
            (Format::Jsonl, "{\"name\":\"a\"}\n{\"name\":\"b\"}\n"),
            (Format::Name, "a\nb\n"),
        ] {
            let (out, err) = printed(format, |printer| printer.listing(&listing(&["a", "b"])).expect("a buffer"));
            assert_eq!((out.as_str(), err.as_str()), (expected, ""), "{format:?}");
        }
    }

    #[test]
    fn nothing_to_show_is_talk_for_people_and_empty_data_for_programs() {
        for (format, out, err) in [
            (Format::Table, "", "no targets\n"),
            (Format::Json, "{\n  \"targets\": []\n}\n", ""),
            (Format::Jsonl, "", ""),
            (Format::Name, "", ""),
        ] {
            let shown = printed(format, |printer| printer.listing(&listing(&[])).expect("a buffer"));
            assert_eq!(shown, (out.to_owned(), err.to_owned()), "{format:?}");
        }
    }

    #[test]
    fn a_record_and_a_stream_of_them() {
        let record = Record { whole: json!({ "a": 1 }), name: "x".to_owned(), text: "one\ntwo\n".to_owned() };
        for (format, once, streamed) in [
            (Format::Table, "one\ntwo\n", "one\ntwo\n"),
            (Format::Json, "{\n  \"a\": 1\n}\n", "{\"a\":1}\n"),
            (Format::Jsonl, "{\"a\":1}\n", "{\"a\":1}\n"),
            (Format::Name, "x\n", "x\n"),
        ] {
            assert_eq!(printed(format, |printer| printer.record(&record).expect("a buffer")).0, once);
            assert_eq!(printed(format, |printer| printer.streamed(&record).expect("a buffer")).0, streamed);
        }
    }

    #[test]
    fn no_control_character_of_any_kind_is_in_json() {
        let text = "a\u{1b}[31m\u{9b}31m\u{7f}\u{202e}b\u{85}ä";
        let record = Record { whole: json!({ "a": text }), name: String::new(), text: String::new() };
        for format in [Format::Json, Format::Jsonl] {
            let (out, _) = printed(format, |printer| printer.record(&record).expect("a buffer"));
            assert!(!out.trim_end().chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{out:?}");
            let read: serde_json::Value = serde_json::from_str(&out).expect("still JSON");
            assert_eq!(read["a"], text);
        }
    }

    #[test]
    fn a_block_is_replaced_as_a_whole_and_only_on_a_terminal_that_can() {
        let person = Terminal { interactive: true, colour: true, width: Some(10), ..Terminal::PLAIN };
        let lines = ["shop@prod#12 active".to_owned(), "b".to_owned()];
        let drawn = |terminal: Terminal, lines: &[String]| {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            let mut printer = Printer::over(Format::Table, Terminal::PLAIN, terminal, &mut out, &mut err);
            printer.block(lines).expect("a buffer");
            printer.talk("done").expect("a buffer");
            String::from_utf8(err).expect("text")
        };
        assert_eq!(drawn(person, &lines), "shop@prod\nb\n\r\u{1b}[2A\r\u{1b}[Jdone\n");
        for other in [Terminal::PLAIN, Terminal { colour: false, ..person }] {
            assert_eq!(drawn(other, &lines), "done\n");
        }
        let many: Vec<String> = (0..30).map(|number| number.to_string()).collect();
        assert!(drawn(person, &many).contains("19\nand 10 mo\n\r\u{1b}[21A"), "{}", drawn(person, &many));
    }

    #[test]
    fn a_passing_line_is_replaced_and_only_a_person_sees_it() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let person = Terminal { interactive: true, width: Some(20), ..Terminal::PLAIN };
        let mut printer = Printer::over(Format::Table, Terminal::PLAIN, person, &mut out, &mut err);
        printer.passing("silent 00:14, and much more").expect("a buffer");
        printer.talk("done").expect("a buffer");
        printer.talk("more").expect("a buffer");
        let blank = " ".repeat(19);
        assert_eq!(String::from_utf8(err).expect("text"), format!("\rsilent 00:14, and m\r\r{blank}\rdone\nmore\n"));
        assert_eq!(printed(Format::Table, |printer| printer.passing("x").expect("a buffer")).1, "");
    }
}
