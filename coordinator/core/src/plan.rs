//! What a deployment would do, and where it would stand if contact were lost: read from the target's state, changes
//! nothing, reserves nothing.
//!
//! Whether it would be taken, and what it would wait for, is not worked out a second time here: the submission is decided
//! on a copy of the state by the same function that decides the real one, and thrown away.
//!
//! ```text
//! a step that            what proves the runner out            what tells what became of it
//! has no effect          nothing needs to                      it runs again
//! mutates, by enforce:   fence     a fence-off                 by inspect: operation   applied or not
//!                        none,     its own word, where the                 revision    the revision it has
//!                        revision  effect can't outlive it                 none        a person's word
//!                                  else a person's word
//! ```

use std::collections::BTreeSet;

use holdfast_common::adapter::{Adapter, Capability, Enforce, Inspect, Reverse};
use holdfast_common::id::{AgentName, DeploymentId, DeploymentLabel, RequestId, ResourceName, Revision, StepName};
use holdfast_common::recovery::Policy;
use holdfast_common::rollback::{DataEffect, DataRecovery, RollbackSpec, Way};
use holdfast_common::spec::{
    DeploymentSpec, PlanDigest, Reach, ResourceSpec, RetryClass, StepBody, StepEffect, StepSpec,
};
use holdfast_common::time::{Millis, Serving, Wall};

use crate::apply::record;
use crate::decide::decide;
use crate::handlers::assign;
use crate::input::{Candidate, Input, Now};
use crate::policy;
use crate::refusal::Refusal;
use crate::state::{Deployment, ResourceKnowledge, Run, TargetState, Waiting};

/// What a deployment would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What permits would be bound to.
    pub digest: PlanDigest,
    /// What would become of a submission now.
    pub entry: Entry,
    /// Who could run its attempts now, and everybody else's why not.
    pub agents: Vec<PlannedAgent>,
    /// Its steps, in order.
    pub steps: Vec<PlannedStep>,
    /// The resources that they change, in the target's order.
    pub resources: Vec<PlannedResource>,
    /// What a rollback would not undo, one sentence each.
    pub not_undone: Vec<String>,
}

/// What would become of a submission now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It would take the target at once, and an agent can run it.
    Begins {
        /// Its number.
        number: u64,
    },
    /// It would wait.
    Waits {
        /// Its number.
        number: u64,
        /// For what.
        why: Waiting,
        /// Those that would have their turn before it.
        before: Vec<DeploymentLabel>,
        /// Those that it would supersede.
        supersedes: Vec<DeploymentLabel>,
    },
    /// It would be refused.
    Refused(Refusal),
}

/// An agent that the target's selector matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedAgent {
    /// Who.
    pub agent: AgentName,
    /// Why it can't run anything of the target now; `None` where it can.
    pub why_not: Option<String>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStep {
    /// Its name.
    pub name: StepName,
    /// Whether it changes anything.
    pub effect: StepEffect,
    /// Who carries it out.
    pub adapter: Adapter,
    /// What it changes or belongs to.
    pub resource: Option<ResourceName>,
    /// Whether it may be repeated.
    pub retry: RetryClass,
    /// When a stop is asked for.
    pub timeout: Option<Millis>,
    /// The revision that its resource should have afterwards.
    pub wanted: Option<Revision>,
    /// The revision that its resource must have before, and whether it has.
    pub pin: Option<(Revision, PinHolds)>,
    /// What can be proven of it; `None` where it names no resource.
    pub capability: Option<Capability>,
    /// Where it would stand if contact were lost while it runs, in one sentence.
    pub if_contact_is_lost: String,
}

/// Whether a pinned revision is the resource's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PinHolds {
    /// It is the one on record.
    Yes,
    /// Another one is on record.
    No {
        /// That one.
        recorded: Revision,
    },
    /// None is on record: the adapter judges it at the resource.
    NotRecorded,
    /// An earlier step changes the resource first: it is judged when its turn comes.
    AfterEarlierStep,
}

/// One resource that the deployment changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedResource {
    /// Its name.
    pub name: ResourceName,
    /// What is known of it now.
    pub now: ResourceKnowledge,
    /// What it should have afterwards; `None` where no step names a revision.
    pub wanted: Option<Revision>,
}

/// The plan of a deployment that is resolved against the target. `candidates` are the agents that the target's selector
/// matches, `wall` is now, for people.
#[must_use]
pub fn plan(state: &TargetState, spec: &DeploymentSpec, candidates: &[Candidate], wall: Wall) -> Plan {
    let agent = |candidate: &Candidate| PlannedAgent {
        agent: candidate.agent.clone(),
        why_not: assign::why_not(state, None, candidate),
    };
    let agents: Vec<PlannedAgent> = candidates.iter().map(agent).collect();
    Plan {
        digest: PlanDigest::of(spec, &state.spec),
        entry: unless_nobody_can(entry(state, spec, wall), &agents),
        agents,
        steps: (0..spec.steps.len()).map(|at| step(state, spec, at)).collect(),
        resources: resources(state, spec),
        not_undone: not_undone(state, spec),
    }
}

/// Decides the submission on a copy of the state.
fn entry(state: &TargetState, spec: &DeploymentSpec, wall: Wall) -> Entry {
    let epoch = state.fence.map_or(holdfast_common::fence::Epoch(1), holdfast_common::fence::Fence::epoch);
    let now = Now { wall, serving: Serving(0), run: Run(0), epoch, lease_margin: Millis(0) };
    let deployment: DeploymentId = NOBODY.parse().expect("the nil UUID is one");
    let request: RequestId = NOBODY.parse().expect("the nil UUID is one");
    let by = PLANNER.parse().expect("a name in the alphabet of names");
    let input = Input::Submit { deployment, request, spec: spec.clone(), by, no_queue: false };
    let decision = match decide(Some(state), now, &input) {
        Ok(decision) => decision,
        Err(refusal) => return Entry::Refused(refusal),
    };
    let number = state.next_number;
    let Ok(Some(after)) = record(Some(state.clone()), now, decision.events) else {
        return Entry::Refused(Refusal::Broken { because: "the submission of a plan can't be applied" });
    };
    let label = |ended: &Deployment| after.state.label(ended);
    let waits = after.state.queue.iter().find(|waiting| waiting.id == deployment);
    match waits.and_then(|waiting| waiting.waiting.clone()) {
        None => Entry::Begins { number },
        Some(why) => Entry::Waits {
            number,
            why,
            before: after.state.queue.iter().filter(|other| other.id != deployment).map(label).collect(),
            supersedes: after.ended.iter().map(label).collect(),
        },
    }
}

/// It takes the target at once, and waits all the same where no agent can run it.
fn unless_nobody_can(entry: Entry, agents: &[PlannedAgent]) -> Entry {
    let Entry::Begins { number } = entry else { return entry };
    if agents.iter().any(|agent| agent.why_not.is_none()) {
        return entry;
    }
    let why_not = |agent: &PlannedAgent| Some((agent.agent.clone(), agent.why_not.clone()?));
    let why = Waiting::NoEligibleAgent { agents: agents.iter().filter_map(why_not).collect() };
    Entry::Waits { number, why, before: Vec::new(), supersedes: Vec::new() }
}

/// No identity that is ever drawn.
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

/// Who a plan submits as: nobody ever reads it.
const PLANNER: &str = "plan";

fn step(state: &TargetState, spec: &DeploymentSpec, at: usize) -> PlannedStep {
    let step = &spec.steps[at];
    let resource = step.resource.as_ref().and_then(|name| state.spec.resource(name));
    let capability = resource.map(|resource| step.capability(resource));
    let lost = Lost {
        effect: step.effect,
        capability: capability.unwrap_or(NOTHING),
        reach: resource.map_or(Reach::Shared, |resource| resource.reach),
        retry: step.retry,
        policy: policy::effective(state, spec),
        target: state.spec.name.as_str(),
        ttl: spec.lease_ttl,
        changed_before: spec.steps[..at].iter().any(|before| before.effect == StepEffect::Mutates),
        may_follow: spec.retry.max_attempts > 1,
    };
    PlannedStep {
        name: step.name.clone(),
        effect: step.effect,
        adapter: step.body.adapter(),
        resource: step.resource.clone(),
        retry: step.retry,
        timeout: step.body.check().map(|check| check.give_up).or(step.timeout),
        wanted: step.revision.clone(),
        pin: step.expected_revision.clone().map(|pin| (pin.clone(), pin_holds(state, spec, at, &pin))),
        capability: capability.filter(|_| step.effect == StepEffect::Mutates),
        if_contact_is_lost: lost.sentence(),
    }
}

const NOTHING: Capability = Capability { inspect: Inspect::None, enforce: Enforce::None, outlives: true };

fn pin_holds(state: &TargetState, spec: &DeploymentSpec, at: usize, pin: &Revision) -> PinHolds {
    let Some(resource) = &spec.steps[at].resource else { return PinHolds::NotRecorded };
    let earlier = spec.steps[..at].iter().any(|before| before.resource.as_ref() == Some(resource));
    match state.resources.get(resource) {
        _ if earlier => PinHolds::AfterEarlierStep,
        Some(ResourceKnowledge::Revision { revision: Some(recorded), .. }) if recorded == pin => PinHolds::Yes,
        Some(ResourceKnowledge::Revision { revision: Some(recorded), .. }) => {
            PinHolds::No { recorded: recorded.clone() }
        }
        Some(
            ResourceKnowledge::Revision { revision: None, .. }
            | ResourceKnowledge::Never
            | ResourceKnowledge::Unknown { .. },
        )
        | None => PinHolds::NotRecorded,
    }
}

fn resources(state: &TargetState, spec: &DeploymentSpec) -> Vec<PlannedResource> {
    let mutating = || spec.steps.iter().filter(|step| step.effect == StepEffect::Mutates);
    let used: BTreeSet<&ResourceName> = mutating().filter_map(|step| step.resource.as_ref()).collect();
    let of = |resource: &ResourceSpec| PlannedResource {
        name: resource.name.clone(),
        now: state.known(&resource.name),
        wanted: mutating()
            .filter(|step| step.resource.as_ref() == Some(&resource.name))
            .filter_map(|step| step.revision.clone())
            .next_back(),
    };
    state.spec.resources.iter().filter(|resource| used.contains(&resource.name)).map(of).collect()
}

/// What going back over it would leave as it is, one sentence each.
fn not_undone(state: &TargetState, spec: &DeploymentSpec) -> Vec<String> {
    let Some(back) = &spec.rollback else {
        return vec!["any of it: the file has no [rollback], so there is no way back over it".to_owned()];
    };
    let mutating = || spec.steps.iter().filter(|step| step.effect == StepEffect::Mutates);
    let mut left: Vec<String> = mutating().filter_map(|step| data_left(step, back)).collect();
    left.extend(mutating().filter_map(|step| change_left(state, step, back)));
    left
}

fn data_left(step: &StepSpec, back: &RollbackSpec) -> Option<String> {
    let name = &step.name;
    match (step.data, &back.recovery) {
        (DataEffect::None, _) => None,
        (DataEffect::Expand, _) => Some(format!("the data that step {name} adds: the release before lives with it")),
        (DataEffect::Contract, _) => {
            Some(format!("the data that step {name} takes away: the release before needs none of it"))
        }
        (DataEffect::Destructive, DataRecovery::Restore { tested }) => {
            Some(format!("the data that step {name} destroys, unless it is restored as was tested: {tested}"))
        }
        (DataEffect::Destructive, DataRecovery::NoneNeeded | DataRecovery::ExpandContract) => {
            Some(format!("the data that step {name} destroys"))
        }
    }
}

fn change_left(state: &TargetState, step: &StepSpec, back: &RollbackSpec) -> Option<String> {
    let (name, resource) = (&step.name, step.resource.as_ref()?);
    if let Way::Steps { steps } = &back.way {
        let undone = steps.iter().any(|own| own.resource.as_ref() == Some(resource));
        return (!undone).then(|| format!("what step {name} changes: no step of the way back is on {resource}"));
    }
    match step.body {
        StepBody::Check(_) => None,
        StepBody::Command { .. } => Some(format!("what the command of step {name} changes: it declares no reverse")),
        StepBody::System(_) => {
            Some(format!("what step {name} changes on {resource}, which takes nothing back by itself"))
        }
        StepBody::Release { .. } | StepBody::Restore => {
            let takes_back = state.spec.resource(resource)?.adapter.reverse() == Reverse::RetainedRevision;
            let known =
                matches!(state.resources.get(resource), Some(ResourceKnowledge::Revision { revision: Some(_), .. }));
            match (takes_back, known) {
                (false, _) => Some(format!("the switch of step {name}: {resource} keeps no older release")),
                (true, false) => {
                    Some(format!("the switch of step {name}: no earlier revision of {resource} is on record"))
                }
                (true, true) => None,
            }
        }
    }
}

/// What is asked when contact is lost while a step runs.
#[derive(Clone, Copy, Debug)]
struct Lost<'a> {
    effect: StepEffect,
    capability: Capability,
    reach: Reach,
    retry: RetryClass,
    policy: Policy,
    target: &'a str,
    ttl: Millis,
    /// A step before it mutates.
    changed_before: bool,
    /// More than one try is allowed.
    may_follow: bool,
}

impl Lost<'_> {
    fn sentence(&self) -> String {
        match self.effect {
            StepEffect::None => self.read_only(),
            StepEffect::Mutates => format!(
                "uncertain after {} without a word, and {} stays held; {}; {}; {}",
                self.ttl,
                self.target,
                self.runner(),
                self.reading(),
                self.who()
            ),
        }
    }

    fn read_only(&self) -> String {
        let ttl = self.ttl;
        match (self.changed_before, self.may_follow) {
            (false, true) => {
                format!("nothing is changed by it: after {ttl} without a word another attempt follows by itself")
            }
            (false, false) => {
                format!("nothing is changed by it: after {ttl} without a word it ends as failed, nothing changed")
            }
            (true, true) => format!(
                "nothing is changed by it: after {ttl} without a word another attempt follows and carries over what was applied before"
            ),
            (true, false) => format!(
                "nothing is changed by it: after {ttl} without a word no further try is left, and the deployment is held for a decision"
            ),
        }
    }

    fn runner(&self) -> &'static str {
        match (self.capability.enforce, self.reach, self.capability.outlives) {
            (Enforce::Fence, Reach::Host, _) => {
                "a fence-off through its host's agent keeps the lost attempt from changing anything more"
            }
            (Enforce::Fence, Reach::Shared, _) => {
                "a fence-off through any agent that reaches it keeps the lost attempt from changing anything more"
            }
            (Enforce::None | Enforce::Revision, _, false) => {
                "it can't be fenced off: only its own agent's word, when that comes back, proves that it stopped, or a person attests it"
            }
            (Enforce::None | Enforce::Revision, _, true) => {
                "it can't be fenced off and its effect can outlive its process: a person must attest that it stopped"
            }
        }
    }

    fn reading(&self) -> &'static str {
        match (self.capability.inspect, self.retry) {
            (Inspect::Operation, _) => "an inspection then tells whether it was applied",
            (Inspect::Revision, _) => "an inspection then tells the revision that is there",
            (Inspect::None, RetryClass::Idempotent | RetryClass::Pure) => {
                "nothing can read it back, and it is safe to repeat: a new attempt may then be decided"
            }
            (Inspect::None, RetryClass::Unsafe) => "nothing can read it back: a person must attest what is there",
        }
    }

    fn who(&self) -> &'static str {
        let fenced = self.capability.enforce == Enforce::Fence;
        let provable = (fenced || !self.capability.outlives) && self.capability.inspect != Inspect::None;
        match (self.policy, provable) {
            (Policy::Manual, _) => "a person decides",
            (Policy::WhenProven, true) => "the target's policy may decide once that is proven",
            (Policy::TrustReport, true) => "the target's policy may decide once that is proven or reported",
            (Policy::TrustReport, false) if !self.capability.outlives => {
                "the target's policy may decide on its agent's report"
            }
            (Policy::WhenProven | Policy::TrustReport, false) => {
                "the target's policy can't decide what can't be proven: a person does"
            }
        }
    }
}

#[cfg(test)]
mod tests;
