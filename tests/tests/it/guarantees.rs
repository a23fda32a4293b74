//! The page of guarantees names tests; each must be there.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_test_that_the_guarantees_name_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = fs::read_to_string(root.join("docs/guarantees.md")).expect("the page is there");
    let mut sources = Vec::new();
    for folder in ["agent", "cli", "common", "coordinator", "proto", "tests"] {
        collect(&root.join(folder), &mut sources);
    }
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).filter(|word| is_test(word)).collect();
    assert!(named.len() > 40, "the page names only {} tests", named.len());
    let missing: Vec<&&str> = named.iter().filter(|name| !sources.iter().any(|text| defines(text, name))).collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

/// A function of that name, or a row of a table from which a macro makes one.
fn defines(text: &str, name: &str) -> bool {
    text.contains(&format!("fn {name}("))
        || text.lines().any(|line| line.trim_start().starts_with(&format!("{name}: ")))
}

/// A sentence in snake case.
fn is_test(word: &str) -> bool {
    word.matches('_').count() >= 2 && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

fn collect(folder: &Path, sources: &mut Vec<String>) {
    let entries = fs::read_dir(folder).expect("a folder of the project");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(fs::read_to_string(&path).expect("a source is text"));
        }
    }
}
