//! What a host allows, in words.

use std::path::Path;

use super::at;
use crate::config::{Config, CredentialSet, Resource};

/// Lines for people.
#[must_use]
pub fn words(config: &Config) -> Vec<String> {
    let policy = &config.policy;
    let mut lines = vec![
        format!("targets    {}", listed(policy.targets.iter(), "all")),
        format!("adapters   {}", listed(policy.adapters.iter(), "none")),
        format!("programs   {}", listed(policy.commands.iter(), "all")),
        format!("run as     {}", policy.run_as.as_deref().unwrap_or("the agent's own user")),
    ];
    lines.extend(config.external.iter().map(|(name, path)| format!("external   {name} is {}", path.display())));
    match config.resource.as_slice() {
        [] => lines.push("resources  all, within the above".to_owned()),
        declared => {
            lines.push("resources  only these:".to_owned());
            lines.extend(declared.iter().flat_map(resource));
        }
    }
    lines
}

fn resource(resource: &Resource) -> Vec<String> {
    let root = resource.root.as_deref().map(|root| format!(", at {} or below", Path::display(root)));
    let at = resource.at.as_deref().map(|listed| format!(", at {}", at::words(listed)));
    let user = resource.user.as_ref().map(|user| format!(", commands run as {user}"));
    let reader = resource.inspect_user.as_ref().map(|user| format!(", read as {user}"));
    let extras: String = [root, at, user, reader].into_iter().flatten().collect();
    let mut lines = vec![format!("  {} of {}, by {}{extras}", resource.name, resource.target, resource.adapter)];
    let sets = resource.credentials.named();
    lines.extend(sets.iter().filter_map(|(name, set)| Some(format!("    credentials to {name}: {}", sources(set)?))));
    lines
}

/// Names alone: where a secret lies is no news to who can read this file.
fn sources(set: &CredentialSet) -> Option<String> {
    let mut names: Vec<String> = set.files.keys().cloned().collect();
    names.extend(set.environment_file.as_ref().map(|path| format!("variables of {}", path.display())));
    names.extend(set.systemd.as_ref().map(|name| format!("{name} of systemd")));
    (!names.is_empty()).then(|| names.join(", "))
}

fn listed<'a>(names: impl Iterator<Item = &'a String>, none: &str) -> String {
    let names: Vec<&str> = names.map(String::as_str).collect();
    if names.is_empty() { none.to_owned() } else { names.join(", ") }
}
