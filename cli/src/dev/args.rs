use std::path::PathBuf;

/// Run a whole Holdfast on this machine: a coordinator and two agents, to try things out and to break them
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Args {
    /// What to do to one that runs already.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Folder for everything; it is kept and can be used again. Without it a temporary one is made and removed. With a
    /// command: the folder of the dev that is meant, where several run
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Play the first five minutes, checking every statement; exits 1 at the first that is not true
    #[arg(long)]
    pub tour: bool,
    /// End when everything is up, or when the tour is over
    #[arg(long)]
    pub exit: bool,
    /// Port of the coordinator on loopback; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub port: u16,
    /// Leave the cut out of the tour, which then fails
    #[arg(long, hide = true, requires = "tour")]
    pub without_cut: bool,
}

/// What another terminal may do to a running dev.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Command {
    /// Cut an agent's line to the coordinator
    Cut(Cut),
    /// Make an agent's line whole again
    Heal(Agent),
    /// Make an agent's process stand still; its connections stay open, and nobody is told
    Pause(Agent),
    /// Let a paused agent go on
    Resume(Agent),
    /// Kill an agent's process at once; what it began goes on without it
    Kill(Agent),
    /// Start an agent again that was killed or has ended
    Start(Agent),
}

/// Which line to cut, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Cut {
    /// The agent, like web-01
    pub agent: String,
    /// As a pulled cable does: what is sent vanishes, and neither end is told
    #[arg(long)]
    pub silent: bool,
}

/// Which agent.
#[derive(Clone, Debug, clap::Args)]
pub struct Agent {
    /// The agent, like web-01
    pub agent: String,
}

impl Args {
    /// What clap can't say: the options of starting one don't go with a command to a running one.
    pub fn check(&self) -> Result<(), clap::Error> {
        if self.command.is_some() && (self.tour || self.exit || self.port != 0 || self.without_cut) {
            let text = "--tour, --exit and --port start a dev; they don't go with a command to one that runs\n";
            return Err(clap::Error::raw(clap::error::ErrorKind::ArgumentConflict, text));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        dev: Args,
    }

    fn parsed(arguments: &[&str]) -> Option<Args> {
        Cli::try_parse_from([&["dev"], arguments].concat()).ok().map(|cli| cli.dev).filter(|dev| dev.check().is_ok())
    }

    #[test]
    fn running_one_and_breaking_one_are_told_apart() {
        assert!(parsed(&["--tour", "--exit"]).is_some_and(|args| args.tour && args.exit && args.command.is_none()));
        let cut = parsed(&["cut", "web-01", "--silent"]).and_then(|args| args.command);
        assert!(matches!(cut, Some(Command::Cut(Cut { agent, silent: true })) if agent == "web-01"));
        for line in [
            &["--data", "A", "cut", "web-01"][..],
            &["cut", "--data", "A", "web-01"],
            &["pause", "web-01", "--data", "A"],
        ] {
            let args = parsed(line).unwrap_or_else(|| panic!("{line:?}"));
            assert_eq!(args.data.as_deref(), Some(std::path::Path::new("A")), "{line:?}");
        }
        for command in ["pause", "resume", "kill", "start"] {
            assert!(parsed(&[command, "web-01"]).is_some() && parsed(&[command]).is_none(), "{command}");
        }
        assert!(parsed(&["--port", "1", "cut", "web-01"]).is_none());
        assert!(parsed(&["heal", "web-01"]).is_some());
        assert!(parsed(&["--tour", "cut", "web-01"]).is_none());
        assert!(parsed(&["--without-cut"]).is_none());
        assert!(parsed(&["cut"]).is_none());
    }
}
