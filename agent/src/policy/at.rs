//! Where a target says that its resource is, and whether this host's rule lets it be there.
//!
//! | the rule | the target's place | |
//! | --- | --- | --- |
//! | says `at` | each place that the adapter would ask is one of them or below | allowed |
//! | says `at` | one is elsewhere, or can't be compared | refused |
//! | has credentials and no `at` | a repository or an API on the network: only the target names it | refused |
//! | no `at` | a repository in a folder of this host: only the target names it | refused |
//! | says nothing | any other | allowed: nothing of this host goes there |
//!
//! A database without `at` is left to its adapter, which shows credentials only to the server that they name themselves.
//!
//! Invariant: a secret goes to no server that nobody but the target named.

use std::path::{Path, PathBuf};

use holdfast_common::spec::{ResourceAdapter, ResourceSpec};
use holdfast_common::system::{Git, Http, Postgres, System};

use super::{Refusal, Rule, place, shape};
use crate::config::{NotAPlace, Place, Resource};

/// Why no place can be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unplaced {
    /// The target does not say it in words that mean anything here.
    #[error("where adapter {0} goes can't be told from a target")]
    Unsaid(&'static str),
    /// A text could be read in more than one way.
    #[error("{0}")]
    Odd(#[from] NotAPlace),
    /// What git would take for it leads somewhere else, now or once somebody changes it.
    #[error("{0:?} leads elsewhere: name the repository's own folder")]
    Elsewhere(PathBuf),
    /// It would not stand behind its URL.
    #[error("path {0:?} does not begin with \"/\"")]
    Path(String),
}

/// Every place that a resource's adapter would ask. Never empty.
pub(super) fn places(resource: &ResourceSpec) -> Result<Vec<Place>, Unplaced> {
    let unsaid = || Err(Unplaced::Unsaid(resource.adapter.adapter().name()));
    match &resource.adapter {
        ResourceAdapter::System(System::Git(git)) => repository(git),
        ResourceAdapter::System(System::Http(http)) => api(http),
        ResourceAdapter::System(System::Postgres(postgres)) => database(postgres),
        ResourceAdapter::System(System::External(_))
        | ResourceAdapter::Command { .. }
        | ResourceAdapter::Release { .. } => unsaid(),
    }
}

/// Decides.
pub(super) fn judge(
    rule: &Resource,
    resource: &ResourceSpec,
    places: &Result<Vec<Place>, Unplaced>,
) -> Result<(), Refusal> {
    let refused = |why| Err(Refusal::by(Rule::At, why));
    match (&rule.at, places) {
        (Some(listed), Ok(places)) => match places.iter().find(|place| !is_listed(place, listed)) {
            None => Ok(()),
            Some(place) => refused(format!("{place} is {}", not_in(listed))),
        },
        (Some(_), Err(why)) => refused(why.to_string()),
        (None, _) => match unlisted(&resource.adapter, !rule.credentials.is_empty()) {
            None => Ok(()),
            Some(why) => refused(format!("it is missing, and nothing else {why}")),
        },
    }
}

/// What a place leaves out is filled by the credentials, whichever entry they come to: so it must fit each of them.
fn is_listed(place: &Place, listed: &[Place]) -> bool {
    let is_below = |of: &Place| place.is_below(of);
    if place.is_whole() { listed.iter().any(is_below) } else { !listed.is_empty() && listed.iter().all(is_below) }
}

/// What a list allows.
pub(super) fn words(listed: &[Place]) -> String {
    let names: Vec<String> = listed.iter().map(Place::to_string).collect();
    if names.is_empty() { "nothing".to_owned() } else { format!("{} or below", names.join(", ")) }
}

fn not_in(listed: &[Place]) -> String {
    if listed.is_empty() { "not in it: it lists nothing".to_owned() } else { format!("not {}", words(listed)) }
}

/// What nobody but the target would say: whom the credentials are shown to, or which folder of this host git works on as the agent's user.
fn unlisted(adapter: &ResourceAdapter, has_credentials: bool) -> Option<String> {
    let shown = |url: &str| has_credentials.then(|| format!("lets this host's credentials go to {url:?}"));
    match adapter {
        ResourceAdapter::System(System::Git(git)) if git.url.starts_with('/') => {
            Some(format!("lets git work in {:?} of this host", git.url))
        }
        ResourceAdapter::System(System::Git(git)) => shown(&git.url),
        ResourceAdapter::System(System::Http(http)) => shown(&http.url),
        ResourceAdapter::System(System::Postgres(_) | System::External(_))
        | ResourceAdapter::Command { .. }
        | ResourceAdapter::Release { .. } => None,
    }
}

/// A path is taken by git in four ways, each as far as it is there. None of them may be a link or a file that names another
/// folder, and none may keep its objects or branches elsewhere.
fn repository(git: &Git) -> Result<Vec<Place>, Unplaced> {
    if !git.url.starts_with('/') {
        return Ok(vec![git.url.parse()?]);
    }
    let path = Path::new(&git.url).components().as_path();
    let elsewhere = |path: &Path| Err(Unplaced::Elsewhere(path.to_owned()));
    if place::real(path) != path {
        return elsewhere(path);
    }
    let taken = shape::also_taken(path);
    let there: Vec<&Path> = taken.iter().map(PathBuf::as_path).filter(|path| path.symlink_metadata().is_ok()).collect();
    if let Some(odd) = std::iter::once(path).chain(there.iter().copied()).find(|path| shape::leads_elsewhere(path)) {
        return elsewhere(odd);
    }
    Ok(std::iter::once(path).chain(there).map(|path| Place::folder(place::real(path))).collect())
}

/// What stands behind a `?` leads nowhere else.
fn api(http: &Http) -> Result<Vec<Place>, Unplaced> {
    let base = http.url.strip_suffix('/').unwrap_or(&http.url);
    let behind = [Some(&http.submit), http.status.as_ref(), http.resource.as_ref(), http.fence.as_ref()];
    let mut places = vec![http.url.parse()?];
    for path in behind.into_iter().flatten() {
        if !path.starts_with('/') {
            return Err(Unplaced::Path(path.clone()));
        }
        let path = path.split('?').next().unwrap_or_default().replace("{operation}", "operation");
        places.push(format!("{base}{path}").parse()?);
    }
    Ok(places)
}

fn database(postgres: &Postgres) -> Result<Vec<Place>, Unplaced> {
    Ok(vec![Place::database(postgres.server.as_deref(), postgres.database.as_deref())?])
}

#[cfg(test)]
mod tests;
