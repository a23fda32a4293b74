//! Which declared resources are the same thing.
//!
//! The real identity is what the adapter keeps at the resource; this is the look at the declarations alone. Two
//! release folders of the same path are the same thing unless they are bound to hosts and no agent can match both
//! selectors: two selectors are apart only if they ask for different values of one label.

use std::collections::BTreeMap;

use holdfast_common::spec::{Reach, ResourceAdapter, ResourceSpec, TargetSpec};

/// What a declaration says of where its resource is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Adapter and place, like `release:/srv/shop`.
    pub(crate) key: String,
    /// The labels of the agents whose host it is on; `None` for a shared one.
    pub(crate) selector: Option<BTreeMap<String, String>>,
}

impl Place {
    /// `None` for a resource that has no place of its own, as those that commands change.
    pub(crate) fn of(target: &TargetSpec, resource: &ResourceSpec) -> Option<Self> {
        let key = match &resource.adapter {
            ResourceAdapter::Command { .. } => return None,
            ResourceAdapter::Release { root, .. } => format!("release:{}", plain(root)),
            ResourceAdapter::System(system) => system.place()?,
        };
        let selector = match resource.reach {
            Reach::Host => Some(target.agents.clone()),
            Reach::Shared => None,
        };
        Some(Self { key, selector })
    }

    /// Whether both may be one thing.
    pub(crate) fn may_be(&self, other: &Place) -> bool {
        self.key == other.key && !self.is_apart(other)
    }

    fn is_apart(&self, other: &Place) -> bool {
        match (&self.selector, &other.selector) {
            (Some(ours), Some(theirs)) => {
                ours.iter().any(|(label, value)| theirs.get(label).is_some_and(|other| other != value))
            }
            (None, Some(_)) | (Some(_), None) | (None, None) => false,
        }
    }
}

/// The path without doubled slashes, `.` parts and a slash at its end.
fn plain(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(root: &str, labels: Option<&[(&str, &str)]>) -> Place {
        let owned = |labels: &[(&str, &str)]| labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Place { key: format!("release:{}", plain(root)), selector: labels.map(owned) }
    }

    #[test]
    fn the_same_folder_is_one_thing_unless_no_agent_matches_both_selectors() {
        let prod = place("/srv/shop", Some(&[("role", "shop"), ("env", "prod")]));
        let staging = place("/srv/shop", Some(&[("role", "shop"), ("env", "staging")]));
        let any = place("/srv//./shop/", Some(&[("role", "shop")]));
        let shared = place("/srv/shop", None);
        assert!(!prod.may_be(&staging));
        assert!(prod.may_be(&any) && any.may_be(&staging));
        assert!(prod.may_be(&shared) && shared.may_be(&staging));
        assert!(!prod.may_be(&place("/srv/other", None)));
    }
}
