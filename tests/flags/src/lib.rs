//! The adapter program of the examples, and the folder of flags that it changes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The call of the program that takes effect.
pub const EFFECT: &str = "append";

/// The program, built as whoever copies it would, and with the places where tests stop it.
///
/// # Panics
/// Where it does not build.
pub fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        // The test's own program stands in `target/PROFILE/deps`.
        let own = std::env::current_exe().expect("a running program has a path");
        let target = own.ancestors().nth(3).expect("a test's program is below a target folder").to_owned();
        let mut command = Command::new(env!("CARGO"));
        command.args(["build", "--quiet", "--offline", "-p", "holdfast-example-adapter", "--features", "halts"]);
        command.arg("--target-dir").arg(&target).current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(command.status().expect("cargo runs").success(), "the example does not build");
        target.join("debug/holdfast-example-adapter")
    })
}

/// The example's target, with that name and folder.
#[must_use]
pub fn target(name: &str, folder: &Path, reach: &str) -> String {
    let example = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/external/flags.target.toml"));
    example
        .replace("\"flags@prod\"", &format!("{name:?}"))
        .replace("{ role = \"shop\", env = \"prod\" }", "{ role = \"shop\" }")
        .replace("\"/srv/flags\"", &format!("{folder:?}"))
        .replace("\"host\"", &format!("{reach:?}"))
}

/// The revisions that took effect, in order, read by none of the program's code.
///
/// # Panics
/// Where an entry of the log can't be read: an oracle leaves nothing out.
#[must_use]
pub fn underwent(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("log")).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry of the log").path()).collect();
    files.retain(|path| path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.')));
    files.sort();
    let changes = files.iter().map(|path| read(path)).filter(|entry| !entry["operation"].is_null());
    changes.map(|entry| entry["revision"].as_str().expect("a change has a revision").to_owned()).collect()
}

fn read(file: &Path) -> serde_json::Value {
    let text = std::fs::read(file).expect("an entry that has a name is whole");
    serde_json::from_slice(&text).expect("an entry is JSON")
}
