use clap::{Args, ValueEnum};

/// How data is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Table,
    /// One JSON document: the API's answer.
    Json,
    /// One JSON object per line and item.
    Jsonl,
    /// One name per line, for `xargs`.
    Name,
}

impl Format {
    /// Whether programs read it as JSON.
    #[must_use]
    pub fn is_json(self) -> bool {
        match self {
            Format::Json | Format::Jsonl => true,
            Format::Table | Format::Name => false,
        }
    }
}

/// The options about output that every command has.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct Options {
    /// How to write data
    #[arg(short, long, global = true, value_name = "FORMAT", value_enum)]
    pub output: Option<Format>,
    /// The same as `-o json`
    #[arg(long, global = true, conflicts_with = "output")]
    pub json: bool,
    /// No symbols outside ASCII
    #[arg(long, global = true)]
    pub ascii: bool,
}

impl Options {
    /// The format they ask for.
    #[must_use]
    pub fn format(&self) -> Format {
        if self.json { Format::Json } else { self.output.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        output: Options,
    }

    fn format(arguments: &[&str]) -> Option<Format> {
        Cli::try_parse_from([&["holdfast"], arguments].concat()).ok().map(|cli| cli.output.format())
    }

    #[test]
    fn formats_are_chosen_by_either_option_but_not_by_both() {
        assert_eq!(format(&[]), Some(Format::Table));
        assert_eq!(format(&["--json"]), Some(Format::Json));
        assert_eq!(format(&["-o", "jsonl"]), Some(Format::Jsonl));
        assert_eq!(format(&["-oname"]), Some(Format::Name));
        assert_eq!(format(&["--output", "table"]), Some(Format::Table));
        assert_eq!(format(&["--json", "-o", "table"]), None);
        assert_eq!(format(&["-o", "yaml"]), None);
    }
}
