use std::fmt;

use holdfast_agent::boottime::BootTime;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A command began.
    Begin {
        /// `<deployment id>/<step>`.
        operation: String,
        /// UUID.
        attempt: String,
        /// The decimal number; 0 where the command was given none.
        fence: u64,
        /// The process.
        pid: u32,
        /// When the kernel says it was started, in ticks since boot.
        start: u64,
        /// When.
        at: BootTime,
    },
    /// It ended by itself.
    End {
        /// `<deployment id>/<step>`.
        operation: String,
        /// UUID.
        attempt: String,
        /// The process.
        pid: u32,
        /// When.
        at: BootTime,
    },
    /// A process without an end was seen to be gone.
    Dead {
        /// The process.
        pid: u32,
        /// When it was seen.
        at: BootTime,
    },
    /// A person's attestation was recorded.
    Attested {
        /// About this deployment.
        deployment: String,
        /// When.
        at: BootTime,
    },
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |at: &BootTime| serde_json::to_string(at).map_err(|_| fmt::Error);
        match self {
            Line::Begin { operation, attempt, fence, pid, start, at } => {
                write!(f, "begin {operation} {attempt} {fence} {pid} {start} {}", time(at)?)
            }
            Line::End { operation, attempt, pid, at } => write!(f, "end {operation} {attempt} {pid} {}", time(at)?),
            Line::Dead { pid, at } => write!(f, "dead {pid} {}", time(at)?),
            Line::Attested { deployment, at } => write!(f, "attested {deployment} {}", time(at)?),
        }
    }
}

impl Line {
    /// Reads one back. Panics at anything else: a ledger that can't be read proves nothing.
    pub(super) fn parse(text: &str) -> Self {
        read(text).unwrap_or_else(|| panic!("not a line of a ledger: {text:?}"))
    }
}

fn read(text: &str) -> Option<Line> {
    let words: Vec<&str> = text.split(' ').collect();
    let line = match *words.as_slice() {
        ["begin", operation, attempt, fence, pid, start, at] => Line::Begin {
            operation: operation.to_owned(),
            attempt: attempt.to_owned(),
            fence: fence.parse().ok()?,
            pid: pid.parse().ok()?,
            start: start.parse().ok()?,
            at: time(at)?,
        },
        ["end", operation, attempt, pid, at] => Line::End {
            operation: operation.to_owned(),
            attempt: attempt.to_owned(),
            pid: pid.parse().ok()?,
            at: time(at)?,
        },
        ["dead", pid, at] => Line::Dead { pid: pid.parse().ok()?, at: time(at)? },
        ["attested", deployment, at] => Line::Attested { deployment: deployment.to_owned(), at: time(at)? },
        _ => return None,
    };
    Some(line)
}

fn time(text: &str) -> Option<BootTime> {
    serde_json::from_str(text).ok()
}
