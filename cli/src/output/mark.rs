use super::Terminal;

/// How a fact came to be known. Intent is never drawn like observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Somebody asked for it.
    Asked,
    /// A recorded decision.
    Decided,
    /// An agent reported it.
    Reported,
    /// Read from the target.
    Read,
    /// No contact.
    NoContact,
    /// A deadline.
    Deadline,
}

impl Mark {
    /// Every mark, for legends.
    pub const ALL: [Mark; 6] =
        [Mark::Asked, Mark::Decided, Mark::Reported, Mark::Read, Mark::NoContact, Mark::Deadline];

    /// Two columns wide in either form.
    #[must_use]
    pub fn symbol(self, terminal: &Terminal) -> &'static str {
        let (symbol, plain) = match self {
            Mark::Asked => ("◆ ", "> "),
            Mark::Decided => ("■ ", "# "),
            Mark::Reported => ("├┤", "[]"),
            Mark::Read => ("○ ", "o "),
            Mark::NoContact => ("▒▒", "::"),
            Mark::Deadline => ("┄┄", "--"),
        };
        if terminal.unicode { symbol } else { plain }
    }

    /// What it says, in words.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Mark::Asked => "asked",
            Mark::Decided => "decided",
            Mark::Reported => "reported",
            Mark::Read => "read from target",
            Mark::NoContact => "no contact",
            Mark::Deadline => "deadline",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn marks_differ_in_both_forms_and_the_plain_one_is_ascii() {
        let plain = Terminal { unicode: false, ..Terminal::PLAIN };
        for terminal in [Terminal::PLAIN, plain] {
            let symbols: BTreeSet<_> = Mark::ALL.iter().map(|mark| mark.symbol(&terminal)).collect();
            assert_eq!(symbols.len(), Mark::ALL.len());
            assert!(symbols.iter().all(|symbol| symbol.chars().count() == 2));
        }
        assert!(Mark::ALL.iter().all(|mark| mark.symbol(&plain).is_ascii()));
        assert!(Mark::ALL.iter().all(|mark| !mark.symbol(&plain).contains('?')), "a mark is no doubt");
    }
}
