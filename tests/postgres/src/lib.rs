//! A real PostgreSQL server for one test: a folder of its own, a port of its own, gone with the value.
//!
//! Administrators come through the local socket without a password ([`ADMIN`]); everybody else over loopback, with one.

mod programs;

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use programs::Programs;
use rustix::process::{Pid, Signal, kill_process};

/// The superuser.
pub const ADMIN: &str = "admin";

const PREFIX: &str = "holdfast-postgres-";
const PATIENCE: Duration = Duration::from_secs(60);
const ACCESS: &str = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n";

/// A server that runs until this is dropped.
#[derive(Debug)]
pub struct Server {
    programs: Programs,
    folder: PathBuf,
    port: u16,
    settings: Vec<String>,
    child: Mutex<Option<Child>>,
}

impl Server {
    /// Makes a cluster and starts it.
    ///
    /// # Panics
    /// Where PostgreSQL is not installed, or does not start.
    #[must_use]
    pub fn start() -> Self {
        let programs = Programs::find();
        let folder = new_folder();
        programs.give(&folder);
        let data = folder.join("data");
        let mut made = programs.command("initdb");
        made.arg("-D").arg(&data).args(["-U", ADMIN, "-A", "trust", "--no-sync", "--no-locale", "--encoding=UTF8"]);
        let output = made.output().expect("initdb runs");
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        fs::write(data.join("pg_hba.conf"), ACCESS).expect("the folder is ours");
        let server = Self { programs, folder, port: free_port(), settings: Vec::new(), child: Mutex::new(None) };
        server.up();
        server
    }

    /// The port on 127.0.0.1. The same for as long as this lives.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of the local socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.folder
    }

    /// Runs SQL as the administrator, and gives back what it printed: a line for each row, `|` between columns.
    ///
    /// # Panics
    /// Where it fails.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        self.try_sql(database, sql).unwrap_or_else(|error| panic!("{error}\n{sql}"))
    }

    /// The same, and what it said where it failed.
    pub fn try_sql(&self, database: &str, sql: &str) -> Result<String, String> {
        let file = self.folder.join(format!("sql-{}", number()));
        fs::write(&file, sql).expect("the folder is ours");
        let mut psql = self.programs.command("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", ADMIN, "-d", database, "-f", "-"]);
        psql.arg("-h").arg(&self.folder).arg("-p").arg(self.port.to_string());
        let output = psql.stdin(File::open(&file).expect("it was just written")).output().expect("psql runs");
        fs::remove_file(&file).expect("it was just written");
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Stops it: sessions are ended, and what they had not committed is rolled back.
    pub fn down(&self) {
        if let Some(mut child) = self.child().take() {
            signal(&child, Signal::INT);
            child.wait().expect("it is our child");
        }
    }

    /// Starts it again.
    ///
    /// # Panics
    /// Where it does not.
    pub fn up(&self) {
        let log = File::options().create(true).append(true).open(self.folder.join("log")).expect("the folder is ours");
        let mut command = self.programs.command("postgres");
        command
            .arg("-D")
            .arg(self.folder.join("data"))
            .arg("-k")
            .arg(&self.folder)
            .arg("-p")
            .arg(self.port.to_string());
        for setting in ["listen_addresses=127.0.0.1", "shared_buffers=16MB", "max_connections=40"] {
            command.args(["-c", setting]);
        }
        command.args(self.settings.iter().flat_map(|setting| ["-c", setting]));
        let output = log.try_clone().expect("a second handle on the log");
        let child = command.stdin(Stdio::null()).stdout(output).stderr(log).spawn().expect("the server runs");
        self.wait_until_ready(self.child().insert(child));
    }

    /// Starts it anew with that certificate and key, in PEM.
    pub fn with_tls(mut self, certificate: &str, key: &str) -> Self {
        self.settings.push("ssl=on".to_owned());
        self.setting_of_file("ssl_cert_file", certificate);
        self.setting_of_file("ssl_key_file", key);
        self.down();
        self.up();
        self
    }

    /// Starts it anew: that role comes with a certificate in its name, by that authority, and with nothing else.
    pub fn with_certificates_of(mut self, authority: &str, role: &str) -> Self {
        self.setting_of_file("ssl_ca_file", authority);
        let access = format!("hostssl all {role} 127.0.0.1/32 cert\nhost all {role} 127.0.0.1/32 reject\n{ACCESS}");
        fs::write(self.folder.join("data/pg_hba.conf"), access).expect("the folder is ours");
        self.down();
        self.up();
        self
    }

    /// A setting that names a file with that text, the server's alone.
    fn setting_of_file(&mut self, name: &str, text: &str) {
        let file = self.folder.join(name);
        fs::write(&file, text).expect("the folder is ours");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("the file is ours");
        self.programs.give(&file);
        self.settings.push(format!("{name}={}", file.display()));
    }

    /// A copy of everything it holds, as a cold backup. To be put back by [`restore`](Self::restore).
    pub fn back_up(&self) -> Backup {
        self.down();
        let path = self.folder.join(format!("backup-{}", number()));
        self.copy(&self.folder.join("data"), &path);
        self.up();
        Backup(path)
    }

    /// Puts a copy back in the place of what is there.
    pub fn restore(&self, backup: &Backup) {
        self.down();
        let data = self.folder.join("data");
        fs::remove_dir_all(&data).expect("the folder is ours");
        self.copy(&backup.0, &data);
        self.up();
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn copy(&self, from: &Path, to: &Path) {
        let copied = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
        assert!(copied.success(), "a copy of {}", from.display());
    }

    fn wait_until_ready(&self, child: &mut Child) {
        let (file, end) = (self.folder.join("data/postmaster.pid"), Instant::now() + PATIENCE);
        let own = child.id().to_string();
        loop {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            if lines.first() == Some(&own.as_str()) && lines.get(7) == Some(&"ready") {
                return;
            }
            let ended = child.try_wait().expect("it is our child");
            let log = || fs::read_to_string(self.folder.join("log")).unwrap_or_default();
            assert!(ended.is_none() && Instant::now() < end, "the server did not start:\n{}", log());
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let child = self.child().take();
        if let Some(mut child) = child {
            signal(&child, Signal::QUIT);
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A copy of a server's data. Goes with the server.
#[derive(Debug)]
pub struct Backup(PathBuf);

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a child has an id");
    kill_process(pid, signal).expect("it is our child");
}

/// Servers of test processes that were killed go too.
fn new_folder() -> PathBuf {
    let temporary = std::env::temp_dir();
    for entry in fs::read_dir(&temporary).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if owner.is_some_and(|owner| !Path::new("/proc").join(owner.to_string()).exists()) {
            end_abandoned(&entry.path());
        }
    }
    let path = temporary.join(format!("{PREFIX}{}-{}", std::process::id(), number()));
    fs::create_dir(&path).expect("a new folder among the temporary files");
    path.canonicalize().expect("it was just made")
}

fn end_abandoned(folder: &Path) {
    let text = fs::read_to_string(folder.join("data/postmaster.pid")).unwrap_or_default();
    if let Some(pid) = text.lines().next().and_then(|line| line.parse().ok()).and_then(Pid::from_raw) {
        let arguments = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        // The number may be another's by now.
        if String::from_utf8_lossy(&arguments).contains(&*folder.to_string_lossy()) {
            let _ = kill_process(pid, Signal::QUIT);
        }
    }
    let _ = fs::remove_dir_all(folder);
}

fn number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).and_then(|socket| socket.local_addr()).expect("a free port").port()
}
