//! What is wrong between two `[[resource]]` tables, each of which is sound for itself.
//!
//! | an earlier table | a later one | |
//! | --- | --- | --- |
//! | is said of a part of it, or of nothing in it | | fine: the narrower one comes first |
//! | is said of all of it | never counts | an error: whoever wrote it believes that it does |

use crate::config::Resource;

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
}
