//! Where a target can go back to, and whether that is compatible now.
//!
//! ```text
//! the way back over a deployment is compatible, unless ...            a person may attest otherwise
//! it is a rollback itself, which left its changes in part             no
//! its file has no `[rollback]`                                        no
//! no health check is declared                                         no
//! it destroyed data, and no recovery of it was tested                 no
//! a resource that it changed has no reverse transition,               no
//!   and its file has no steps of its own for it
//! what a resource had before it is not on record                      no
//! the resource was asked, and does not retain that revision any more  no
//! `compatible.until` has passed                                       yes
//! the version of the data is not on record, or outside the range      yes
//! ```
//!
//! Deployments whose changes stand lie on each other like a stack. To go back below one, the way back over it and over each
//! above it must be compatible. A rollback that was applied whole took those that it undid off the stack.

mod steps;
mod why_not;

use std::collections::{BTreeMap, BTreeSet};

use holdfast_common::adapter::Reverse;
use holdfast_common::id::{ResourceName, Revision, StepName};
use holdfast_common::rollback::{DataEffect, DataRecovery, RollbackSpec, Way};
use holdfast_common::spec::{DeploymentSpec, StepBody, StepSpec};
use holdfast_common::time::Wall;

use crate::fate::{self, Fate};
use crate::state::{Base, Deployment, ResourceKnowledge, TargetState, Undone};

pub use why_not::WhyNot;

/// The revisions that resources were seen to retain. A resource that could not be asked is not among them.
pub type Retained = BTreeMap<ResourceName, BTreeSet<Revision>>;

/// One place to go back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The deployments that would be undone, the newest first. Never empty.
    pub undoes: Vec<Undone>,
    /// What each resource that they changed had before them; `None` where that is not on record.
    pub revisions: BTreeMap<ResourceName, Option<Revision>>,
    /// Resources among them that take nothing back: what steps of the files' own are to do there.
    pub own: BTreeMap<ResourceName, Own>,
    /// Resources among them that are to take a retained revision back, and could not be asked whether they retain it.
    pub not_asked: Vec<ResourceName>,
    /// Why it is not compatible now; `None` where it is.
    pub why_not: Option<WhyNot>,
}

/// What steps that an operator wrote for the way back are to do to a resource. Nothing says that it ever had what they bring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// They, in the order in which they run.
    pub steps: Vec<StepName>,
    /// The revision that the last of them names; `None`: what the resource has after them nobody says.
    pub brings: Option<Revision>,
}

/// The places that the target can go back to, the nearest first. `past` are deployments of the target that ended,
/// in any order: at least the last ones that were tried.
#[must_use]
pub fn candidates(state: &TargetState, past: &[Deployment], retained: &Retained, now: Wall) -> Vec<Candidate> {
    let layers = standing(past);
    let candidate = |depth| {
        let over: &[Layer<'_>] = &layers[..depth];
        let revisions = before(over);
        let restored = |resource: &ResourceName| over.iter().any(|layer| is_restored(layer, resource));
        let asked = |resource: &&ResourceName| restored(resource) && !retained.contains_key(*resource);
        Candidate {
            undoes: over.iter().map(Layer::undone).collect(),
            not_asked: revisions.keys().filter(asked).cloned().collect(),
            why_not: compatible(state, over, &revisions, retained, now).err(),
            own: revisions.keys().filter_map(|name| Some((name.clone(), own(over, name)?))).collect(),
            revisions,
        }
    };
    (1..=layers.len()).map(candidate).collect()
}

/// A way back that was found compatible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WayBack {
    pub(crate) undoes: Vec<Undone>,
    pub(crate) spec: DeploymentSpec,
}

/// The way back to that revision: the nearest place where a resource had it.
pub(crate) fn to(
    state: &TargetState,
    past: &[Deployment],
    revision: &Revision,
    retained: &Retained,
    now: Wall,
    attested: bool,
) -> Option<Result<WayBack, WhyNot>> {
    let layers = standing(past);
    let has = |over: &&[Layer<'_>]| before(over).values().any(|had| had.as_ref() == Some(revision));
    let depth = (1..=layers.len()).find(|depth| has(&&layers[..*depth]))?;
    let (over, beneath) = layers.split_at(depth);
    Some(way_back(state, over, beneath.first().map(|layer| layer.deployment), retained, now, attested))
}

/// The way back over the deployment that was just decided to be undone.
pub(crate) fn over(
    state: &TargetState,
    undone: &Deployment,
    past: &[Deployment],
    retained: &Retained,
    now: Wall,
) -> Result<WayBack, WhyNot> {
    let layer = Layer { deployment: undone, changed: changed(undone) };
    let beneath = standing(past).first().map(|layer| layer.deployment);
    way_back(state, &[layer], beneath, retained, now, false)
}

/// Why a deployment that is uncertain or held can't be gone back over. `fate` tells what is known of each step now.
pub(crate) fn why_not(
    state: &TargetState,
    deployment: &Deployment,
    fate: impl Fn(&StepSpec) -> Fate,
    now: Wall,
) -> Result<(), WhyNot> {
    let layer = Layer { deployment, changed: changed_by(deployment, fate) };
    let over = [layer];
    compatible(state, &over, &before(&over), &Retained::new(), now)
}

/// What a rollback is put on top of, when it is handed the reservation.
pub(crate) fn base(state: &TargetState, spec: &DeploymentSpec) -> Base {
    let mut changed = spec.steps.iter().filter_map(|step| step.resource.as_ref());
    let unknown = |name| matches!(state.resources.get(name), Some(ResourceKnowledge::Unknown { .. }));
    if changed.any(unknown) { Base::Unresolved } else { Base::Known }
}

/// Whether a deployment stands on something that nobody knows, and none of its own changes is applied: no end of it frees the
/// target by itself.
pub(crate) fn rests_on_unresolved(deployment: &Deployment) -> bool {
    let unresolved = deployment.kind.rollback().is_some_and(|of| of.base == Base::Unresolved);
    unresolved && !fate::mutating(deployment).any(|step| matches!(fate::of(deployment, step), Fate::Applied(_)))
}

/// One deployment whose changes stand.
struct Layer<'a> {
    deployment: &'a Deployment,
    changed: BTreeSet<ResourceName>,
}

impl Layer<'_> {
    fn undone(&self) -> Undone {
        Undone { id: self.deployment.id, number: self.deployment.number }
    }

    fn number(&self) -> u64 {
        self.deployment.number
    }

    fn way(&self) -> Option<&RollbackSpec> {
        self.deployment.spec.rollback.as_ref()
    }
}

/// Those whose changes stand, the newest first. What came after what, their fences say.
fn standing(past: &[Deployment]) -> Vec<Layer<'_>> {
    let mut undone = BTreeSet::new();
    let mut layers = Vec::new();
    let mut tried: Vec<&Deployment> = past.iter().filter(|deployment| !deployment.attempts.is_empty()).collect();
    tried.sort_by_key(|deployment| std::cmp::Reverse(deployment.attempts.last().map(|last| last.fence)));
    for deployment in tried {
        if let Some(of) = deployment.kind.rollback().filter(|_| fate::is_whole(deployment)) {
            undone.extend(of.undoes.iter().map(|undone| undone.id));
            continue;
        }
        let layer = Layer { deployment, changed: changed(deployment) };
        if !layer.changed.is_empty() && !undone.contains(&deployment.id) {
            layers.push(layer);
        }
    }
    layers
}

fn changed(deployment: &Deployment) -> BTreeSet<ResourceName> {
    changed_by(deployment, |step| fate::of(deployment, step))
}

fn changed_by(deployment: &Deployment, fate: impl Fn(&StepSpec) -> Fate) -> BTreeSet<ResourceName> {
    let may_be_there = |step: &&StepSpec| match fate(step) {
        Fate::Applied(_) | Fate::Partial | Fate::Unknown => true,
        Fate::Untouched | Fate::NotApplied => false,
    };
    fate::mutating(deployment).filter(may_be_there).filter_map(|step| step.resource.clone()).collect()
}

/// What each resource that they changed would have: what the steps of the oldest of them that changed it say that they bring,
/// else what it had before.
fn before(over: &[Layer<'_>]) -> BTreeMap<ResourceName, Option<Revision>> {
    let mut had = BTreeMap::new();
    for layer in over {
        for resource in &layer.changed {
            let before = layer.deployment.expected.get(resource).cloned().flatten();
            had.insert(resource.clone(), brought(layer, resource).or(before));
        }
    }
    had
}

/// The revision that steps of its own bring, where the last of them on that resource names one.
fn brought(layer: &Layer<'_>, resource: &ResourceName) -> Option<Revision> {
    own_steps_on(layer, resource).next_back()?.revision.clone()
}

/// What the files' own steps do to a resource; `None` where it takes a revision back in the end.
fn own(over: &[Layer<'_>], resource: &ResourceName) -> Option<Own> {
    let oldest = over.iter().rfind(|layer| layer.changed.contains(resource))?;
    let last = own_steps_on(oldest, resource).next_back().filter(|step| step.body != StepBody::Restore)?;
    let steps = over.iter().flat_map(|layer| own_steps_on(layer, resource));
    Some(Own { steps: steps.map(|step| step.name.clone()).collect(), brings: last.revision.clone() })
}

fn own_steps_on<'a>(layer: &'a Layer<'_>, resource: &'a ResourceName) -> impl DoubleEndedIterator<Item = &'a StepSpec> {
    let own = layer.way().and_then(own_steps).unwrap_or_default();
    own.iter().filter(move |step| step.resource.as_ref() == Some(resource))
}

fn compatible(
    state: &TargetState,
    over: &[Layer<'_>],
    revisions: &BTreeMap<ResourceName, Option<Revision>>,
    retained: &Retained,
    now: Wall,
) -> Result<(), WhyNot> {
    // What nobody can attest away is told first.
    over.iter().try_for_each(|layer| possible(state, layer))?;
    for layer in over {
        let mut restored = layer.changed.iter().filter(|resource| is_restored(layer, resource));
        restored.try_for_each(|resource| is_there(over, resource, revisions, retained))?;
    }
    over.iter().try_for_each(|layer| in_window(state, layer, now))
}

fn possible(state: &TargetState, layer: &Layer<'_>) -> Result<(), WhyNot> {
    let number = layer.number();
    let spec = &layer.deployment.spec;
    if layer.changed.is_empty() {
        return Err(WhyNot::NothingChanged { number });
    }
    if layer.deployment.kind.rollback().is_some() {
        return Err(WhyNot::IsRollback { number });
    }
    let way = layer.way().ok_or(WhyNot::NoWay { number })?;
    if !spec.steps.iter().any(steps::is_check) {
        return Err(WhyNot::NoCheck { number });
    }
    let is_tested = matches!(way.recovery, DataRecovery::Restore { .. });
    let destructive = spec.steps.iter().find(|step| step.data == DataEffect::Destructive);
    if let Some(step) = destructive.filter(|_| !is_tested) {
        return Err(WhyNot::Destroyed { number, step: step.name.clone() });
    }
    let own = own_steps(way);
    let covered = |resource: &ResourceName| match own {
        Some(steps) => steps.iter().any(|step| step.resource.as_ref() == Some(resource)),
        None => has_reverse(state, resource),
    };
    match layer.changed.iter().find(|resource| !covered(resource)) {
        Some(resource) => Err(WhyNot::NoReverse { number, resource: resource.clone() }),
        None => Ok(()),
    }
}

fn own_steps(way: &RollbackSpec) -> Option<&[StepSpec]> {
    match &way.way {
        Way::Steps { steps } => Some(steps),
        Way::PreviousRevision => None,
    }
}

/// Whether the resource takes its old revision back, by the adapter or by a step of its own that does so.
fn is_restored(layer: &Layer<'_>, resource: &ResourceName) -> bool {
    let restores = |step: &StepSpec| step.body == StepBody::Restore && step.resource.as_ref() == Some(resource);
    layer.way().and_then(own_steps).is_none_or(|own| own.iter().any(restores))
}

fn has_reverse(state: &TargetState, resource: &ResourceName) -> bool {
    state.spec.resource(resource).is_some_and(|resource| match resource.adapter.reverse() {
        Reverse::RetainedRevision => true,
        Reverse::None => false,
    })
}

fn is_there(
    over: &[Layer<'_>],
    resource: &ResourceName,
    revisions: &BTreeMap<ResourceName, Option<Revision>>,
    retained: &Retained,
) -> Result<(), WhyNot> {
    let Some(revision) = revisions.get(resource).and_then(Option::as_ref) else {
        let oldest = over.iter().rfind(|layer| layer.changed.contains(resource));
        let number = oldest.map_or(0, Layer::number);
        return Err(WhyNot::NothingBefore { number, resource: resource.clone() });
    };
    match retained.get(resource) {
        Some(there) if !there.contains(revision) => {
            Err(WhyNot::NotRetained { resource: resource.clone(), revision: revision.clone() })
        }
        Some(_) | None => Ok(()),
    }
}

fn in_window(state: &TargetState, layer: &Layer<'_>, now: Wall) -> Result<(), WhyNot> {
    let Some(way) = layer.way() else { return Ok(()) };
    let number = layer.number();
    if let Some(until) = way.until.filter(|until| *until <= now) {
        return Err(WhyNot::WindowOver { number, until });
    }
    let Some(range) = &way.data else { return Ok(()) };
    let version = data_version(state, layer);
    if version.as_ref().is_some_and(|(_, version)| range.contains(version.as_str())) {
        return Ok(());
    }
    Err(WhyNot::DataOutside { number, range: range.clone(), version })
}

/// The recorded revision of the one resource whose data it changed.
fn data_version(state: &TargetState, layer: &Layer<'_>) -> Option<(ResourceName, Revision)> {
    let steps = layer.deployment.spec.steps.iter().filter(|step| !step.data.is_none());
    let resources: BTreeSet<&ResourceName> = steps.filter_map(|step| step.resource.as_ref()).collect();
    let resource = resources.first().filter(|_| resources.len() == 1)?;
    match state.resources.get(*resource)? {
        ResourceKnowledge::Revision { revision, .. } => Some(((*resource).clone(), revision.clone()?)),
        ResourceKnowledge::Never | ResourceKnowledge::Unknown { .. } => None,
    }
}

fn way_back(
    state: &TargetState,
    over: &[Layer<'_>],
    beneath: Option<&Deployment>,
    retained: &Retained,
    now: Wall,
    attested: bool,
) -> Result<WayBack, WhyNot> {
    let revisions = before(over);
    match compatible(state, over, &revisions, retained, now) {
        Err(why) if !(attested && why.may_be_attested()) => return Err(why),
        Err(_) | Ok(()) => {}
    }
    let spec = steps::of(over, beneath, &revisions);
    Ok(WayBack { undoes: over.iter().map(Layer::undone).collect(), spec })
}
