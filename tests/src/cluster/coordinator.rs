use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use holdfast::ca::{Authority, Pair};

use super::{Serving, Settings};
use crate::folder::Folder;
use crate::ops::Ops;
use crate::process::{Launch, Process, without_holdfast};
use crate::wait;

/// The coordinator's process, or what is needed to start it.
pub struct Coordinator {
    program: PathBuf,
    folder: PathBuf,
    config: PathBuf,
    settings: Settings,
    process: Option<Process>,
    address: Option<SocketAddr>,
    admin: String,
    viewer: String,
}

impl Coordinator {
    pub(super) fn new(
        program: &Path,
        folder: &Folder,
        authority: &Authority,
        settings: Settings,
        serving: Serving,
    ) -> Self {
        let pair = authority.server("coordinator").expect("signed");
        let config = folder.write("coordinator.toml", &config(folder, authority.certificate(), &pair, serving));
        std::fs::DirBuilder::new().mode(0o700).create(folder.join("coordinator")).expect("a new folder");
        Self {
            program: program.to_owned(),
            folder: folder.path().to_owned(),
            config,
            settings,
            process: None,
            address: None,
            admin: String::new(),
            viewer: String::new(),
        }
    }

    /// The admin's token. Made before the first start.
    #[must_use]
    pub fn admin(&self) -> &str {
        &self.admin
    }

    /// The viewer's token.
    #[must_use]
    pub fn viewer(&self) -> &str {
        &self.viewer
    }

    /// Makes one more token.
    #[must_use]
    pub fn token(&self, name: &str, role: &str, ttl: &str) -> String {
        let text = self.run(&["token", "create", "--name", name, "--role", role, "--ttl", ttl]);
        text.trim().to_owned()
    }

    /// Runs one of its other commands with its configuration, beside it, and gives what it printed.
    #[must_use]
    pub fn run(&self, words: &[&str]) -> String {
        let mut command = Command::new(&self.program);
        without_holdfast(&mut command);
        command.arg("coordinator").args(words).arg("--config").arg(&self.config);
        command.current_dir(&self.folder).stdin(Stdio::null());
        let output = command.output().expect("the program can be started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "coordinator {}: {said}", words.join(" "));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.folder.join("coordinator.log")
    }

    /// Its store. Not to be written while it runs.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.folder.join("coordinator/holdfast.db")
    }

    /// Where it listens now. Nobody listens there when it does not run.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address.expect("it was started")
    }

    /// Where it tells of itself.
    #[must_use]
    pub fn ops(&self) -> Ops {
        Ops::new(&self.folder.join("coordinator.ops"))
    }

    /// Its process id; of the wrapper, where there is one.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("it runs").pid()
    }

    /// How it is started from now on.
    pub fn settings(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// Starts it and waits until it listens.
    pub(super) async fn start(&mut self) {
        let file = self.folder.join("coordinator.address");
        let _none_yet = std::fs::remove_file(&file);
        let _none_yet = std::fs::remove_file(self.folder.join("coordinator.ops"));
        self.kill();
        if self.admin.is_empty() {
            self.admin = self.token("admin", "admin", "1h");
            self.viewer = self.token("viewer", "viewer", "1h");
        }
        self.process = Some(Process::start(&self.launch()));
        let address = wait::until("the coordinator to listen", wait::SOON, async || {
            if let Some(status) = self.status() {
                panic!("the coordinator ended with {status}");
            }
            let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
            text.trim().parse().map_err(|error| format!("{text:?}: {error}"))
        })
        .await;
        self.address = Some(address);
    }

    fn launch(&self) -> Launch {
        let config = self.config.to_str().expect("a test's paths are plain text");
        Launch {
            name: "coordinator".to_owned(),
            wrapper: self.settings.wrapper.clone(),
            program: self.program.clone(),
            arguments: ["coordinator", "serve", "--config", config].map(str::to_owned).into(),
            environment: self.settings.environment.clone(),
            folder: self.folder.clone(),
            log: self.folder.join("coordinator.log"),
        }
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// SIGTERM, and how it ended.
    pub async fn terminate(&mut self) -> ExitStatus {
        let process = self.process.as_mut().expect("it runs");
        process.terminate();
        process.ended(wait::SOON).await
    }

    /// How it ended, if it has.
    pub fn status(&mut self) -> Option<ExitStatus> {
        self.process.as_mut().and_then(Process::status)
    }

    /// Waits for its end, as at a crash point.
    pub async fn ended(&mut self, bound: Duration) -> ExitStatus {
        self.process.as_mut().expect("it runs").ended(bound).await
    }

    /// SIGSTOP.
    pub async fn freeze(&mut self) {
        self.process.as_mut().expect("it runs").freeze().await;
    }

    /// SIGCONT.
    pub fn thaw(&mut self) {
        self.process.as_mut().expect("it runs").thaw();
    }
}

fn config(folder: &Folder, ca: &Path, pair: &Pair, serving: Serving) -> String {
    let Pair { certificate, key } = pair;
    let Serving { port, heartbeat, margin } = serving;
    format!(
        r#"data_dir = {data:?}

[listen]
address = "127.0.0.1:{port}"
address_file = {address:?}

[tls]
cert = {certificate:?}
key = {key:?}
client_ca = {ca:?}

[lease]
margin = "{margin}ms"

[heartbeat]
interval = "{heartbeat}ms"

[log]
filter = "info"

[ops]
address = "127.0.0.1:0"
address_file = {ops:?}
ready_within = "1s"
live_within = "2s"
"#,
        ops = folder.join("coordinator.ops"),
        data = folder.join("coordinator"),
        address = folder.join("coordinator.address"),
        margin = margin.as_millis(),
        heartbeat = heartbeat.as_millis(),
    )
}
