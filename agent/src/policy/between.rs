//! What is wrong between two `[[resource]]` tables, each of which is sound for itself.
//!
//! | an earlier table | a later one | |
//! | --- | --- | --- |
//! | is said of a part of it, or of nothing in it | | fine: the narrower one comes first |
//! | is said of all of it | never counts | an error: whoever wrote it believes that it does |
//!
//! | a release may be in | git works in | |
//! | --- | --- | --- |
//! | a folder, or any | the same, one above or one below | a warning: a step puts files where git takes them for a repository of its own |

use std::path::Path;

use holdfast_common::adapter::Adapter;

use super::place;
use crate::config::{Place, Resource, lies_below};

/// Tables that no resource comes to, since the first that fits counts. Each a sentence.
pub(super) fn never_counting(declared: &[Resource]) -> Vec<String> {
    let found = declared.iter().enumerate().filter_map(|(later, resource)| {
        // A pattern as text fits another one where every name that fits it does.
        let covers = |earlier: &Resource| earlier.is_of(&resource.target, &resource.name);
        let earlier = declared[..later].iter().position(covers)?;
        Some(shadowed((later, resource), (earlier, &declared[earlier])))
    });
    found.collect()
}

fn shadowed((later, resource): (usize, &Resource), (earlier, first): (usize, &Resource)) -> String {
    let Resource { name, target, .. } = resource;
    let why = if (&first.target, &first.name) == (target, name) {
        format!("resource[{earlier}] is of the same resource: say all of it in one table")
    } else {
        format!(
            "resource[{earlier}], {} of {}, fits all of it and comes first: put the narrower one first",
            first.name, first.target
        )
    };
    format!("resource[{later}], {name} of {target}, never counts: {why}")
}

/// Releases that may be put where git works. What a step puts there git could run as the agent's user. Each a sentence.
pub(super) fn releases_in_repositories(declared: &[Resource]) -> Vec<String> {
    let of = |adapter: Adapter| declared.iter().filter(move |one| one.adapter == adapter.name());
    let mut found = Vec::new();
    for git in of(Adapter::Git) {
        for folder in git.at.iter().flatten().filter_map(Place::as_folder) {
            found.extend(of(Adapter::Release).filter_map(|release| in_repository(release, git, folder)));
        }
    }
    found
}

fn in_repository(release: &Resource, git: &Resource, folder: &Path) -> Option<String> {
    let real = place::real(folder);
    let how = match release.root.as_deref() {
        None => "has no `root`, so it may be in".to_owned(),
        Some(root) if lies_below(&place::real(root), &real) => {
            format!("has the root {}, which lies in", root.display())
        }
        Some(root) if lies_below(&real, &place::real(root)) => {
            format!("has the root {}, in which lies", root.display())
        }
        Some(_) => return None,
    };
    Some(format!(
        "resource {} of {} {how} {}, where resource {} of {} lets git work as the agent's user: what a step puts there git could trust",
        release.name,
        release.target,
        folder.display(),
        git.name,
        git.target
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::policy::{Findings, Occasion, check};

    /// What is found in a configuration with these tables.
    fn found(tables: &[Value]) -> Findings {
        let config = json!({
            "state_dir": "/nowhere",
            "coordinator": { "address": "127.0.0.1:1" },
            "identity": { "dir": "/nowhere" },
            "resource": tables,
        });
        check(&serde_json::from_value(config).unwrap(), Occasion::Start)
    }

    fn table((target, name): (&str, &str), adapter: &str) -> Value {
        json!({ "target": target, "name": name, "adapter": adapter })
    }

    #[test]
    fn a_table_that_an_earlier_one_keeps_from_ever_counting_is_an_error_with_both_places() {
        for (first, second, why) in [
            (("shop@prod", "db"), ("shop@prod", "db"), "resource[0] is of the same resource"),
            (("shop@*", "db"), ("shop@*", "db"), "resource[0] is of the same resource"),
            (("shop@*", "*"), ("shop@prod", "db"), "resource[0], * of shop@*, fits all of it and comes first"),
            (("shop@*", "d*"), ("shop@prod*", "db*"), "resource[0], d* of shop@*, fits all of it and comes first"),
        ] {
            // Also of another adapter: the first one refuses it.
            for adapter in ["command", "release"] {
                let errors = found(&[table(first, "command"), table(second, adapter)]).errors;
                let begin = format!("resource[1], {} of {}, never counts: {why}", second.1, second.0);
                assert!(matches!(errors.as_slice(), [one] if one.starts_with(&begin)), "{errors:?}");
            }
        }
    }

    #[test]
    fn a_narrower_table_before_a_wider_one_is_fine() {
        for (first, second) in [
            (("shop@prod", "db"), ("shop@*", "db")),
            (("shop@prod", "db"), ("shop@prod", "*")),
            (("shop@*", "db"), ("shop@prod", "*")),
            (("shop@prod", "db"), ("shop@prod", "db2")),
            (("shop@prod", "db"), ("shop@test", "db")),
        ] {
            let errors = found(&[table(first, "command"), table(second, "command")]).errors;
            assert_eq!(errors, Vec::<String>::new(), "{first:?} {second:?}");
        }
    }

    #[test]
    fn a_release_that_may_be_where_git_works_is_warned_of() {
        let folder = std::env::temp_dir().join(format!("holdfast-between-{}", uuid::Uuid::new_v4().simple()));
        std::fs::create_dir_all(folder.join("git/shop")).unwrap();
        std::os::unix::fs::symlink(folder.join("git/shop"), folder.join("link")).unwrap();
        let at = |name: &str| folder.join(name);
        let git =
            json!({ "target": "a", "name": "config", "adapter": "git", "at": ["https://git.example", at("git")] });
        for (root, words) in [
            (None, Some("has no `root`, so it may be in")),
            (Some("git"), Some("which lies in")),
            (Some("git/shop/site"), Some("which lies in")),
            // Where it really is.
            (Some("link/site"), Some("which lies in")),
            (Some(""), Some("in which lies")),
            (Some("github"), None),
            (Some("site"), None),
        ] {
            let mut release = json!({ "target": "a", "name": "site", "adapter": "release" });
            if let Some(root) = root {
                release["root"] = json!(at(root));
            }
            let warnings = found(&[git.clone(), release]).warnings;
            let told = warnings.iter().find(|one| one.starts_with("resource site of a has "));
            let end = format!("{}, where resource config of a lets git work", at("git").display());
            match words {
                Some(words) => {
                    assert!(told.is_some_and(|one| one.contains(words) && one.contains(&end)), "{warnings:?}")
                }
                None => assert_eq!(told, None, "{root:?}"),
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
