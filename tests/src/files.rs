//! Target and deployment files.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::site::Archive;

/// A target that commands change: the least that can be proven.
#[must_use]
pub fn command_target(name: &str, outlives: bool) -> String {
    format!(
        r#"schema = "holdfast/v1"
name = "{name}"
agents = {{ role = "shop" }}

[reconcile]
policy = "manual"

[[resource]]
name = "box"
adapter = "command"
reach = "shared"
with = {{ outlives = {outlives} }}
"#
    )
}

/// A target with one release folder.
#[must_use]
pub fn release_target(name: &str, root: &Path, reach: &str) -> String {
    format!(
        r#"schema = "holdfast/v1"
name = "{name}"
agents = {{ role = "shop" }}

[reconcile]
policy = "manual"

[[resource]]
name = "site"
adapter = "release"
reach = "{reach}"
with = {{ root = {root:?}, retain = 3 }}
"#
    )
}

/// The same target, whose policy decides by itself after that patience.
#[must_use]
pub fn decided_by(policy: &str, patience: Duration, target: &str) -> String {
    let millis = patience.as_millis();
    target.replace("policy = \"manual\"", &format!("policy = \"{policy}\"\npatience = \"{millis}ms\""))
}

/// A deployment file in the making.
#[derive(Clone, Debug)]
pub struct DeploymentFile {
    text: String,
}

impl DeploymentFile {
    /// For that target, with a lease of that length, three tries and short delays between them.
    #[must_use]
    pub fn new(target: &str, ttl: Duration) -> Self {
        let ttl = ttl.as_millis();
        let text = format!(
            r#"schema = "holdfast/v1"
target = "{target}"

[lease]
ttl = "{ttl}ms"

[cancel]
grace = "1s"

[retry]
max_attempts = 3
backoff = {{ initial = "100ms", max = "500ms" }}
"#
        );
        Self { text }
    }

    /// With one more step that runs a command. `retry` is `unsafe`, `idempotent` or `pure`.
    #[must_use]
    pub fn mutates(self, name: &str, retry: &str, argv: &[String]) -> Self {
        self.step(name, &format!("retry = \"{retry}\"\nrun = {argv:?}\n"))
    }

    /// With one more step that runs a command which changes nothing.
    #[must_use]
    pub fn looks(self, name: &str, argv: &[String]) -> Self {
        self.step(name, &format!("effect = \"none\"\nrun = {argv:?}\n"))
    }

    /// With one more step that applies a release.
    #[must_use]
    pub fn release(self, name: &str, archive: &Archive, revision: &str) -> Self {
        let Archive { path, sha256 } = archive;
        self.step(
            name,
            &format!(
                "retry = \"idempotent\"\nwith = {{ archive = {path:?}, sha256 = \"{sha256}\", revision = \"{revision}\" }}\n"
            ),
        )
    }

    /// With one more step that migrates the resource `db`.
    #[must_use]
    pub fn migrates(self, name: &str, folder: &Path, to: &str) -> Self {
        let keys = "resource = \"db\"\ndata = \"expand\"\nretry = \"idempotent\"\n";
        self.step(name, &format!("{keys}with = {{ migrations = {folder:?}, to = {to:?} }}\n"))
    }

    /// With one more step that asks a change of the target's one resource, its `with` as TOML.
    #[must_use]
    pub fn with(self, name: &str, with: &str) -> Self {
        self.step(name, &format!("retry = \"idempotent\"\nwith = {{ {with} }}\n"))
    }

    /// With one more health check, its keys as TOML lines.
    #[must_use]
    pub fn verify(mut self, keys: &str) -> Self {
        write!(self.text, "\n[[verify]]\n{keys}").expect("a string can be written");
        self
    }

    /// With a health check that looks whether a file is there, every 100 ms, for that long, at most a minute.
    #[must_use]
    pub fn verify_file(self, name: &str, path: &Path, hold: Duration) -> Self {
        let hold = hold.as_millis();
        self.verify(&format!(
            "name = \"{name}\"\ncommand = [\"test\", \"-e\", {path:?}]\nfor = \"{hold}ms\"\ninterval = \"100ms\"\ntimeout = \"1m\"\n"
        ))
    }

    /// With a way back, as TOML lines.
    #[must_use]
    pub fn rollback(mut self, keys: &str) -> Self {
        write!(self.text, "\n[rollback]\n{keys}").expect("a string can be written");
        self
    }

    /// With more about when another try follows, as TOML lines.
    #[must_use]
    pub fn retries(mut self, keys: &str) -> Self {
        self.text = self.text.replace("[retry]\n", &format!("[retry]\n{keys}"));
        self
    }

    /// With deadlines of the whole, as TOML lines.
    #[must_use]
    pub fn timeouts(mut self, keys: &str) -> Self {
        write!(self.text, "\n[timeouts]\n{keys}").expect("a string can be written");
        self
    }

    /// With another time from SIGTERM to SIGKILL.
    #[must_use]
    pub fn grace(mut self, grace: &str) -> Self {
        self.text = self.text.replace("grace = \"1s\"", &format!("grace = \"{grace}\""));
        self
    }

    /// With one more step, its keys as TOML lines.
    #[must_use]
    pub fn step(mut self, name: &str, keys: &str) -> Self {
        write!(self.text, "\n[[step]]\nname = \"{name}\"\n{keys}").expect("a string can be written");
        self
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}
