//! Breaking and healing a running dev's lines from another terminal.
//!
//! One request and one answer per connection, each one line of JSON, over a socket in dev's own folder, which only its
//! user can enter.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::pointer::{self, Pointers};

const NAME: &str = "control.sock";
const MAX_LINE: u64 = 4096;
/// Longest time that one exchange may take.
const LIMIT: Duration = Duration::from_secs(10);

/// What another terminal may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask", deny_unknown_fields)]
pub(super) enum Request {
    /// Reset the agent's connections and refuse new ones.
    Cut { agent: String },
    /// Let everything that is sent vanish, both ways, without a word to either end.
    Silence { agent: String },
    /// End either.
    Heal { agent: String },
    /// Stop the agent's process where it stands.
    Pause { agent: String },
    /// Let it go on.
    Resume { agent: String },
    /// Kill the agent's process.
    Kill { agent: String },
    /// Start the agent again.
    Start { agent: String },
}

/// What it gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer", deny_unknown_fields)]
pub(super) enum Answer {
    /// It is so now.
    Done { detail: String },
    /// It is not, and why.
    Refused { detail: String },
}

/// Why there was no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("no holdfast dev is running for this user; start one with: holdfast dev")]
    NoneRuns,
    #[error("no holdfast dev is running in {}", folder.display())]
    NotThere { folder: PathBuf },
    #[error("several are running; choose one: {}", choices(folders))]
    Several { folders: Vec<PathBuf> },
    #[error(transparent)]
    Pointer(#[from] pointer::Error),
    #[error("could not talk to the holdfast dev in {}: {source}", folder.display())]
    Talk { folder: PathBuf, source: io::Error },
}

fn choices(folders: &[PathBuf]) -> String {
    let choices: Vec<String> = folders.iter().map(|folder| format!("--data {}", folder.display())).collect();
    choices.join(", ")
}

/// The listening end.
#[derive(Debug)]
pub(super) struct Server {
    listener: UnixListener,
}

impl Server {
    /// Listens in the folder, which the caller holds the lock of: a socket that is there is a dead dev's.
    pub(super) fn bind(folder: &Path) -> io::Result<Self> {
        match fs::remove_file(folder.join(NAME)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        Ok(Self { listener: short(folder, |path| UnixListener::bind(path))? })
    }

    /// Answers one request after the other, for ever.
    pub(super) async fn serve(self, mut act: impl AsyncFnMut(Request) -> Answer) {
        loop {
            match self.listener.accept().await {
                // An exchange that breaks is the other end's trouble, which will say so there.
                Ok((stream, _)) => drop(tokio::time::timeout(LIMIT, answer(stream, &mut act)).await),
                Err(error) => {
                    tracing::warn!(%error, "could not accept a control connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

async fn answer(stream: UnixStream, act: &mut impl AsyncFnMut(Request) -> Answer) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let answer = match serde_json::from_str(&line(&mut stream).await?) {
        Ok(request) => act(request).await,
        Err(error) => Answer::Refused { detail: format!("not a request of this version: {error}") },
    };
    stream.get_mut().write_all(&encoded(&answer)).await
}

/// Asks the dev in the folder, else the only one that runs for this user, else the one that `HOLDFAST_ADDRESS` names.
pub(super) async fn ask(data: Option<&Path>, request: &Request) -> Result<Answer, Error> {
    match data {
        Some(folder) => ask_in(folder, request).await,
        None => {
            let address = std::env::var("HOLDFAST_ADDRESS").ok();
            let folder = only_running(&Pointers::of_user()?, address.as_deref()).await?;
            ask_in(&folder, request).await
        }
    }
}

async fn only_running(pointers: &Pointers, address: Option<&str>) -> Result<PathBuf, Error> {
    let mut running = Vec::new();
    for folder in pointers.folders()? {
        if connect(&folder).await.is_ok() {
            running.push(folder);
        }
    }
    match running.len() {
        0 => Err(Error::NoneRuns),
        1 => Ok(running.remove(0)),
        2.. => match running.iter().find(|folder| address.is_some_and(|address| serves(folder, address))) {
            Some(folder) => Ok(folder.clone()),
            None => Err(Error::Several { folders: running }),
        },
    }
}

/// Whether the environment that a dev wrote into its folder names this address.
fn serves(folder: &Path, address: &str) -> bool {
    let environment = fs::read_to_string(folder.join("environment")).unwrap_or_default();
    let named = environment.lines().find_map(|line| line.strip_prefix("export HOLDFAST_ADDRESS="));
    named.is_some_and(|named| named.trim_matches('\'') == address)
}

async fn ask_in(folder: &Path, request: &Request) -> Result<Answer, Error> {
    let stream = connect(folder).await.map_err(|_| Error::NotThere { folder: folder.to_owned() })?;
    let exchange = async {
        let mut stream = BufReader::new(stream);
        stream.get_mut().write_all(&encoded(request)).await?;
        Ok(serde_json::from_str(&line(&mut stream).await?)?)
    };
    let talked = tokio::time::timeout(LIMIT, exchange).await.unwrap_or_else(|late| Err(late.into()));
    talked.map_err(|source| Error::Talk { folder: folder.to_owned(), source })
}

async fn connect(folder: &Path) -> io::Result<UnixStream> {
    let opened = open(folder)?;
    UnixStream::connect(in_opened(&opened)).await
}

fn encoded(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("plain data serializes");
    line.push(b'\n');
    line
}

async fn line(stream: &mut BufReader<UnixStream>) -> io::Result<String> {
    let mut line = String::new();
    stream.take(MAX_LINE).read_line(&mut line).await?;
    Ok(line)
}

/// A socket's address has room for some hundred bytes, a folder's path may be longer: it is reached by the folder's handle.
fn short<T>(folder: &Path, act: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
    let opened = open(folder)?;
    act(in_opened(&opened))
}

fn open(folder: &Path) -> io::Result<std::os::fd::OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?)
}

fn in_opened(folder: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{NAME}", folder.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::super::folder::tests::Scratch;
    use super::*;

    fn start(folder: &Path) -> tokio::task::JoinHandle<()> {
        let server = Server::bind(folder).expect("listens");
        tokio::spawn(server.serve(async |request| match request {
            Request::Cut { agent } => Answer::Done { detail: format!("{agent} is cut") },
            Request::Silence { .. }
            | Request::Heal { .. }
            | Request::Pause { .. }
            | Request::Resume { .. }
            | Request::Kill { .. }
            | Request::Start { .. } => Answer::Refused { detail: "no".to_owned() },
        }))
    }

    fn cut() -> Request {
        Request::Cut { agent: "web-01".to_owned() }
    }

    #[tokio::test]
    async fn a_request_is_answered_however_long_the_folder_is_called() {
        let scratch = Scratch::new();
        let long = scratch.0.join("x".repeat(120)).join("y".repeat(120));
        fs::create_dir_all(&long).expect("made");
        let server = start(&long);
        let done = Answer::Done { detail: "web-01 is cut".to_owned() };
        assert_eq!(ask(Some(&long), &cut()).await.expect("an answer"), done);
        let heal = Request::Heal { agent: "web-01".to_owned() };
        assert_eq!(ask(Some(&long), &heal).await.expect("another"), Answer::Refused { detail: "no".to_owned() });
        server.abort();
        let _ = server.await;
        assert!(matches!(ask(Some(&long), &cut()).await, Err(Error::NotThere { .. })));
        let again = start(&long);
        assert_eq!(ask(Some(&long), &cut()).await.expect("a dead dev's socket is replaced"), done);
        again.abort();
    }

    #[tokio::test]
    async fn nonsense_is_answered_and_the_next_is_served() {
        let scratch = Scratch::new();
        let server = start(&scratch.0);
        for text in ["\n", "{\n", "{\"ask\":\"explode\"}\n", &("x".repeat(10_000) + "\n")] {
            let mut stream = BufReader::new(connect(&scratch.0).await.expect("connects"));
            // The far end may stop reading before all is written.
            let _ = stream.get_mut().write_all(text.as_bytes()).await;
            if text.len() < 100 {
                let answer: Answer =
                    serde_json::from_str(&line(&mut stream).await.expect("a line")).expect("an answer");
                assert!(matches!(answer, Answer::Refused { .. }), "{text:?}");
            }
        }
        assert!(matches!(ask(Some(&scratch.0), &cut()).await, Ok(Answer::Done { .. })));
        server.abort();
    }

    #[tokio::test]
    async fn only_devs_that_run_are_found_and_several_are_named() {
        let (runs, one, other, gone) = (Scratch::new(), Scratch::new(), Scratch::new(), Scratch::new());
        let write = |name: &str, folder: &Path| {
            fs::write(runs.0.join(name), folder.as_os_str().as_encoded_bytes()).expect("written");
        };
        let pointers = Pointers::in_test(&runs.0);
        assert!(matches!(only_running(&pointers, None).await, Err(Error::NoneRuns)));
        write("dev-1", &gone.0);
        write("dev-2", &one.0);
        let first = start(&one.0);
        assert_eq!(only_running(&pointers, None).await.expect("one"), one.0);
        write("dev-3", &other.0);
        let second = start(&other.0);
        assert!(matches!(only_running(&pointers, None).await, Err(Error::Several { folders }) if folders.len() == 2));
        fs::write(other.0.join("environment"), "export HOLDFAST_ADDRESS=https://127.0.0.1:2\nexport HOLDFAST_CA=x\n")
            .expect("written");
        let named = only_running(&pointers, Some("https://127.0.0.1:2")).await;
        assert_eq!(named.expect("the environment tells which"), other.0);
        let another = only_running(&pointers, Some("https://127.0.0.1:3")).await;
        assert!(matches!(another, Err(Error::Several { .. })));
        first.abort();
        second.abort();
    }
}
