//! Which agents can take work of a target, and why the others can't.
//!
//! What the session, an operator or the agent's identity stands in the way of comes before what its host can do; only the latter is
//! counted, since contact would not help there.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Instant;

use holdfast_common::adapter::Adapter;
use holdfast_common::id::{AgentName, ResourceName};
use holdfast_common::spec::{Reach, TargetSpec};
use holdfast_coordinator_core::input::Candidate;

use super::known::Known;
use super::{Absence, Directory, Drained, Unfit};
use crate::grpc::view::instant;

impl Directory {
    /// Every agent that the target's selector matches, by name, with why it can't take work of it that needs these adapters.
    #[must_use]
    pub fn candidates(&self, target: &TargetSpec, needs: &BTreeSet<Adapter>) -> Vec<Candidate> {
        let agents = self.lock();
        agents
            .iter()
            .filter(|(_, known)| known.profile.matches(target))
            .map(|(name, known)| Candidate {
                agent: name.clone(),
                incarnation: known.live.as_ref().map(|_| known.profile.incarnation),
                unfit: self.told(known, target, needs),
            })
            .collect()
    }

    /// Agents in contact that reach the resource, by name. A host-bound resource is reached from its own host only.
    #[must_use]
    pub fn reachable(&self, target: &TargetSpec, resource: &ResourceName, home: Option<&AgentName>) -> Vec<AgentName> {
        let Some(spec) = target.resource(resource) else { return Vec::new() };
        let agents = self.lock();
        let at_home = |name: &AgentName| match spec.reach {
            Reach::Host => home == Some(name),
            Reach::Shared => true,
        };
        agents
            .iter()
            .filter(|(name, known)| {
                let profile = &known.profile;
                known.live.is_some()
                    && known.standing.unfit().is_none()
                    && at_home(name)
                    && profile.matches(target)
                    && profile.allows(&target.name)
                    && profile.offers(spec)
            })
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// How often an agent could not take what looked for one, by [`Unfit::WORDS`].
    #[must_use]
    pub fn passed_over(&self) -> [u64; Unfit::WORDS.len()] {
        self.passed_over.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// In words, and counted where contact would not help.
    fn told(&self, known: &Known, target: &TargetSpec, needs: &BTreeSet<Adapter>) -> Option<String> {
        match known.unfit(target, needs) {
            Ok(()) => None,
            Err(Lacks::Contact(why)) => Some(why),
            Err(Lacks::Fitness(why)) => {
                self.passed_over[why.place()].fetch_add(1, Ordering::Relaxed);
                Some(why.to_string())
            }
        }
    }
}

/// What keeps an agent from work.
enum Lacks {
    /// For now: contact, or somebody's word.
    Contact(String),
    /// What it can do.
    Fitness(Unfit),
}

impl Known {
    fn unfit(&self, target: &TargetSpec, needs: &BTreeSet<Adapter>) -> Result<(), Lacks> {
        if let Some(why) = self.standing.unfit() {
            return Err(Lacks::Contact(why));
        }
        if let Some(Drained { by, reason, since }) = &self.drained {
            return Err(Lacks::Contact(format!("drained since {} by {by}: {reason}", instant(*since))));
        }
        match (&self.live, &self.speaks, self.absence) {
            (Some(live), _, _) => {
                if let Some(count) = live.offers.ignored(Instant::now()) {
                    let why = format!("it has not answered its last {count} offers: it gets none until it does");
                    return Err(Lacks::Contact(why));
                }
                self.profile.unfit(target, needs).map_or(Ok(()), |why| Err(Lacks::Fitness(why)))
            }
            (None, Some(versions), _) => Err(Lacks::Fitness(Unfit::Protocol(versions.clone()))),
            (None, None, Some(Absence { since, back_by })) => {
                Err(Lacks::Contact(format!("away by plan since {}, back by {}", instant(since), instant(back_by))))
            }
            (None, None, None) if self.spoke => Err(Lacks::Contact("no contact: its session is over".to_owned())),
            (None, None, None) => Err(Lacks::Contact("no contact since the coordinator started".to_owned())),
        }
    }
}
