use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use holdfast::ca::{Authority, Pair};
use holdfast::proxy::Proxy;
use holdfast_common::id::AgentName;

use super::Settings;
use crate::folder::Folder;
use crate::manager::Unit;
use crate::ops::Ops;
use crate::process::{Launch, Process};
use crate::wait;

/// An agent's process, or what is needed to start it, and the proxy between it and the coordinator.
pub struct Agent {
    name: String,
    program: PathBuf,
    folder: PathBuf,
    config: PathBuf,
    pair: Pair,
    proxy: Proxy,
    settings: Settings,
    process: Option<Process>,
}

impl Agent {
    pub(super) fn new(
        program: &Path,
        folder: &Folder,
        authority: &Authority,
        name: &str,
        proxy: Proxy,
        settings: Settings,
        straight: Option<SocketAddr>,
    ) -> Self {
        let pair = authority.agent(&AgentName::new(name).expect("a name")).expect("signed");
        let address = straight.unwrap_or_else(|| proxy.address());
        let config = config(folder, authority.certificate(), &pair, name, address);
        let config = folder.write(&format!("{name}.toml"), &config);
        Self {
            name: name.to_owned(),
            program: program.to_owned(),
            folder: folder.path().to_owned(),
            config,
            pair,
            proxy,
            settings,
            process: None,
        }
    }

    /// As its certificate says.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it connects through.
    #[must_use]
    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Its certificate and key.
    #[must_use]
    pub fn pair(&self) -> &Pair {
        &self.pair
    }

    /// Its state folder.
    #[must_use]
    pub fn state(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Where it tells of itself.
    #[must_use]
    pub fn ops(&self) -> Ops {
        Ops::new(&self.folder.join(format!("{}.ops", self.name)))
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

    /// Starts it. Returns at once.
    pub fn start(&mut self) {
        self.kill();
        let _none_yet = std::fs::remove_file(self.folder.join(format!("{}.ops", self.name)));
        self.process = Some(Process::start(&self.launch()));
    }

    fn launch(&self) -> Launch {
        let config = self.config.to_str().expect("a test's paths are plain text");
        Launch {
            name: self.name.clone(),
            wrapper: self.settings.wrapper.clone(),
            program: self.program.clone(),
            arguments: ["agent", "run", "--config", config].map(str::to_owned).into(),
            environment: self.settings.environment.clone(),
            folder: self.folder.clone(),
            log: self.folder.join(format!("{}.log", self.name)),
        }
    }

    /// What a service manager would keep running instead of [`Agent::start`].
    #[must_use]
    pub fn unit(&self, watchdog: Duration) -> Unit {
        let Launch { program, arguments, environment, folder, log, .. } = self.launch();
        let named = |end: &str| self.folder.join(format!("{}.{end}", self.name));
        Unit {
            program,
            arguments,
            environment,
            folder,
            log,
            socket: named("notify"),
            restart: named("restart"),
            watchdog,
        }
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// `kill -9` of the agent. Its shims live on.
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

    /// SIGSTOP of the agent alone: its shims go on.
    pub async fn freeze(&mut self) {
        self.process.as_mut().expect("it runs").freeze().await;
    }

    /// SIGCONT.
    pub fn thaw(&mut self) {
        self.process.as_mut().expect("it runs").thaw();
    }

    /// Everything that lives in its state folder, but itself.
    pub(super) fn shims(&self, folder: &Folder) -> Vec<i32> {
        let own = self.process.as_ref().and_then(|process| i32::try_from(process.pid()).ok());
        let state = self.state();
        let here = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let cwd = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
            let named = String::from_utf8_lossy(&line).contains(state.to_str().expect("plain text"));
            named || cwd.starts_with(&state)
        };
        folder.processes().into_iter().filter(|pid| Some(*pid) != own).filter(here).collect()
    }
}

fn config(folder: &Folder, ca: &Path, pair: &Pair, name: &str, address: SocketAddr) -> String {
    let Pair { certificate, key } = pair;
    format!(
        r#"state_dir = {state:?}

[coordinator]
address = "{address}"
ca = {ca:?}

[identity]
certificate = {certificate:?}
key = {key:?}

[labels]
role = "shop"
host = "{name}"

[log]
filter = "info"

[ops]
address = "127.0.0.1:0"
address_file = {ops:?}
ready_within = "1s"
live_within = "2s"
"#,
        ops = folder.join(&format!("{name}.ops")),
        state = folder.join(name),
    )
}
