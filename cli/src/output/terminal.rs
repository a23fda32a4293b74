use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::fd::AsFd;

use rustix::termios::tcgetwinsize;

/// What the other end of a stream can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// A person sits there: animation and prompts are possible, tables are fitted to the width.
    pub interactive: bool,
    /// Colours are shown.
    pub colour: bool,
    /// Symbols outside ASCII are shown.
    pub unicode: bool,
    /// Columns, where they are known.
    pub width: Option<u16>,
}

impl Terminal {
    /// A file or a pipe, in Unicode.
    pub const PLAIN: Self = Self { interactive: false, colour: false, unicode: true, width: None };

    /// Of a stream like `std::io::stdout()`, with the process's environment.
    #[must_use]
    pub fn of(stream: &(impl IsTerminal + AsFd), ascii: bool) -> Self {
        let columns = tcgetwinsize(stream).ok().map(|size| size.ws_col);
        Self::detect(stream.is_terminal(), columns, ascii, |name| std::env::var_os(name))
    }

    /// `NO_COLOR` (set to anything), `TERM=dumb` and a stream that is no terminal each switch colours off;
    /// `TERM=dumb` and a stream that is no terminal switch off all that moves; `--ascii`, `TERM=dumb` and a locale of
    /// another character set switch symbols off. `LC_ALL` says the locale, else `LC_CTYPE`, else `LANG`; without any,
    /// symbols are shown.
    fn detect(
        is_terminal: bool,
        columns: Option<u16>,
        ascii: bool,
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let set = |name| environment(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_some_and(|term| term == "dumb");
        let interactive = is_terminal && !dumb;
        Self {
            interactive,
            colour: interactive && set("NO_COLOR").is_none(),
            unicode: !ascii && !dumb && ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).is_none_or(is_utf_8),
            width: columns.filter(|columns| interactive && *columns > 0),
        }
    }
}

/// Of a locale like `en_GB.UTF-8`. `C` and `POSIX` are ASCII; another that names no character set is given the benefit of
/// the doubt.
fn is_utf_8(locale: OsString) -> bool {
    let locale = locale.to_string_lossy().to_ascii_lowercase();
    !matches!(locale.as_str(), "c" | "posix")
        && locale.split_once('.').is_none_or(|(_, charset)| charset.starts_with("utf-8") || charset.starts_with("utf8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(is_terminal: bool, ascii: bool, environment: &[(&str, &str)]) -> Terminal {
        let get = |name: &str| environment.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        Terminal::detect(is_terminal, Some(80), ascii, get)
    }

    #[test]
    fn each_wish_for_less_is_respected() {
        let all = Terminal { interactive: true, colour: true, unicode: true, width: Some(80) };
        assert_eq!(detect(true, false, &[("TERM", "xterm")]), all);
        assert_eq!(detect(true, false, &[("NO_COLOR", "")]), all);
        assert_eq!(detect(true, false, &[("NO_COLOR", "1")]), Terminal { colour: false, ..all });
        assert_eq!(detect(true, true, &[]), Terminal { unicode: false, ..all });
        assert_eq!(detect(true, false, &[("TERM", "dumb")]), Terminal { unicode: false, ..Terminal::PLAIN });
        assert_eq!(detect(false, false, &[("TERM", "xterm")]), Terminal::PLAIN);
    }

    #[test]
    fn a_locale_of_another_character_set_gets_no_symbols() {
        for (environment, unicode) in [
            (&[("LANG", "en_GB.UTF-8")][..], true),
            (&[("LANG", "C.utf8")], true),
            (&[], true),
            (&[("LANG", "en_GB")], true),
            (&[("LANG", "C")], false),
            (&[("LC_CTYPE", "POSIX"), ("LANG", "en_GB.UTF-8")], false),
            (&[("LC_ALL", "C"), ("LC_CTYPE", "en_GB.UTF-8"), ("LANG", "en_GB.UTF-8")], false),
            (&[("LC_ALL", "en_GB.UTF-8"), ("LANG", "C")], true),
            (&[("LANG", "de_DE.ISO-8859-1")], false),
            (&[("LC_ALL", "de_DE.ISO-8859-1"), ("LANG", "en_GB.UTF-8")], false),
            (&[("LC_ALL", ""), ("LANG", "en_GB.UTF-8")], true),
        ] {
            assert_eq!(detect(true, false, environment).unicode, unicode, "{environment:?}");
        }
    }
}
