//! Coordinator, proxies and agents, started in order.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures_util::future::{join_all, select_all};
use holdfast_common::id::AgentName;
use holdfast_common::text::chain;
use holdfast_proto::v1;

use super::api::{Access, Api};
use super::child::{self, Child};
use super::control::{Answer, Request};
use super::folder::Folder;
use super::lines::{Lines, unknown};
use crate::ca::{Authority, Pair};
use crate::proxy::Proxy;

/// The agents of every dev.
pub(super) const AGENTS: [&str; 2] = ["web-01", "web-02"];
const COORDINATOR: &str = "coordinator";
/// Longest time from a child's start until it answers.
const START: Duration = Duration::from_secs(30);
/// How long a child may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(5);
const PACE: Duration = Duration::from_millis(20);

/// What runs. Starts empty, so that what a start that was broken off has begun can be stopped.
#[derive(Debug, Default)]
pub(super) struct Services {
    coordinator: Option<Child>,
    agents: Vec<Child>,
    /// Ended because somebody wanted it so, which needs no obituary.
    killed: BTreeSet<String>,
    lines: Lines,
}

impl Services {
    /// Starts everything and returns when both agents are in contact. Must be called on the main thread.
    pub(super) async fn start(&mut self, folder: &Folder, port: u16) -> anyhow::Result<Access> {
        let authority = Authority::create(&folder.join("tls"))?;
        let access = self.start_coordinator(folder, &authority, port).await?;
        let upstream = access.address.trim_start_matches("https://").parse().context("the coordinator's address")?;
        for name in AGENTS {
            let proxy = Proxy::start(upstream).await.context("could not start a proxy")?;
            let config = agent_config(folder, &authority, name, &proxy)?;
            self.lines.add(name, proxy);
            self.agents.push(start_agent(name, &config, &folder.log(name))?);
        }
        self.in_contact(&Api::new(&access)?).await?;
        Ok(access)
    }

    /// The agents' lines.
    pub(super) fn lines(&self) -> Lines {
        self.lines.clone()
    }

    async fn start_coordinator(&mut self, folder: &Folder, ca: &Authority, port: u16) -> anyhow::Result<Access> {
        let config = coordinator_config(folder, ca, port)?;
        let token = token(folder, &config).await?;
        let announced = address_file(folder);
        match std::fs::remove_file(&announced) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        let arguments = ["coordinator", "serve", "--config", text(&config)];
        let child = Child::start("coordinator", &arguments, &folder.log("coordinator"))?;
        let child = self.coordinator.insert(child);
        let address = until(child, "its address", || async {
            let address = tokio::fs::read_to_string(&announced).await.unwrap_or_default().trim().to_owned();
            (!address.is_empty()).then_some(address)
        });
        let address = format!("https://{}", address.await?);
        Ok(Access { address, ca: ca.certificate().to_owned(), token })
    }

    async fn in_contact(&self, api: &Api) -> anyhow::Result<()> {
        for agent in &self.agents {
            until(agent, "its session", || async {
                let known = api.agents().await.unwrap_or_default();
                let found = known.iter().find(|known| known.name == agent.name())?;
                (found.contact() == v1::Contact::Connected).then_some(())
            })
            .await?;
        }
        Ok(())
    }

    fn children(&self) -> impl Iterator<Item = &Child> {
        self.coordinator.iter().chain(&self.agents)
    }

    /// Does to an agent's process what another terminal asks for, and tells what will be seen of it. Must be called on
    /// the main thread. `None` for what is about a line.
    pub(super) async fn act(&mut self, request: &Request, folder: &Folder) -> Option<Answer> {
        let name = match request {
            Request::Cut { .. } | Request::Silence { .. } | Request::Heal { .. } => return None,
            Request::Pause { agent }
            | Request::Resume { agent }
            | Request::Kill { agent }
            | Request::Start { agent } => agent,
        };
        let Some(index) = self.agents.iter().position(|agent| agent.name() == name) else {
            return Some(unknown(name, self.agents.iter().map(Child::name)));
        };
        let runs = self.agents[index].status().is_none();
        let detail = match request {
            Request::Pause { .. } if runs => {
                self.agents[index].pause();
                format!(
                    "{name} is paused: its process stands still, its connections stay open, and nobody is told. \
                     `holdfast watch` freezes into a silence in a few seconds; what it began goes on in processes of its \
                     own, and goes uncertain when its lease runs out. Back: holdfast dev resume {name}"
                )
            }
            Request::Resume { .. } if runs => {
                self.agents[index].resume();
                format!(
                    "{name} goes on: it finds that its leases have run out, and reports what it knows. What went \
                     uncertain stays so until it is decided: holdfast reconcile list"
                )
            }
            Request::Kill { .. } if runs => {
                self.killed.insert(name.clone());
                self.agents[index].kill().await;
                format!(
                    "{name} is killed: `holdfast agents` shows it as silent at once. What it began goes on in processes of \
                     its own, and goes uncertain when its lease runs out, if nobody starts the agent before: \
                     holdfast dev start {name}"
                )
            }
            Request::Start { .. } if !runs => match self.restart(index, folder) {
                Ok(()) => {
                    format!("{name} is started again: it reads its journal, finds what still runs, and reports it")
                }
                Err(error) => return Some(Answer::Refused { detail: chain(error.as_ref()) }),
            },
            Request::Start { .. } => return Some(Answer::Refused { detail: format!("{name} runs already") }),
            Request::Pause { .. } | Request::Resume { .. } | Request::Kill { .. } => {
                return Some(Answer::Refused { detail: format!("{name} does not run: holdfast dev start {name}") });
            }
            Request::Cut { .. } | Request::Silence { .. } | Request::Heal { .. } => return None,
        };
        Some(Answer::Done { detail })
    }

    fn restart(&mut self, index: usize, folder: &Folder) -> anyhow::Result<()> {
        let name = self.agents[index].name().to_owned();
        let config = folder.join(&format!("{name}.toml"));
        self.agents[index] = start_agent(&name, &config, &folder.log(&name))?;
        self.killed.remove(&name);
        Ok(())
    }

    /// Whether it ended because somebody wanted it so.
    pub(super) fn was_killed(&self, name: &str) -> bool {
        self.killed.contains(name)
    }

    /// Whether a child of that name runs.
    pub(super) fn runs(&self, name: &str) -> bool {
        self.children().any(|child| child.name() == name && child.status().is_none())
    }

    /// The child of that name.
    pub(super) fn child(&self, name: &str) -> Option<&Child> {
        self.children().find(|child| child.name() == name)
    }

    /// Returns when one more child than those told already has ended: its name, and how.
    pub(super) async fn death(&self, told: &[String]) -> (String, Option<ExitStatus>) {
        let living: Vec<_> = self.children().filter(|child| !told.iter().any(|name| name == child.name())).collect();
        if living.is_empty() {
            return std::future::pending().await;
        }
        let ends = living.iter().map(|child| Box::pin(child.ended()));
        let (status, index, _) = select_all(ends).await;
        (living[index].name().to_owned(), status)
    }

    /// The last lines of every log, for a failure.
    pub(super) fn last_words(&self) -> Vec<(String, PathBuf, Vec<String>)> {
        const LINES: usize = 15;
        let words = |child: &Child| (child.name().to_owned(), child.log().to_owned(), child.last_words(LINES));
        self.children().map(words).collect()
    }

    /// Ends everything in order: agents can still say goodbye to the coordinator.
    pub(super) async fn stop(&self) {
        join_all(self.agents.iter().map(|agent| agent.stop(PATIENCE))).await;
        join_all(self.coordinator.iter().map(|coordinator| coordinator.stop(PATIENCE))).await;
    }

    /// Ends everything at once.
    pub(super) async fn kill(&self) {
        join_all(self.children().map(Child::kill)).await;
    }
}

fn start_agent(name: &str, config: &Path, log: &Path) -> Result<Child, child::Error> {
    Child::start(name, &["agent", "run", "--config", text(config)], log)
}

/// Looks again and again until there is something, the child ends, or [`START`] has passed.
async fn until<T, F>(child: &Child, what: &str, look: impl Fn() -> F) -> anyhow::Result<T>
where
    F: Future<Output = Option<T>>,
{
    let found = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(PACE).await;
        }
    };
    tokio::select! {
        found = found => Ok(found),
        status = child.ended() => {
            let status = status.map_or_else(|| "an unknown status".to_owned(), |status| status.to_string());
            bail!("{} ended with {status} before it had {what}", child.name())
        }
        () = tokio::time::sleep(START) => bail!("{} did not have {what} within {START:?}", child.name()),
    }
}

/// The token of an earlier dev in this folder, whose store knows it, else a new one.
async fn token(folder: &Folder, config: &Path) -> anyhow::Result<String> {
    let file = folder.join("token");
    if let Ok(token) = std::fs::read_to_string(&file) {
        return Ok(token.trim().to_owned());
    }
    let create = ["coordinator", "token", "create", "--config", text(config)];
    let whose = ["--name", "dev", "--role", "admin", "--ttl", "366d"];
    let token = child::output("coordinator token create", &[&create[..], &whose].concat()).await?.trim().to_owned();
    folder.write("token", &format!("{token}\n"))?;
    Ok(token)
}

fn address_file(folder: &Folder) -> PathBuf {
    folder.join("coordinator/address")
}

/// Where a service writes the address of its health and metrics.
fn ops_file(folder: &Folder, name: &str) -> PathBuf {
    folder.join(&format!("{name}.ops"))
}

/// Where each service tells of itself, by name.
pub(super) fn ops_addresses(folder: &Folder) -> Vec<(&'static str, String)> {
    let told = |name| Some((name, std::fs::read_to_string(ops_file(folder, name)).ok()?.trim().to_owned()));
    [COORDINATOR].into_iter().chain(AGENTS).filter_map(told).collect()
}

fn coordinator_config(folder: &Folder, ca: &Authority, port: u16) -> anyhow::Result<PathBuf> {
    let pair = ca.server("coordinator")?;
    let config = format!(
        "data_dir = {data}\n\n\
         [listen]\naddress = \"127.0.0.1:{port}\"\naddress_file = {address_file}\n\n\
         [tls]\ncert = {certificate}\nkey = {key}\nclient_ca = {ca}\n\n\
         [ops]\naddress = \"127.0.0.1:0\"\naddress_file = {ops}\n\n\
         # Short, so that a lost agent is noticed soon.\n\
         [heartbeat]\ninterval = \"1s\"\n\n[lease]\nmargin = \"1s\"\n",
        ops = quoted(&ops_file(folder, COORDINATOR)),
        data = quoted(&folder.join("coordinator")),
        address_file = quoted(&address_file(folder)),
        certificate = quoted(&pair.certificate),
        key = quoted(&pair.key),
        ca = quoted(ca.certificate()),
    );
    Ok(folder.write("coordinator.toml", &config)?)
}

fn agent_config(folder: &Folder, ca: &Authority, name: &str, proxy: &Proxy) -> anyhow::Result<PathBuf> {
    let Pair { certificate, key } = ca.agent(&AgentName::new(name)?)?;
    let config = format!(
        "state_dir = {state}\nlabels = {{ role = \"shop\", env = \"dev\" }}\n\n\
         [coordinator]\naddress = \"https://{address}\"\nca = {ca}\n\n\
         [identity]\ncertificate = {certificate}\nkey = {key}\n\n\
         [ops]\naddress = \"127.0.0.1:0\"\naddress_file = {ops}\n",
        ops = quoted(&ops_file(folder, name)),
        state = quoted(&folder.join(name)),
        address = proxy.address(),
        ca = quoted(ca.certificate()),
        certificate = quoted(&certificate),
        key = quoted(&key),
    );
    Ok(folder.write(&format!("{name}.toml"), &config)?)
}

/// As a TOML string. A basic string escapes like a JSON string; the one character that JSON leaves raw and TOML does not
/// is escaped too.
pub(super) fn quoted(path: &Path) -> String {
    serde_json::to_string(text(path)).expect("text serializes").replace('\u{7f}', "\\u007f")
}

/// Everything lies in the folder, whose path was checked to be text.
fn text(path: &Path) -> &str {
    path.to_str().expect("the folder's path is UTF-8")
}

#[cfg(test)]
mod tests {
    use holdfast_net::config;

    use super::super::folder::tests::Scratch;
    use super::*;

    #[test]
    fn the_coordinator_can_read_its_configuration() {
        let scratch = Scratch::new();
        let folder = Folder::open(Some(&scratch.0.join("here"))).expect("a folder");
        let ca = Authority::create(&folder.join("tls")).expect("a CA");
        let file = coordinator_config(&folder, &ca, 7443).expect("written");
        let config: holdfast_coordinator::config::Config = config::load(Some(&file), []).expect("valid");
        assert_eq!(config.listen.address.to_string(), "127.0.0.1:7443");
        assert_eq!(config.tls.client_ca.as_deref(), Some(ca.certificate()));
    }

    #[tokio::test]
    async fn an_agent_can_read_its_configuration_from_a_folder_of_any_name() {
        let scratch = Scratch::new();
        let folder = Folder::open(Some(&scratch.0.join("a \"b\" \\ ä\u{7f}"))).expect("a folder");
        let ca = Authority::create(&folder.join("tls")).expect("a CA");
        let proxy = Proxy::start("127.0.0.1:9".parse().expect("an address")).await.expect("a proxy");
        let file = agent_config(&folder, &ca, "web-01", &proxy).expect("written");
        let config: holdfast_agent::config::Config = config::load(Some(&file), []).expect("valid");
        assert_eq!(config.state_dir, folder.join("web-01"));
        assert_eq!(config.labels["role"], "shop");
        assert_eq!(config.coordinator.ca.as_deref(), Some(ca.certificate()));
        assert_eq!(config.coordinator.address.to_string(), proxy.address().to_string());
    }
}
