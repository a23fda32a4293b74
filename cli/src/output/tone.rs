use clap::builder::styling::{AnsiColor, Color, RgbColor, Style};

use super::Terminal;

/// What a colour says. The words say it too, always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Nothing in particular.
    Plain,
    /// Not what to look at first.
    Quiet,
    /// Of a heading or a name.
    Strong,
    /// At work.
    Running,
    /// Ended well, observed.
    Good,
    /// Failed, observed.
    Bad,
    /// Uncertain or held: somebody must decide. A hazard badge.
    Hazard,
}

impl Tone {
    /// Every tone.
    pub const ALL: [Tone; 7] =
        [Tone::Plain, Tone::Quiet, Tone::Strong, Tone::Running, Tone::Good, Tone::Bad, Tone::Hazard];

    pub(super) fn style(self) -> Style {
        const BLACK: RgbColor = RgbColor(0x1b, 0x1b, 0x1b);
        const YELLOW: RgbColor = RgbColor(0xff, 0xd3, 0x3d);
        let colour = |colour: AnsiColor| Style::new().fg_color(Some(Color::Ansi(colour)));
        match self {
            Tone::Plain => Style::new(),
            Tone::Quiet => Style::new().dimmed(),
            Tone::Strong => Style::new().bold(),
            Tone::Running => colour(AnsiColor::Blue),
            Tone::Good => colour(AnsiColor::Green),
            Tone::Bad => colour(AnsiColor::Red).bold(),
            Tone::Hazard => Style::new().bold().fg_color(Some(BLACK.into())).bg_color(Some(YELLOW.into())),
        }
    }

    /// The text in this tone, or just the text where there are no colours.
    #[must_use]
    pub fn paint(self, text: &str, terminal: &Terminal) -> String {
        let style = self.style();
        if terminal.colour && self != Tone::Plain { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colours_a_tone_is_just_the_text() {
        let colours = Terminal { colour: true, ..Terminal::PLAIN };
        for tone in Tone::ALL {
            assert_eq!(tone.paint("word", &Terminal::PLAIN), "word");
            assert_eq!(tone.paint("word", &colours).contains('\u{1b}'), tone != Tone::Plain, "{tone:?}");
        }
    }
}
