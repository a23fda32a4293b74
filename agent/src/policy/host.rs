//! The policy at work: what an offer, a step or a question asks for, and what comes with the permission.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use holdfast_agent_core::work::Assignment;
use holdfast_common::code::Code;
use holdfast_common::id::{DeploymentId, TargetName};
use holdfast_common::spec::{Probe, ResourceAdapter, ResourceSpec, StepBody, StepEffect, StepSpec};
use holdfast_common::system::System;

use super::check::fit_program;
use super::refusals::Refused;
use super::{Ask, Program, Refusal, Refusals, Rule, Rules, Unplaced, User, at, judge, place, program};
use crate::boottime::wall_now;
use crate::config::{Config, CredentialSets, Policy, Resource};
use crate::session::{Inquiry, Question};

/// What this host allows, and where it keeps what it refused.
#[derive(Clone, Debug)]
pub struct Host {
    policy: Policy,
    resources: Vec<Resource>,
    external: BTreeMap<String, PathBuf>,
    refusals: Refusals,
    search: String,
}

/// What comes with a permission.
#[derive(Clone, Debug, Default)]
pub struct Grant {
    /// Who commands run as; `None`: as the agent.
    pub user: Option<User>,
    /// The very file that is to run, where the policy looked at one.
    pub program: Option<PathBuf>,
    /// The credentials of the resource.
    pub credentials: CredentialSets,
    /// Whether this host's own file says where the resource may be.
    pub is_placed: bool,
}

impl Host {
    /// As configured.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self {
            policy: config.policy.clone(),
            resources: config.resource.iter().map(with_real_paths).collect(),
            external: config.external.clone(),
            refusals: Refusals::below(&config.state_dir),
            search: crate::adapters::command::search_path(|name| std::env::var(name).ok()),
        }
    }

    /// The credentials of every resource.
    pub fn credentials(&self) -> impl Iterator<Item = &CredentialSets> {
        self.resources.iter().map(|resource| &resource.credentials)
    }

    /// Whether an offer is allowed, as far as it can be seen now. A refusal is logged and kept.
    pub fn offer(&self, assignment: &Assignment) -> Result<(), Refusal> {
        let judged = assignment.steps.iter().try_for_each(|step| {
            self.grant(&assignment.target, resource_of(assignment, step), step, Path::new("/"), Asked::Offer).map(drop)
        });
        judged.map_err(|refusal| self.kept(&assignment.target, assignment.claim.deployment, "offer", refusal))
    }

    /// Whether a step may begin, in that folder.
    pub fn step(&self, assignment: &Assignment, step: &StepSpec, folder: &Path) -> Result<Grant, Refusal> {
        self.grant(&assignment.target, resource_of(assignment, step), step, folder, Asked::Run)
            .map_err(|refusal| self.kept(&assignment.target, assignment.claim.deployment, "launch", refusal))
    }

    /// Whether the archive of a step may be brought here.
    pub fn archive(&self, assignment: &Assignment, step: &StepSpec) -> Result<(), Refusal> {
        self.grant(&assignment.target, resource_of(assignment, step), step, Path::new("/"), Asked::Run)
            .map(drop)
            .map_err(|refusal| self.kept(&assignment.target, assignment.claim.deployment, "archive", refusal))
    }

    /// Whether the resource of a step may be read.
    pub fn look(&self, assignment: &Assignment, resource: &ResourceSpec) -> Result<Grant, Refusal> {
        self.read(&assignment.target, resource)
            .map_err(|refusal| self.kept(&assignment.target, assignment.claim.deployment, "inspect", refusal))
    }

    /// Whether a question may be answered.
    pub fn inquiry(&self, inquiry: &Inquiry) -> Result<Grant, Refusal> {
        let asked = match inquiry.question {
            Question::Inspect => "inspect",
            Question::FenceOff(_) => "fence-off",
        };
        self.read(&inquiry.target, &inquiry.resource)
            .map_err(|refusal| self.kept(&inquiry.target, inquiry.operation.deployment, asked, refusal))
    }

    /// Whether somebody at this host may read a resource. Nobody else asked, so nothing is kept.
    pub(crate) fn read(&self, target: &TargetName, resource: &ResourceSpec) -> Result<Grant, Refusal> {
        let (adapter, argv) = (resource.adapter.adapter(), inspection_of(resource));
        let program = argv.and_then(|argv| self.program(argv, Path::new("/")));
        let ask = Ask {
            target,
            adapter,
            effect: StepEffect::None,
            resource: Some(resource),
            root: root_of(resource),
            places: at::places(resource),
            programs: program.iter().cloned().collect(),
        };
        let rule = self.judge(&ask)?;
        let user = match rule.and_then(|rule| rule.inspect_user.as_deref()) {
            Some(name) => Some(self.user_named(Rule::InspectUser, name)?),
            None => self.user(rule)?,
        };
        let granted = self.granted(rule, if argv.is_some() { user } else { None }, program)?;
        self.with_external(granted, Some(resource))
    }

    fn grant(
        &self,
        target: &TargetName,
        resource: Option<&ResourceSpec>,
        step: &StepSpec,
        folder: &Path,
        asked: Asked,
    ) -> Result<Grant, Refusal> {
        let program = argv_of(&step.body).and_then(|argv| self.program(argv, folder));
        let inspect = resource.and_then(inspection_of);
        let inspect = inspect.and_then(|argv| self.program(argv, Path::new("/")));
        let ask = Ask {
            target,
            adapter: step.body.adapter(),
            effect: step.effect,
            resource,
            root: resource.and_then(root_of),
            places: resource.map_or(Err(Unplaced::Unsaid(step.body.adapter().name())), at::places),
            programs: program.iter().chain(&inspect).cloned().collect(),
        };
        let rule = self.judge(&ask)?;
        let user = match &step.body {
            StepBody::Command { .. } | StepBody::Check(_) => self.user(rule)?,
            StepBody::Release { .. } | StepBody::Restore | StepBody::System(_) => None,
        };
        let program = match asked {
            Asked::Offer => None,
            Asked::Run => program,
        };
        let granted = self.granted(rule, user, program)?;
        match step.body {
            StepBody::System(_) => self.with_external(granted, resource),
            StepBody::Command { .. } | StepBody::Release { .. } | StepBody::Restore | StepBody::Check(_) => Ok(granted),
        }
    }

    /// The program that an external adapter is on this host.
    fn with_external(&self, grant: Grant, resource: Option<&ResourceSpec>) -> Result<Grant, Refusal> {
        let Some(System::External(external)) = resource.and_then(|resource| resource.adapter.system()) else {
            return Ok(grant);
        };
        let Some(program) = self.external.get(&external.program) else {
            return Err(Refusal::by(Rule::External, format!("program {:?} is not in it", external.program)));
        };
        fit_program(program).map_err(|why| Refusal::by(Rule::External, why))?;
        Ok(Grant { program: Some(program.clone()), ..grant })
    }

    fn granted(&self, rule: Option<&Resource>, user: Option<User>, program: Option<Program>) -> Result<Grant, Refusal> {
        let credentials = rule.map(|rule| rule.credentials.clone()).unwrap_or_default();
        let program = match program {
            Some(Program::At(path)) => Some(path),
            Some(Program::Missing(name)) => {
                return Err(Refusal::by(Rule::Commands, format!("program {name:?} is not there, so it is not in it")));
            }
            None => None,
        };
        Ok(Grant { user, program, credentials, is_placed: rule.is_some_and(|rule| rule.at.is_some()) })
    }

    /// What an argument vector would run, where the policy asks for that.
    fn program(&self, argv: &[String], folder: &Path) -> Option<Program> {
        let name = argv.first().filter(|_| !self.policy.commands.is_empty())?;
        Some(program::find(name, &self.search, folder))
    }

    fn judge(&self, ask: &Ask<'_>) -> Result<Option<&Resource>, Refusal> {
        let commands: Vec<String> = self.policy.commands.iter().map(|pattern| place::real_pattern(pattern)).collect();
        judge(Rules { policy: &self.policy, resources: &self.resources, commands: &commands }, ask)
    }

    fn user(&self, rule: Option<&Resource>) -> Result<Option<User>, Refusal> {
        match (rule.and_then(|rule| rule.user.as_deref()), self.policy.run_as.as_deref()) {
            (Some(name), _) => self.user_named(Rule::ResourceUser, name).map(Some),
            (None, Some(name)) => self.user_named(Rule::RunAs, name).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn user_named(&self, rule: Rule, name: &str) -> Result<User, Refusal> {
        User::find(name).map_err(|why| Refusal::by(rule, why))
    }

    fn kept(&self, target: &TargetName, deployment: DeploymentId, asked: &str, refusal: Refusal) -> Refusal {
        let (rule, why) = (refusal.rule.name(), refusal.why.as_str());
        tracing::warn!(code = %Code::HostPolicy, %target, %deployment, asked, rule, why, "this host does not allow it");
        let refused = Refused {
            at: wall_now(),
            target: target.to_string(),
            deployment: deployment.to_string(),
            asked: asked.to_owned(),
            rule: rule.to_owned(),
            why: why.to_owned(),
        };
        if let Err(error) = self.refusals.add(&refused) {
            tracing::warn!(%error, "could not keep a refusal");
        }
        refusal
    }
}

/// As the agent starts: a link that is changed later leads nowhere new.
fn with_real_paths(resource: &Resource) -> Resource {
    let at = resource.at.as_ref().map(|listed| listed.iter().map(|one| one.with_folder(place::real)).collect());
    Resource { root: resource.root.as_deref().map(place::real), at, ..resource.clone() }
}

/// How much is known of a program when the host is asked.
#[derive(Clone, Copy)]
enum Asked {
    /// It may come to be by an earlier step.
    Offer,
    /// It is to run now.
    Run,
}

fn resource_of<'a>(assignment: &'a Assignment, step: &StepSpec) -> Option<&'a ResourceSpec> {
    let name = step.resource.as_ref()?;
    assignment.resources.iter().find(|resource| &resource.name == name)
}

fn root_of(resource: &ResourceSpec) -> Option<PathBuf> {
    match &resource.adapter {
        ResourceAdapter::Release { root, .. } => Some(place::real(Path::new(root))),
        ResourceAdapter::Command { .. } | ResourceAdapter::System(_) => None,
    }
}

/// The command that reads a resource, where one does.
fn inspection_of(resource: &ResourceSpec) -> Option<&[String]> {
    match &resource.adapter {
        ResourceAdapter::Command { inspect, .. } => inspect.as_deref(),
        ResourceAdapter::Release { .. } | ResourceAdapter::System(_) => None,
    }
}

fn argv_of(body: &StepBody) -> Option<&[String]> {
    match body {
        StepBody::Command { argv } => Some(argv),
        StepBody::Check(check) => match &check.probe {
            Probe::Command { argv } => Some(argv),
            Probe::Http { .. } | Probe::Tcp { .. } => None,
        },
        StepBody::Release { .. } | StepBody::Restore | StepBody::System(_) => None,
    }
}

/// What a user's command finds of its user in its environment, in place of the agent's.
pub(crate) fn of_user(environment: &mut BTreeMap<String, String>, user: &User) {
    for (name, value) in [("HOME", &user.home), ("USER", &user.name), ("LOGNAME", &user.name)] {
        environment.insert(name.to_owned(), value.clone());
    }
    environment.remove("TMPDIR");
}
