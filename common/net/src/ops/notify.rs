//! What a service manager hears, over the datagram socket that `NOTIFY_SOCKET` names.
//!
//! | word | is said |
//! | --- | --- |
//! | `READY=1` | once, when the service does what it is for |
//! | `WATCHDOG=1` | while every part that `/livez` counts says that it lives |
//! | `STATUS=` | when it changed |
//! | `EXTEND_TIMEOUT_USEC=` | while a start or a stop takes its time for a reason |
//! | `STOPPING=1` | once, when the end begins |
//!
//! Without the variable nothing is said. A word that can't be sent is lost: the manager's own bounds are what counts then.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Health;

/// How often the status is looked at.
const STATUS_EVERY: Duration = Duration::from_millis(500);
/// Longest status that is told, in bytes: the manager shows one line.
const STATUS_BYTES: usize = 300;

/// Who started this process and wants to hear from it. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Manager {
    socket: Option<Arc<Socket>>,
    watchdog: Option<Duration>,
    told: Arc<Mutex<String>>,
}

#[derive(Debug)]
struct Socket {
    from: UnixDatagram,
    to: SocketAddr,
}

impl Manager {
    /// The one that the environment names; none where it names none, or where it means another process.
    #[must_use]
    pub fn of_environment() -> Self {
        let own = std::process::id();
        Self::named(|name| std::env::var_os(name), own).unwrap_or_else(|error| {
            tracing::warn!(%error, "the service manager's socket can't be used: it hears nothing");
            Self::default()
        })
    }

    /// The same by any environment, for the process `own`.
    pub fn named(variable: impl Fn(&str) -> Option<OsString>, own: u32) -> io::Result<Self> {
        let Some(name) = variable("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else { return Ok(Self::default()) };
        let socket = Socket { from: UnixDatagram::unbound()?, to: address(&name)? };
        // A service never waits for its manager.
        socket.from.set_nonblocking(true)?;
        let number = |name: &str| variable(name)?.to_str()?.parse::<u64>().ok();
        let meant = variable("WATCHDOG_PID").is_none() || number("WATCHDOG_PID") == Some(u64::from(own));
        let watchdog = number("WATCHDOG_USEC").filter(|micros| meant && *micros > 0).map(Duration::from_micros);
        Ok(Self { socket: Some(Arc::new(socket)), watchdog, told: Arc::default() })
    }

    /// Within what time it must hear again that the service lives, where it watches.
    #[must_use]
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// The service does what it is for.
    pub fn ready(&self) {
        self.say("READY=1");
    }

    /// The end begins.
    pub fn stopping(&self) {
        self.say("STOPPING=1");
    }

    /// One more turn of life.
    pub fn alive(&self) {
        self.say("WATCHDOG=1");
    }

    /// A start or a stop goes on, and takes no longer than that from now without another word.
    pub fn extend(&self, by: Duration) {
        self.say(&format!("EXTEND_TIMEOUT_USEC={}", by.as_micros()));
    }

    /// In words, on one line. The same again is not said again.
    pub fn status(&self, text: &str) {
        let line = holdfast_common::text::bounded(&holdfast_common::text::one_line(text), STATUS_BYTES);
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told != line {
            self.say(&format!("STATUS={line}"));
            *told = line;
        }
    }

    /// Says from now on that the service lives, while it does, and what `status` gives. The caller has said [`Manager::ready`].
    pub async fn follow(self, health: Health, status: impl Fn() -> String) {
        if self.socket.is_none() {
            return;
        }
        let every = self.watchdog.map_or(STATUS_EVERY, |within| (within / 3).min(STATUS_EVERY));
        let mut silent = false;
        loop {
            let lives = health.liveness();
            let wrong = lives.wrong().map(|(name, why)| format!("{name}: {why}")).collect::<Vec<_>>().join("; ");
            match wrong.is_empty() {
                true => {
                    self.alive();
                    self.status(&status());
                }
                false => self.status(&wrong),
            }
            if wrong.is_empty() == silent {
                silent = !silent;
                tracing::warn!(%wrong, silent, "what the service manager's watchdog hears has changed");
            }
            tokio::time::sleep(every).await;
        }
    }

    fn say(&self, words: &str) {
        if let Some(Socket { from, to }) = self.socket.as_deref()
            && let Err(error) = from.send_to_addr(words.as_bytes(), to)
        {
            tracing::debug!(%error, words, "the service manager could not be told");
        }
    }
}

/// A path, or a name without a file that begins with `@`.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'/', ..] => SocketAddr::from_pathname(name),
        [b'@', abstract_name @ ..] => SocketAddr::from_abstract_name(abstract_name),
        _ => Err(io::Error::new(io::ErrorKind::Unsupported, "NOTIFY_SOCKET is neither a path nor begins with @")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::State;
    use super::*;

    const OWN: u32 = 7;

    fn manager(socket: &Path, more: &[(&str, &str)]) -> Manager {
        let find = |name: &str| more.iter().find(|(of, _)| *of == name).map(|(_, value)| OsString::from(value));
        let named = |name: &str| if name == "NOTIFY_SOCKET" { Some(socket.as_os_str().to_owned()) } else { find(name) };
        Manager::named(named, OWN).unwrap()
    }

    fn heard(listener: &UnixDatagram) -> String {
        let mut bytes = [0; 1024];
        listener.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let length = listener.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    }

    #[test]
    fn without_a_socket_nothing_is_said_and_nothing_watches() {
        let none = Manager::named(|name| (name == "WATCHDOG_USEC").then(|| "5".into()), OWN).unwrap();
        assert_eq!(none.watchdog(), None);
        none.ready();
        assert!(Manager::named(|name| (name == "NOTIFY_SOCKET").then(|| "relative".into()), OWN).is_err());
    }

    #[test]
    fn words_reach_a_socket_with_and_without_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let told = manager(&path, &[]);
        told.ready();
        told.status("in contact\nholds nothing");
        told.status("in contact\nholds nothing");
        told.extend(Duration::from_secs(2));
        told.stopping();
        assert_eq!(heard(&listener), "READY=1");
        let status = heard(&listener);
        assert!(status.starts_with("STATUS=in contact") && !status.contains('\n'), "{status}");
        assert_eq!(heard(&listener), "EXTEND_TIMEOUT_USEC=2000000", "the same status is said once");
        assert_eq!(heard(&listener), "STOPPING=1");
        let name = format!("holdfast-notify-{}", std::process::id());
        let listener = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        manager(Path::new(&format!("@{name}")), &[]).alive();
        assert_eq!(heard(&listener), "WATCHDOG=1");
    }

    #[test]
    fn the_watchdog_is_for_the_process_that_it_names() {
        let path = Path::new("/nowhere");
        let watched = |more: &[(&str, &str)]| manager(path, more).watchdog();
        assert_eq!(watched(&[("WATCHDOG_USEC", "3000000")]), Some(Duration::from_secs(3)));
        assert_eq!(watched(&[("WATCHDOG_USEC", "3000000"), ("WATCHDOG_PID", "7")]), Some(Duration::from_secs(3)));
        assert_eq!(watched(&[("WATCHDOG_USEC", "3000000"), ("WATCHDOG_PID", "8")]), None);
        assert_eq!(watched(&[("WATCHDOG_USEC", "0")]), None);
        assert_eq!(watched(&[("WATCHDOG_USEC", "soon")]), None);
    }

    #[tokio::test]
    async fn the_watchdog_is_fed_while_the_work_loop_lives_and_hears_why_it_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let listener = UnixDatagram::bind(&path).unwrap();
        let dead = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (health, look) = (Health::new(), Arc::clone(&dead));
        let lives = move || !look.load(std::sync::atomic::Ordering::SeqCst);
        health.alive("work loop", move || State::of(lives(), || "in the middle of a turn for 9 s".to_owned()));
        let manager = manager(&path, &[("WATCHDOG_USEC", "30000")]);
        let following = tokio::spawn(manager.follow(health, || "holds nothing".to_owned()));
        let (listener, words) = tokio::task::spawn_blocking(move || {
            let words = [heard(&listener), heard(&listener), heard(&listener)];
            (listener, words)
        })
        .await
        .unwrap();
        assert_eq!(words, ["WATCHDOG=1", "STATUS=holds nothing", "WATCHDOG=1"]);
        dead.store(true, std::sync::atomic::Ordering::SeqCst);
        let last = tokio::task::spawn_blocking(move || {
            let status = std::iter::repeat_with(|| heard(&listener)).find(|words| words.starts_with("STATUS="));
            listener.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            (status, listener.recv(&mut [0; 1024]).map_err(|error| error.kind()))
        })
        .await
        .unwrap();
        assert_eq!(last.0.as_deref(), Some("STATUS=work loop: in the middle of a turn for 9 s"));
        assert_eq!(last.1, Err(io::ErrorKind::WouldBlock), "a dead loop feeds nobody");
        following.abort();
    }
}
