use std::io::{self, Write};

use anstream::{AutoStream, ColorChoice};
use serde_json::Value;

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

/// Stdout and stderr in the chosen format. Errors are those of writing; see [`super::exit::is_closed_pipe`].
#[derive(Debug)]
pub struct Printer<O: Write = AutoStream<io::Stdout>, E: Write = AutoStream<io::Stderr>> {
    format: Format,
    terminal: Terminal,
    talk_terminal: Terminal,
    out: O,
    err: E,
}

impl Printer {
    /// Of this process.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        let (terminal, talk_terminal) = (Terminal::of(&out, options.ascii), Terminal::of(&err, options.ascii));
        let stream = |terminal: &Terminal| if terminal.colour { ColorChoice::Always } else { ColorChoice::Never };
        Self {
            format: options.format(),
            terminal,
            talk_terminal,
            out: AutoStream::new(out, stream(&terminal)),
            err: AutoStream::new(err, stream(&talk_terminal)),
        }
    }
}

impl<O: Write, E: Write> Printer<O, E> {
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
            Format::Jsonl => listing.items.iter().try_for_each(|item| self.line(&item.to_string())),
            Format::Name => listing.names.iter().try_for_each(|name| self.line(name)),
        }
    }

    /// One thing.
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        match self.format {
            Format::Table => self.write(&record.text),
            Format::Json => self.document(&record.whole),
            Format::Jsonl => self.line(&record.whole.to_string()),
            Format::Name => self.line(&record.name),
        }
    }

    /// One of a stream without a known end: JSON is one object per line in both JSON formats, and each is out at once.
    pub fn streamed(&mut self, record: &Record) -> io::Result<()> {
        match self.format {
            Format::Table => self.write(&record.text)?,
            Format::Json | Format::Jsonl => self.line(&record.whole.to_string())?,
            Format::Name => self.line(&record.name)?,
        }
        self.out.flush()
    }

    /// A line of talk, on stderr.
    pub fn talk(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.err, "{line}")
    }

    fn document(&mut self, value: &Value) -> io::Result<()> {
        self.line(&format!("{value:#}"))
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "{line}")
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn printed(format: Format, print: impl FnOnce(&mut Printer<&mut Vec<u8>, &mut Vec<u8>>)) -> (String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let (terminal, talk_terminal) = (Terminal::PLAIN, Terminal::PLAIN);
        print(&mut Printer { format, terminal, talk_terminal, out: &mut out, err: &mut err });
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
}
