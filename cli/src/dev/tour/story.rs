//! What the chapters share: the ways to ask, to watch, and to hold what was seen against what must be.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use holdfast_proto::v1;

use super::super::api::{Api, Events, Refused};
use super::super::folder::Folder;
use super::super::lines::Lines;
use super::super::narrator::Narrator;
use super::super::services::quoted;
use super::super::site::{self, Archive, Version};
use super::words;
use crate::output::Mark;

pub(super) const TARGET: &str = "shop@dev";
pub(super) const RESOURCE: &str = "site";
/// The mutating step.
pub(super) const SWITCH: &str = "switch";
const DEPLOYMENT_FILE: &str = include_str!("shop.deploy.toml");

/// Longest time for anything that the tour waits for.
pub(super) const PATIENCE: Duration = Duration::from_secs(45);
const PACE: Duration = Duration::from_millis(50);

/// Something that must be so and was not.
#[derive(Debug, thiserror::Error)]
#[error("expected {expected}, but saw {seen}")]
pub(in crate::dev) struct Untrue {
    pub(in crate::dev) expected: String,
    pub(in crate::dev) seen: String,
}

pub(super) fn untrue(expected: impl Display, seen: impl Display) -> anyhow::Error {
    Untrue { expected: expected.to_string(), seen: seen.to_string() }.into()
}

/// The packed sites and the files to deploy them with.
#[derive(Debug)]
pub(super) struct Sites {
    archives: BTreeMap<&'static str, Archive>,
    pub(super) target_file: String,
    served: PathBuf,
}

impl Sites {
    /// Packs both versions into the folder and writes both files beside them.
    pub(super) fn pack(folder: &Folder) -> anyhow::Result<Self> {
        let mut archives = BTreeMap::new();
        for version in Version::ALL {
            archives.insert(version.revision(), site::write(version, folder.path())?);
        }
        let target_file = target_file(folder);
        folder.write("shop.target.toml", &target_file)?;
        folder.write("shop.deploy.toml", DEPLOYMENT_FILE)?;
        Ok(Self { archives, target_file, served: folder.shop().join("current") })
    }

    fn archive(&self, version: Version) -> &Archive {
        self.archives.get(version.revision()).expect("every version was packed")
    }
}

fn target_file(folder: &Folder) -> String {
    format!(
        "# The shop that holdfast dev runs: both agents see the folder, so either can deploy, inspect and fence it.\n\
         schema = \"holdfast/v1\"\nname   = \"{TARGET}\"\nagents = {{ role = \"shop\", env = \"dev\" }}\n\n\
         [[resource]]\nname    = \"{RESOURCE}\"\nadapter = \"release\"\nreach   = \"shared\"\n\
         with    = {{ root = {root} }}\n",
        root = quoted(&folder.shop()),
    )
}

/// The tour under way.
pub(super) struct Story<'a> {
    pub(super) api: &'a Api,
    pub(super) lines: &'a Lines,
    pub(super) sites: &'a Sites,
    pub(super) narrator: &'a mut Narrator,
    /// The last event that was told, by deployment.
    told: BTreeMap<String, u64>,
}

impl<'a> Story<'a> {
    pub(super) fn new(api: &'a Api, lines: &'a Lines, sites: &'a Sites, narrator: &'a mut Narrator) -> Self {
        Self { api, lines, sites, narrator, told: BTreeMap::new() }
    }

    /// Goes on where the statement is true, and tells it.
    pub(super) fn check(&mut self, is_true: bool, statement: impl Display, seen: impl Display) -> anyhow::Result<()> {
        if !is_true {
            return Err(untrue(statement, seen));
        }
        Ok(self.narrator.is_true(&statement.to_string())?)
    }

    /// Asks for a version of the site and gives the deployment's label.
    pub(super) async fn submit(&mut self, version: Version) -> anyhow::Result<v1::DeploymentSummary> {
        let archive = self.sites.archive(version);
        let inputs = [
            ("archive", archive.path.to_str().expect("the folder's path is UTF-8")),
            ("sha256", archive.sha256.as_str()),
            ("revision", version.revision()),
            ("served", self.sites.served.to_str().expect("the folder's path is UTF-8")),
        ];
        let deployment = self.api.submit(DEPLOYMENT_FILE, &inputs).await?;
        deployment.summary.ok_or_else(|| untrue("a deployment with a summary", "none"))
    }

    /// Tells the deployment's events as they come, until one fits. One that ends the deployment otherwise, or silence for
    /// too long, is not what was expected.
    pub(super) async fn until(
        &mut self,
        label: &str,
        expected: impl Display,
        fits: impl Fn(&v1::Event) -> bool,
    ) -> anyhow::Result<v1::Event> {
        let watched = tokio::time::timeout(PATIENCE, self.watch(label, &fits)).await;
        match watched {
            Ok(Ok(Some(event))) => Ok(event),
            Ok(Err(error)) => Err(error),
            Ok(Ok(None)) | Err(_) => {
                let deployment = self.api.deployment(label).await?;
                let summary = summary(&deployment)?;
                let state = words::deployment(summary.state());
                Err(untrue(expected, format!("{label} {state}: {}", summary.because)))
            }
        }
    }

    async fn watch(&mut self, label: &str, fits: &impl Fn(&v1::Event) -> bool) -> anyhow::Result<Option<v1::Event>> {
        let mut events = self.follow(label).await?;
        while let Some(event) = events.next().await? {
            self.told.insert(label.to_owned(), event.sequence);
            self.narrator.event(&event)?;
            if fits(&event) {
                return Ok(Some(event));
            }
            if is_terminal(event.state_after()) {
                break;
            }
        }
        Ok(None)
    }

    /// Leaves out the events so far.
    pub(super) async fn skip(&mut self, label: &str) -> anyhow::Result<()> {
        let sequence = self.api.deployment(label).await?.event_sequence;
        self.told.insert(label.to_owned(), sequence);
        Ok(())
    }

    async fn follow(&self, label: &str) -> Result<Events, Refused> {
        let from = self.told.get(label).map_or(1, |told| told + 1);
        self.api.events(label, from, true).await
    }

    /// Tells events until the deployment is in that state, and says so.
    pub(super) async fn until_state(
        &mut self,
        label: &str,
        state: v1::DeploymentState,
    ) -> anyhow::Result<v1::Deployment> {
        let verb = if state == v1::DeploymentState::Succeeded { "has" } else { "is" };
        let statement = format!("{label} {verb} {}", words::deployment(state));
        self.until(label, &statement, |event| event.state_after() == state).await?;
        let deployment = self.api.deployment(label).await?;
        let summary = summary(&deployment)?;
        self.check(summary.state() == state, &statement, words::deployment(summary.state()))?;
        self.narrator.detail("because", &summary.because)?;
        Ok(deployment)
    }

    /// Looks again and again until there is something.
    pub(super) async fn look<T>(
        &self,
        expected: impl Display,
        look: impl AsyncFn() -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let found = async {
            loop {
                if let Some(found) = look().await? {
                    return Ok(found);
                }
                tokio::time::sleep(PACE).await;
            }
        };
        match tokio::time::timeout(PATIENCE, found).await {
            Ok(found) => found,
            Err(_) => Err(untrue(expected, format!("nothing like it within {PATIENCE:?}"))),
        }
    }

    /// Reads the served page: the one thing that is not read through the API.
    pub(super) fn page(&self) -> Vec<u8> {
        std::fs::read(self.page_path()).unwrap_or_default()
    }

    pub(super) fn page_path(&self) -> PathBuf {
        self.sites.served.join("index.html")
    }

    /// Holds the served page against a version's, and says where it was read.
    pub(super) fn check_page(&mut self, version: Version) -> anyhow::Result<()> {
        let (page, path) = (self.page(), self.page_path());
        let shown = String::from_utf8_lossy(&page).lines().find(|line| line.contains("Revision")).map(str::to_owned);
        let shown = shown.unwrap_or_else(|| "no such page".to_owned());
        self.narrator.fact(Some(Mark::Read), None, &format!("{} (from the file system)", shown.trim()))?;
        let statement = format!("{} is the page of {}", path.display(), version.revision());
        self.check(page == version.index(), statement, shown)
    }
}

pub(super) fn is_terminal(state: v1::DeploymentState) -> bool {
    match state {
        v1::DeploymentState::Succeeded | v1::DeploymentState::Failed | v1::DeploymentState::Cancelled => true,
        v1::DeploymentState::Unspecified
        | v1::DeploymentState::Queued
        | v1::DeploymentState::Active
        | v1::DeploymentState::Uncertain
        | v1::DeploymentState::Held => false,
    }
}

pub(super) fn summary(deployment: &v1::Deployment) -> anyhow::Result<&v1::DeploymentSummary> {
    deployment.summary.as_ref().ok_or_else(|| untrue("a deployment with a summary", "none"))
}

pub(super) fn last_attempt(deployment: &v1::Deployment) -> anyhow::Result<&v1::Attempt> {
    deployment.attempts.last().ok_or_else(|| untrue("an attempt", "none"))
}

pub(super) fn step_of<'a>(attempt: &'a v1::Attempt, name: &str) -> anyhow::Result<&'a v1::StepRun> {
    let step = attempt.steps.iter().find(|step| step.name == name);
    step.ok_or_else(|| untrue(format!("a step {name}"), "none"))
}

/// The step that an event names, if it names one.
pub(super) fn step_named(event: &v1::Event) -> Option<String> {
    let body: serde_json::Value = serde_json::from_str(&event.body_json).ok()?;
    body.get("step")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use holdfast_common::file::{DeploymentFile, TargetFile};

    use super::*;

    #[test]
    fn both_files_are_valid_and_belong_together() {
        let scratch = super::super::super::folder::tests::Scratch::new();
        let folder = Folder::open(Some(&scratch.0.join("a \"b\" ä"))).expect("a folder");
        let sites = Sites::pack(&folder).expect("packed");
        let target = TargetFile::parse(&sites.target_file).expect("valid");
        let archive = sites.archive(Version::V2);
        let served = sites.served.display().to_string();
        let inputs = BTreeMap::from([
            ("archive".to_owned(), archive.path.display().to_string()),
            ("sha256".to_owned(), archive.sha256.clone()),
            ("revision".to_owned(), "v2".to_owned()),
            ("served".to_owned(), served),
        ]);
        let file = DeploymentFile::parse(DEPLOYMENT_FILE).expect("valid");
        let spec = file.resolve(&inputs, None, &target).expect("fits");
        let steps: Vec<_> = spec.steps.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(steps, ["look", SWITCH, "smoke"]);
        assert_eq!(target.resources[0].name.as_str(), RESOURCE);
    }
}
