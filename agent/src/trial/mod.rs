//! What can be shown of a resource without changing it, with the credentials that this host has for it.
//!
//! | verdict | says |
//! | --- | --- |
//! | `shown` | it was tried, and held |
//! | `gap` | nothing here keeps it; the target claims nothing else |
//! | `not tried` | trying would change something, or needs what is not there |
//! | `unclear` | it was tried, and what came back shows neither |
//! | `false` | it was tried, and does not hold |
//!
//! That something can't be done is shown only by a refusal: whoever was not heard was not refused.

mod command;
mod release;
mod system;

use std::path::Path;

use holdfast_common::adapter::{Adapter, Capability, Enforce, Inspect};
use holdfast_common::fence::Fence;
use holdfast_common::id::{DeploymentId, OperationId, ResourceName, Revision, StepName, TargetName};
use holdfast_common::outcome::{OperationState, Reading};
use holdfast_common::spec::{ResourceAdapter, ResourceSpec};
use holdfast_common::text::one_line;
use serde::Serialize;
use uuid::Uuid;

use crate::config::Config;
use crate::policy::{Grant, Host};
use crate::secrets;

const NOT_DECLARED: &str = "its target declares nothing that tells one";

/// All that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trial {
    /// Whose resource.
    pub target: TargetName,
    /// Its name.
    pub resource: ResourceName,
    /// Its adapter.
    pub adapter: Adapter,
    /// What its target declares, at best.
    pub declares: Capability,
    /// In the order in which it was tried.
    pub found: Vec<Found>,
}

/// One thing, and how it went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// What must hold.
    pub what: &'static str,
    /// How it went.
    pub verdict: Verdict,
    /// For people.
    pub detail: String,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It held.
    Shown,
    /// Nothing keeps it, and nothing else is claimed.
    Gap,
    /// It would have changed something, or what it needs is not there.
    NotTried,
    /// It was tried, and what came back shows neither.
    Unclear,
    /// It does not hold.
    False,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Shown => "shown",
            Verdict::Gap => "gap",
            Verdict::NotTried => "not tried",
            Verdict::Unclear => "unclear",
            Verdict::False => "FALSE",
        }
    }
}

/// Tries a resource. Its record of what was refused stays as it is: nobody else asked.
#[must_use]
pub fn of(config: &Config, target: &TargetName, resource: &ResourceSpec) -> Trial {
    let mut trial = Trial {
        target: target.clone(),
        resource: resource.name.clone(),
        adapter: resource.adapter.adapter(),
        declares: declared(&resource.adapter),
        found: Vec::new(),
    };
    match Host::of(config).read(target, resource) {
        Ok(grant) => {
            trial.found("this host allows it", Verdict::Shown, "by its policy".to_owned());
            trial.credentials(&grant);
            match &resource.adapter {
                ResourceAdapter::Release { root, .. } => trial.release(Path::new(root)),
                ResourceAdapter::Command { inspect, .. } => trial.command(config, inspect.as_deref(), &grant),
                ResourceAdapter::System(system) => trial.system(config, system, &grant),
            }
            trial.what_needs_a_change();
        }
        Err(refusal) => trial.found("this host allows it", Verdict::False, refusal.to_string()),
    }
    trial
}

fn declared(adapter: &ResourceAdapter) -> Capability {
    match adapter {
        ResourceAdapter::Release { .. } => {
            Capability { inspect: Inspect::Operation, enforce: Enforce::Fence, outlives: false }
        }
        ResourceAdapter::Command { inspect, outlives } => Capability {
            inspect: if inspect.is_some() { Inspect::Revision } else { Inspect::None },
            enforce: Enforce::None,
            outlives: *outlives,
        },
        ResourceAdapter::System(system) => system.capability_at_best(),
    }
}

/// An operation that never was.
fn never() -> OperationId {
    OperationId { deployment: DeploymentId(Uuid::new_v4()), step: StepName::new("adapter-test").expect("a plain name") }
}

impl Trial {
    /// How many things don't hold.
    #[must_use]
    pub fn failures(&self) -> usize {
        self.found.iter().filter(|found| found.verdict == Verdict::False).count()
    }

    /// For people.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let Capability { inspect, enforce, outlives } = self.declares;
        let word = |value: String| value.trim_matches('"').to_owned();
        let declares = format!(
            "declares inspect = {}, enforce = {}, outlives = {outlives}",
            word(serde_json::to_string(&inspect).expect("a word")),
            word(serde_json::to_string(&enforce).expect("a word")),
        );
        let mut lines = vec![format!("{}/{} by {}: {declares}", self.target, self.resource, self.adapter.name())];
        let width = self.found.iter().map(|found| found.what.len()).max().unwrap_or_default();
        lines.extend(self.found.iter().map(|Found { what, verdict, detail }| {
            one_line(&format!("{:<9}  {what:<width$}  {detail}", verdict.word())).trim_end().to_owned()
        }));
        lines
    }

    fn found(&mut self, what: &'static str, verdict: Verdict, detail: String) {
        self.found.push(Found { what, verdict, detail });
    }

    fn credentials(&mut self, grant: &Grant) {
        for (what, (_, set)) in [
            "the deploy credentials can be read",
            "the inspect credentials can be read",
            "the fence credentials can be read",
        ]
        .into_iter()
        .zip(grant.credentials.named())
        {
            match secrets::sources(set).and_then(|sources| sources.read().map_err(|error| error.to_string())) {
                Ok(secrets) if secrets.is_empty() => self.found(what, Verdict::Shown, "there are none".to_owned()),
                Ok(_) => self.found(what, Verdict::Shown, String::new()),
                Err(why) => self.found(what, Verdict::False, why),
            }
        }
    }

    /// What a reading of an operation that never was says of the resource.
    fn reading(&mut self, reading: &Reading, tells_itself: bool) {
        let what = "it has an identity";
        if reading.resource_identity.is_empty() {
            return self.found(what, Verdict::NotTried, reading.detail.clone());
        }
        if tells_itself {
            self.found(what, Verdict::Shown, reading.resource_identity.clone());
        } else {
            self.found(what, Verdict::Gap, NOT_DECLARED.to_owned());
        }
        self.revision(reading.revision.as_ref(), tells_itself && self.declares.inspect != Inspect::None);
        self.operations(reading);
        self.highest_fence(reading.highest_fence);
    }

    fn revision(&mut self, revision: Option<&Revision>, is_declared: bool) {
        let what = "its revision is read";
        match (revision, is_declared) {
            (Some(revision), _) => self.found(what, Verdict::Shown, revision.to_string()),
            (None, true) => self.found(what, Verdict::NotTried, "it tells none yet".to_owned()),
            (None, false) => self.found(what, Verdict::Gap, NOT_DECLARED.to_owned()),
        }
    }

    fn operations(&mut self, reading: &Reading) {
        let what = "an operation that never was is not applied";
        let verdict = match (self.declares.inspect, reading.state) {
            (Inspect::Operation, OperationState::NotApplied) => Verdict::Shown,
            (Inspect::Revision | Inspect::None, OperationState::Unknown | OperationState::NotApplied) => Verdict::Gap,
            (_, OperationState::Applied | OperationState::Applying | OperationState::Partial)
            | (Inspect::Operation, OperationState::Unknown) => Verdict::False,
        };
        self.found(what, verdict, format!("it reads {:?}: {}", reading.state, reading.detail));
    }

    fn highest_fence(&mut self, highest: Option<Fence>) {
        let what = "it tells the highest fence that it has seen";
        match (self.declares.enforce, highest) {
            (_, Some(highest)) => self.found(what, Verdict::Shown, highest.to_string()),
            (Enforce::Fence, None) => self.found(what, Verdict::NotTried, "it tells none yet".to_owned()),
            (Enforce::None | Enforce::Revision, None) => self.found(what, Verdict::Gap, "it keeps none".to_owned()),
        }
    }

    /// What only a change could show.
    fn what_needs_a_change(&mut self) {
        let proven_by = match self.adapter {
            Adapter::External => "the program's own tests must show it",
            Adapter::Http => "the API's own tests must show it",
            Adapter::Postgres => "the tests that every adapter passes show it, but for steps with transaction = false",
            Adapter::Command => "nothing enforces it",
            Adapter::Release | Adapter::Check | Adapter::Git => "the tests that every adapter passes show it",
        };
        let fence = match self.declares.enforce {
            Enforce::Fence => (Verdict::NotTried, proven_by),
            Enforce::Revision => {
                (Verdict::Gap, "an old attempt can still change it, from the revision that it expects")
            }
            Enforce::None => (Verdict::Gap, "an old attempt can still change it"),
        };
        self.found("a stale fence is refused", fence.0, fence.1.to_owned());
        self.found("the deploy credentials let a change in", Verdict::NotTried, "that would be one".to_owned());
    }
}
