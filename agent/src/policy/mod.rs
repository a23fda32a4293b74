//! What this host allows. Decided here, from the host's own file and nothing else.
//!
//! | asked | allowed | else refused by |
//! | --- | --- | --- |
//! | anything of a target | `targets` is empty, or one of it fits | `policy.targets` |
//! | anything by an adapter | `adapters` lists it | `policy.adapters` |
//! | anything of a resource | no `[[resource]]` is declared, or the first that is said of it names its adapter | `resource` |
//! | a change of no resource | no `[[resource]]` is declared | `resource` |
//! | a release folder | its rule names no `root`, or the folder is that one or below | `resource.root` |
//! | a repository, an API, a database | its rule names no `at`, or it is one of those or below | `resource.at` |
//! | a repository or an API on the network | its rule has no credentials, or names an `at` | `resource.at` |
//! | a program | `commands` is empty, or one of it fits the file that it comes to | `policy.commands` |
//! | a program that is not there yet | so far: asked again when it is to run | `policy.commands` |
//! | an external adapter | `external` names its program | `external` |
//! | a program | the user that it is to run as is one of this host | `policy.run_as`, `resource.user` |
//!
//! Asked at the offer, and again before each launch, look and raise. A refusal is told to the coordinator, logged, and kept in
//! a file of its own ([`Refusals`]).

mod at;
mod between;
mod check;
mod host;
mod place;
mod program;
mod refusals;
mod shape;
#[cfg(test)]
mod tests;
mod user;
mod words;

use std::path::PathBuf;

use holdfast_common::adapter::Adapter;
use holdfast_common::id::TargetName;
use holdfast_common::spec::{ResourceSpec, StepEffect};

use crate::config::{Place, Policy, Resource, fits, lies_below};

pub use at::Unplaced;
pub use check::{Findings, Occasion, check, unguarded};
pub(crate) use host::of_user;
pub use host::{Grant, Host};
pub use refusals::{Refusals, Refused};
pub(crate) use shape::{also_taken, leads_elsewhere};
pub use user::User;
pub use words::words;

/// What somebody wants to do here.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// To which target.
    pub target: &'a TargetName,
    /// By whom.
    pub adapter: Adapter,
    /// Whether it changes anything.
    pub effect: StepEffect,
    /// To which resource.
    pub resource: Option<&'a ResourceSpec>,
    /// The folder of a release, after every link.
    pub root: Option<PathBuf>,
    /// Where the resource's adapter would go.
    pub places: Result<Vec<Place>, Unplaced>,
    /// What would run.
    pub programs: Vec<Program>,
}

/// What an argument vector would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// This file, which no link leads on from.
    At(PathBuf),
    /// Nothing of that name is there.
    Missing(String),
}

/// What the host's file says. Its paths are as they are after every link.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a, 'b> {
    /// `[policy]`.
    pub policy: &'a Policy,
    /// Each `[[resource]]`.
    pub resources: &'a [Resource],
    /// `policy.commands`.
    pub commands: &'b [String],
}

/// Which rule refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The target.
    Targets,
    /// The adapter.
    Adapters,
    /// The program.
    Commands,
    /// The resource, or its adapter.
    Resource,
    /// The folder of a release.
    Root,
    /// The place of a repository, an API or a database.
    At,
    /// The user that commands run as.
    RunAs,
    /// The user that a resource's commands run as.
    ResourceUser,
    /// The user that a resource's inspection command runs as.
    InspectUser,
    /// The program of an external adapter.
    External,
}

impl Rule {
    /// As the file names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Rule::Targets => "policy.targets",
            Rule::Adapters => "policy.adapters",
            Rule::Commands => "policy.commands",
            Rule::Resource => "resource",
            Rule::Root => "resource.root",
            Rule::At => "resource.at",
            Rule::RunAs => "policy.run_as",
            Rule::ResourceUser => "resource.user",
            Rule::InspectUser => "resource.inspect_user",
            Rule::External => "external",
        }
    }
}

/// This host does not allow it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("refused by {} of this host: {why}", .rule.name())]
pub struct Refusal {
    /// By which rule.
    pub rule: Rule,
    /// What is not allowed, for people.
    pub why: String,
}

impl Refusal {
    pub(crate) fn by(rule: Rule, why: String) -> Self {
        Self { rule, why }
    }
}

/// Decides. What is allowed comes with what its `[[resource]]` says, where one is declared.
pub fn judge<'a>(rules: Rules<'a, '_>, ask: &Ask<'_>) -> Result<Option<&'a Resource>, Refusal> {
    target(rules.policy, ask)?;
    adapter(rules.policy, ask)?;
    let rule = resource(rules.resources, ask)?;
    root(rule, ask)?;
    if let (Some(rule), Some(resource)) = (rule, ask.resource) {
        at::judge(rule, resource, &ask.places)?;
    }
    ask.programs.iter().try_for_each(|program| command(rules.commands, program))?;
    Ok(rule)
}

fn target(policy: &Policy, ask: &Ask<'_>) -> Result<(), Refusal> {
    if policy.allows_target(ask.target.as_str()) {
        return Ok(());
    }
    Err(Refusal::by(Rule::Targets, format!("target {} is not in it", ask.target)))
}

fn adapter(policy: &Policy, ask: &Ask<'_>) -> Result<(), Refusal> {
    let name = ask.adapter.name();
    if policy.adapters.contains(name) {
        return Ok(());
    }
    Err(Refusal::by(Rule::Adapters, format!("adapter {name} is not in it")))
}

fn resource<'a>(declared: &'a [Resource], ask: &Ask<'_>) -> Result<Option<&'a Resource>, Refusal> {
    let refused = |why| Err(Refusal::by(Rule::Resource, why));
    let Some(asked) = ask.resource else {
        return match ask.effect {
            StepEffect::Mutates if !declared.is_empty() => {
                refused("a change of no resource is asked for, and resources are declared".to_owned())
            }
            StepEffect::Mutates | StepEffect::None => Ok(None),
        };
    };
    let found = declared.iter().find(|rule| rule.is_of(ask.target.as_str(), asked.name.as_str()));
    match found {
        None if declared.is_empty() => Ok(None),
        None => refused(format!("resource {} of {} is not declared", asked.name, ask.target)),
        Some(rule) if rule.adapter == asked.adapter.adapter().name() => Ok(Some(rule)),
        Some(rule) => {
            let (name, target, wanted) = (&asked.name, ask.target, asked.adapter.adapter().name());
            refused(format!("resource {name} of {target} is for adapter {}, not {wanted}", rule.adapter))
        }
    }
}

fn root(rule: Option<&Resource>, ask: &Ask<'_>) -> Result<(), Refusal> {
    let (Some(allowed), Some(asked)) = (rule.and_then(|rule| rule.root.as_deref()), &ask.root) else { return Ok(()) };
    if lies_below(asked, allowed) {
        return Ok(());
    }
    Err(Refusal::by(Rule::Root, format!("folder {} is not {} or below", asked.display(), allowed.display())))
}

fn command(allowed: &[String], program: &Program) -> Result<(), Refusal> {
    let Program::At(path) = program else { return Ok(()) };
    let text = path.to_string_lossy();
    if allowed.is_empty() || allowed.iter().any(|pattern| fits(pattern, &text)) {
        return Ok(());
    }
    Err(Refusal::by(Rule::Commands, format!("program {text} is not in it")))
}
