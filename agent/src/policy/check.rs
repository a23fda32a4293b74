//! What is wrong with a host's policy before anything is asked of it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use holdfast_common::adapter::Adapter;

use super::{User, between};
use crate::config::{Config, CredentialSet, Place, Resource};
use crate::enrol::Folder;
use crate::secrets::{self, SHORTEST};

/// What was found. Errors keep the agent from starting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Each a sentence.
    pub errors: Vec<String>,
    /// Each a sentence.
    pub warnings: Vec<String>,
}

/// When a configuration is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// By somebody, outside of the service: what systemd hands to the service is not there.
    ByHand,
    /// As the service starts.
    Start,
}

/// Looks at the policy of a configuration, at its users, and at the files of its credentials.
#[must_use]
pub fn check(config: &Config, occasion: Occasion) -> Findings {
    let mut found = Findings::default();
    let adapters = Adapter::ALL.map(Adapter::name);
    for name in config.policy.adapters.iter().filter(|name| !adapters.contains(&name.as_str())) {
        found.errors.push(format!("policy.adapters: {name} is no adapter; there are {}", adapters.join(", ")));
    }
    for pattern in config.policy.commands.iter().filter(|pattern| !pattern.starts_with('/')) {
        found.errors.push(format!("policy.commands: {pattern} is no absolute path"));
    }
    for (name, program) in &config.external {
        found.program(&format!("external.{name}"), program);
    }
    if let Some(name) = &config.policy.run_as {
        found.user("policy.run_as", name);
    }
    for resource in &config.resource {
        found.resource(resource, occasion);
    }
    found.errors.extend(between::never_counting(&config.resource));
    found.warnings.extend(between::releases_in_repositories(&config.resource));
    found.way_to_state(config);
    if rustix::process::geteuid().is_root() && runs_commands_as_agent(config) {
        found.warnings.push(
            "commands run as root: name another user in policy.run_as, or in each resource of adapter command"
                .to_owned(),
        );
    }
    found
}

/// Whoever can write the configuration, or the folder of the identity, decides what this host allows and who it is. Each finding is
/// a sentence, and an error.
#[must_use]
pub fn unguarded(file: Option<&Path>, config: &Config) -> Vec<String> {
    let folder = config.certificates().ok().and_then(|found| found.folder);
    let places = [("the configuration", file), ("the identity's folder", folder.as_ref().map(Folder::path))];
    let there = places.into_iter().filter_map(|(what, path)| Some((what, path?, std::fs::metadata(path?).ok()?)));
    there
        .filter_map(|(what, path, found)| {
            let why = others_can_write(&found)?;
            Some(format!("{what}: {} {why}", path.display()))
        })
        .collect()
}

fn others_can_write(found: &Metadata) -> Option<String> {
    let own = rustix::process::geteuid().as_raw();
    match found.mode() & 0o7777 {
        _ if found.uid() != own && found.uid() != 0 => {
            Some(format!("belongs to user {}, not to the agent's own or root (chown)", found.uid()))
        }
        mode if mode & 0o022 != 0 => {
            Some(format!("has mode {mode:04o}: group and others must not be able to write it (chmod go-w)"))
        }
        _ => None,
    }
}

fn runs_commands_as_agent(config: &Config) -> bool {
    let commands: Vec<&Resource> =
        config.resource.iter().filter(|one| one.adapter == Adapter::Command.name()).collect();
    let each_has_one = !config.resource.is_empty() && commands.iter().all(|resource| resource.user.is_some());
    config.policy.adapters.contains(Adapter::Command.name()) && config.policy.run_as.is_none() && !each_has_one
}

/// Whether a file may be the program of an external adapter: whoever can write it is given its resource's credentials. Looked
/// at as the agent starts, and again before each use.
pub(super) fn fit_program(path: &Path) -> Result<(), String> {
    let shown = path.display();
    if !path.is_absolute() {
        return Err(format!("{shown} is no absolute path"));
    }
    match std::fs::metadata(path) {
        Err(error) => Err(format!("{shown} can't be read: {error}")),
        Ok(found) if !found.is_file() || found.mode() & 0o111 == 0 => Err(format!("{shown} is no program")),
        Ok(found) if found.mode() & 0o022 != 0 => Err(format!(
            "{shown} can be written by group or others, who would be given the resource's credentials (chmod go-w)"
        )),
        Ok(_) => Ok(()),
    }
}

impl Findings {
    fn resource(&mut self, resource: &Resource, occasion: Occasion) {
        let place = format!("resource {} of {}", resource.name, resource.target);
        let is_command = resource.adapter == Adapter::Command.name();
        let is_release = resource.adapter == Adapter::Release.name();
        let changing = Adapter::ALL.into_iter().filter(|adapter| *adapter != Adapter::Check).map(Adapter::name);
        if !changing.clone().any(|name| name == resource.adapter) {
            let known = changing.collect::<Vec<_>>().join(", ");
            self.errors.push(format!("{place}: adapter {} changes nothing; there are {known}", resource.adapter));
        }
        match &resource.root {
            Some(_) if !is_release => self.errors.push(format!("{place}: only a release has a root")),
            Some(root) if !root.is_absolute() => {
                self.errors.push(format!("{place}: root {} is no absolute path", root.display()));
            }
            Some(root) if root.components().any(|part| part == Component::ParentDir) => {
                self.errors.push(format!("{place}: root {} goes up by \"..\": write where that is", root.display()));
            }
            Some(_) | None => {}
        }
        self.at(&place, resource);
        for (key, name) in [("user", &resource.user), ("inspect_user", &resource.inspect_user)] {
            match name {
                Some(_) if !is_command => {
                    self.errors
                        .push(format!("{place}: {key} is for commands; a release is put in place by the agent itself"));
                }
                Some(name) => self.user(&format!("{place}: {key}"), name),
                None => {}
            }
        }
        for (name, set) in resource.credentials.named() {
            self.credentials(&format!("{place}: credentials.{name}"), set.clone(), occasion);
        }
    }

    /// An unknown adapter is told as that.
    fn at(&mut self, place: &str, resource: &Resource) {
        let named = |adapter: &Adapter| adapter.name() == resource.adapter;
        let Some(adapter) = Adapter::ALL.into_iter().find(named) else { return };
        match (adapter, resource.at.as_deref()) {
            (Adapter::Git, None) => {
                self.unlisted(place, resource);
                self.warnings
                    .push(format!("{place}: no folder of this host is its repository without an `at` that lists it"));
            }
            (Adapter::Http, None) => self.unlisted(place, resource),
            (Adapter::Postgres | Adapter::Release | Adapter::Command | Adapter::External | Adapter::Check, None) => {}
            (Adapter::Git | Adapter::Http | Adapter::Postgres, Some(listed)) => self.listed(place, adapter, listed),
            (Adapter::Release, Some(_)) => self.errors.push(format!("{place}: a release has a root, not an `at`")),
            (Adapter::Command | Adapter::External | Adapter::Check, Some(_)) => self.errors.push(format!(
                "{place}: where adapter {} goes can't be told from a target; `at` is for git, http and postgres",
                adapter.name()
            )),
        }
    }

    fn unlisted(&mut self, place: &str, resource: &Resource) {
        if !resource.credentials.is_empty() {
            self.warnings.push(format!(
                "{place}: it has credentials and no `at`, so nothing is asked that is on the network: list where they may go"
            ));
        }
    }

    fn listed(&mut self, place: &str, adapter: Adapter, listed: &[Place]) {
        if listed.is_empty() {
            self.errors.push(format!("{place}: at lists nothing, so nothing is allowed"));
        }
        for odd in listed.iter().filter(|one| !one.is_for(adapter)) {
            self.errors.push(format!("{place}: at {odd} is nothing that adapter {} reaches", adapter.name()));
        }
    }

    /// Commands of another user run below the state folder.
    fn way_to_state(&mut self, config: &Config) {
        let users = config.resource.iter().flat_map(|resource| [&resource.user, &resource.inspect_user]);
        let named = users.chain([&config.policy.run_as]).flatten().filter_map(|name| User::find(name).ok());
        if named.into_iter().all(|user| user.is_own()) {
            return;
        }
        for folder in config.state_dir.ancestors().skip(1) {
            if std::fs::metadata(folder).is_ok_and(|found| found.mode() & 0o001 == 0) {
                let text = format!("commands of another user can't pass {} (chmod o+x)", folder.display());
                self.warnings.push(text);
            }
        }
    }

    fn program(&mut self, place: &str, path: &Path) {
        if let Err(why) = fit_program(path) {
            self.errors.push(format!("{place}: {why}"));
        }
    }

    fn user(&mut self, place: &str, name: &str) {
        match User::find(name) {
            Err(why) => self.errors.push(format!("{place}: {why}")),
            Ok(user) if !user.is_own() && !rustix::process::geteuid().is_root() => self.errors.push(format!(
                "{place}: this agent does not run as root, so it can't run commands as {name}; leave it out, or run the agent as root"
            )),
            Ok(_) => {}
        }
    }

    fn credentials(&mut self, place: &str, mut set: CredentialSet, occasion: Occasion) {
        if occasion == Occasion::ByHand
            && std::env::var_os("CREDENTIALS_DIRECTORY").is_none()
            && let Some(name) = set.systemd.take()
        {
            self.warnings.push(format!("{place}: {name} comes from systemd, so it was not looked at"));
        }
        let sources = match secrets::sources(&set) {
            Ok(sources) => sources,
            Err(why) => return self.errors.push(format!("{place}: {why}")),
        };
        for path in sources.paths() {
            if let Err(why) = is_private(path) {
                self.errors.push(format!("{place}: {} {why}", path.display()));
            }
        }
        match sources.read() {
            Err(error) => self.errors.push(format!("{place}: {error}")),
            Ok(secrets) => {
                for name in secrets.names_of_short() {
                    let text =
                        format!("{place}: {name} has fewer than {SHORTEST} bytes: it is not redacted in outputs");
                    self.warnings.push(text);
                }
            }
        }
    }
}

/// A secret that others can read is none.
fn is_private(path: &Path) -> Result<(), String> {
    let found = std::fs::metadata(path).map_err(|error| format!("can't be read: {error}"))?;
    let mode = found.mode() & 0o7777;
    let own = rustix::process::geteuid().as_raw();
    if mode & 0o077 != 0 {
        return Err(format!("has mode {mode:04o}: group and others must have no right to it (chmod 600)"));
    }
    if found.uid() != own && found.uid() != 0 {
        return Err(format!("belongs to user {}, not to the agent's own or root", found.uid()));
    }
    Ok(())
}
