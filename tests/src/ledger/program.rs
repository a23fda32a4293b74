//! The command under test.
//!
//! | option | does |
//! | --- | --- |
//! | `--file F` | the ledger |
//! | `--wait-for FILE` | ends only when that file is there |
//! | `--seconds S` | takes that long |
//! | `--say TEXT` | prints a line |
//! | `--exit N` | ends with that code (0) |
//! | `--signal N` | ends by that signal |
//! | `--keep-open` | writes no end: as if it had died before |
//! | `--linger FILE` | writes its end, and then stays until that file is there |
//! | `--once` | does nothing where its operation has an end already: idempotent, as a careful command is |
//!
//! It never waits longer than two minutes, so that nothing of a broken test stays for ever.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use holdfast_agent::boottime::BootTime;
use rustix::process::{Signal, getpid, kill_process};

use super::oracle::{intervals, still_open};
use super::{Line, append};
use crate::process::start_of;

const LONGEST: Duration = Duration::from_secs(120);
const PACE: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
struct Options {
    file: PathBuf,
    wait_for: Option<PathBuf>,
    seconds: f64,
    say: Option<String>,
    exit: u8,
    signal: Option<i32>,
    keep_open: bool,
    linger: Option<PathBuf>,
    once: bool,
}

/// Runs it. The arguments are those after the word `ledger`.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let options = parse(arguments);
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| "-".to_owned());
    let (operation, attempt) = (variable("HOLDFAST_OPERATION_ID"), variable("HOLDFAST_ATTEMPT"));
    let fence = variable("HOLDFAST_FENCE").parse().unwrap_or(0);
    let pid = std::process::id();
    let start = start_of(pid).expect("this process is there");
    if options.once && has_ended(&options, &operation) {
        return finish(&options);
    }
    append(&options.file, &mut |known| {
        let at = BootTime::now();
        let begin = Line::Begin { operation: operation.clone(), attempt: attempt.clone(), fence, pid, start, at };
        dead_among(known).into_iter().map(|pid| Line::Dead { pid, at }).chain([begin]).collect()
    })
    .expect("the ledger can be written");
    act(&options);
    if !options.keep_open {
        let end = Line::End { operation, attempt, pid, at: BootTime::now() };
        append(&options.file, &mut |_| vec![end.clone()]).expect("the ledger can be written");
    }
    if let Some(gate) = &options.linger {
        wait_for(gate);
    }
    finish(&options)
}

fn has_ended(options: &Options, operation: &str) -> bool {
    let mut found = false;
    append(&options.file, &mut |known| {
        found = intervals(known).iter().any(|one| one.operation == operation && one.ended.is_some());
        Vec::new()
    })
    .expect("the ledger can be read");
    found
}

fn wait_for(gate: &Path) {
    let begun = Instant::now();
    while !gate.exists() && begun.elapsed() < LONGEST {
        std::thread::sleep(PACE);
    }
}

fn dead_among(known: &[Line]) -> Vec<u32> {
    still_open(known).into_iter().filter(|(pid, start)| !is_alive(*pid, *start)).map(|(pid, _)| pid).collect()
}

fn is_alive(pid: u32, start: u64) -> bool {
    start_of(pid) == Some(start) && !matches!(crate::process::state_of(pid), Some('Z' | 'X') | None)
}

fn act(options: &Options) {
    if let Some(text) = &options.say {
        let _nobody_reads = writeln!(std::io::stdout(), "{text}");
    }
    let begun = Instant::now();
    let least = Duration::from_secs_f64(options.seconds).min(LONGEST);
    while begun.elapsed() < least {
        std::thread::sleep(PACE);
    }
    if let Some(gate) = &options.wait_for {
        wait_for(gate);
    }
}

fn finish(options: &Options) -> ExitCode {
    if let Some(signal) = options.signal.and_then(Signal::from_named_raw) {
        // The runtime's own handler of a crash takes the first one.
        for _ in 0..10 {
            kill_process(getpid(), signal).expect("a process may signal itself");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    ExitCode::from(options.exit)
}

fn parse(arguments: impl IntoIterator<Item = OsString>) -> Options {
    let mut options = Options::default();
    let mut arguments = arguments.into_iter();
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().expect("the option has a value");
        match name.to_str().expect("options are text") {
            "--file" => options.file = value().into(),
            "--wait-for" => options.wait_for = Some(value().into()),
            "--seconds" => options.seconds = number(value()),
            "--say" => options.say = Some(value().to_string_lossy().into_owned()),
            "--exit" => options.exit = number(value()),
            "--signal" => options.signal = Some(number(value())),
            "--keep-open" => options.keep_open = true,
            "--linger" => options.linger = Some(value().into()),
            "--once" => options.once = true,
            other => panic!("no such option: {other}"),
        }
    }
    options
}

fn number<T: std::str::FromStr>(value: OsString) -> T {
    value.to_str().and_then(|text| text.parse().ok()).expect("a number")
}
