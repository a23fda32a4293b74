//! `adapter = "git"`, and what a step asks of such a resource.

use super::*;
use crate::adapter::{Enforce, Inspect};
use crate::spec::{ResourceAdapter, StepBody};
use crate::system::{Archive, Change, Commit, Git, System};

const TARGET: &str = r#"
schema = "holdfast/v1"
name = "shop@prod"
agents = { role = "shop" }
[[resource]]
name = "site"
adapter = "git"
reach = "shared"
with = { url = "https://git.example/shop.git", branches = ["main"], path = "apps/shop" }
"#;

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/git/", $name))
    };
}

fn with(text: &str) -> String {
    let from = "{ url = \"https://git.example/shop.git\", branches = [\"main\"], path = \"apps/shop\" }";
    assert!(TARGET.contains(from));
    TARGET.replace(from, text)
}

fn refused(text: &str) -> Errors {
    match TargetFile::parse(text) {
        Ok(_) => panic!("was taken:\n{text}"),
        Err(errors) => errors,
    }
}

fn declared(spec: &TargetSpec) -> &Git {
    let ResourceAdapter::System(System::Git(git)) = &spec.resources[0].adapter else { panic!("{spec:?}") };
    git
}

fn commit(spec: &DeploymentSpec, at: usize) -> &Commit {
    let StepBody::System(Change::Commit(commit)) = &spec.steps[at].body else { panic!("{spec:?}") };
    commit
}

#[test]
fn a_repository_is_read_with_its_defaults() {
    let shop = target(TARGET);
    assert_eq!(
        declared(&shop),
        &Git {
            url: "https://git.example/shop.git".to_owned(),
            branches: vec!["main".to_owned()],
            path: "apps/shop".to_owned(),
        }
    );
    let bare = target(&with(r#"{ url = "/srv/git/shop.git", branches = ["main", "release/1.x"] }"#));
    assert_eq!((declared(&bare).path.as_str(), declared(&bare).branches.len()), ("", 2));
}

#[test]
fn a_url_is_one_that_runs_nothing_and_holds_no_secret() {
    for url in ["/srv/git/shop.git", "https://git.example:8443/a/b.git", "http://[::1]/a", "ssh://git@git.example:22/a"]
    {
        target(&with(&format!("{{ url = {url:?}, branches = [\"main\"] }}")));
    }
    for url in [
        "",
        "shop.git",
        "git@git.example:shop.git",
        "ext::sh -c id",
        "--upload-pack=id",
        "file:///srv/shop.git",
        "git://git.example/a",
        "https://",
        "https://anna:secret@git.example/a",
        "https://token@git.example/a",
        "ssh://git:secret@git.example/a",
        "ssh://-oProxyCommand=id/a",
        "ssh://git@-oProxyCommand=id/a",
        "https://git.example/a b",
        "/srv/../etc",
    ] {
        let errors = refused(&with(&format!("{{ url = {url:?}, branches = [\"main\"] }}")));
        is(only(&errors), Code::InvalidValue, "9:16", "resource[0].with.url", "");
    }
}

#[test]
fn branches_and_the_path_are_plain_names() {
    for branch in ["", "-f", "a..b", "a b", "main:x", "*", "a.lock", ".a", "a/", "@", "a@{1}", "refs/heads/a~1", "ä"] {
        let errors = refused(&with(&format!("{{ url = \"/srv/a\", branches = [{branch:?}] }}")));
        assert_eq!(only(&errors).code, Code::InvalidValue, "{branch}");
    }
    for branches in ["[]", "[\"a\", \"a\"]"] {
        assert_eq!(
            only(&refused(&with(&format!("{{ url = \"/srv/a\", branches = {branches} }}")))).code,
            Code::InvalidValue
        );
    }
    for path in ["", "/a", "a/", "a//b", "a/../b", ".git", "a/.GIT", "."] {
        let errors = refused(&with(&format!("{{ url = \"/srv/a\", branches = [\"a\"], path = {path:?} }}")));
        assert_eq!(only(&errors).code, Code::InvalidValue, "{path}");
    }
}

#[test]
fn two_resources_are_one_place_only_with_the_same_repository_branches_and_folder() {
    let place =
        |text: &str| target(&with(text)).resources[0].adapter.system().and_then(System::place).expect("a place");
    let one = place(r#"{ url = "https://git.example/a.git", branches = ["x", "y"], path = "p" }"#);
    assert_eq!(place(r#"{ url = "https://git.example/a/", branches = ["y", "x"], path = "p" }"#), one);
    for other in [
        r#"{ url = "https://git.example/b", branches = ["x", "y"], path = "p" }"#,
        r#"{ url = "https://git.example/a", branches = ["x"], path = "p" }"#,
        r#"{ url = "https://git.example/a", branches = ["x", "y"], path = "q" }"#,
    ] {
        assert_ne!(place(other), one, "{other}");
    }
}

fn resolved(keys: &str, inputs: &[(&str, &str)]) -> Result<DeploymentSpec, Errors> {
    let text = deployment(&format!(
        "inputs.image = {{ type = \"string\", default = \"7\" }}\n[[step]]\nname = \"set\"\nretry = \"idempotent\"\n{keys}"
    ));
    file(&text).resolve(&given(inputs), None, &target(TARGET))
}

#[test]
fn a_commit_is_read_with_its_inputs_and_can_be_proven() {
    let keys = "with = { files = { \"image.txt\" = \"app:${inputs.image}\\n\" }, commit = \"Image ${inputs.image}\", revision = \"v${inputs.image}\" }";
    let spec = resolved(keys, &[("image", "8")]).expect("valid");
    let wanted = Commit {
        archive: None,
        files: given(&[("image.txt", "app:8\n")]),
        keep: true,
        message: Some("Image 8".to_owned()),
    };
    assert_eq!(commit(&spec, 0), &wanted);
    assert_eq!(spec.steps[0].revision.as_ref().expect("named").as_str(), "v8");
    let proof = spec.steps[0].capability(&target(TARGET).resources[0]);
    assert_eq!((proof.inspect, proof.enforce, proof.outlives), (Inspect::Operation, Enforce::Fence, true));
    let keys = format!(
        "with = {{ archive = \"/a.tar\", sha256 = {SHA:?}, commit = \"All\", keep = false, revision = \"2\" }}"
    );
    let spec = resolved(&keys, &[]).expect("valid");
    let archive = Archive { archive: "/a.tar".to_owned(), sha256: SHA.to_owned() };
    assert_eq!(commit(&spec, 0).archive, Some(archive));
    assert!(!commit(&spec, 0).keep);
}

#[test]
fn what_a_commit_can_not_be_is_refused_with_its_place() {
    let refused_for = |keys: &str| {
        let keys = format!("with = {{ {keys}, revision = \"1\" }}");
        DeploymentFile::parse(&deployment(&format!("[[step]]\nname = \"set\"\nretry = \"idempotent\"\n{keys}"))).err()
    };
    assert!(refused_for("files = { x = \"\" }").is_none());
    for (keys, code) in [
        ("commit = \"nothing to do\"", Code::MissingKey),
        ("files = { \"../x\" = \"\" }", Code::InvalidValue),
        ("files = { \"/etc/x\" = \"\" }", Code::InvalidValue),
        ("files = { \".git/config\" = \"\" }", Code::InvalidValue),
        ("files = { \"a\\u0001b\" = \"\" }", Code::InvalidValue),
        ("files = { x = \"\" }, commit = \"\"", Code::InvalidValue),
        ("files = { x = \"\" }, commit = \"two\\nlines\"", Code::InvalidValue),
        ("files = { x = \"\" }, archive = \"/a.tar\"", Code::MissingKey),
        ("files = { x = 1 }", Code::InvalidValue),
        ("files = { x = \"\" }, transaction = true", Code::UnknownKey),
        ("files = { x = \"\" }, content_type = \"a/b\"", Code::UnknownKey),
    ] {
        let errors = refused_for(keys).unwrap_or_else(|| panic!("was taken: {keys}"));
        assert_eq!(only(&errors).code, code, "{keys}: {errors}");
    }
    // An input can't bring what the file could not say.
    let keys = "with = { files = { x = \"\" }, commit = \"Image ${inputs.image}\", revision = \"1\" }";
    let errors = resolved(keys, &[("image", &"x".repeat(300))]).expect_err("too long");
    assert_eq!(only(&errors).code, Code::InvalidValue);
}

#[test]
fn a_commit_is_for_a_repository_alone() {
    let text = deployment(
        "[[step]]\nname = \"set\"\nretry = \"idempotent\"\nwith = { files = { x = \"y\" }, revision = \"1\" }",
    );
    let errors = file(&text).resolve(&given(&[]), None, &super::target(super::TARGET)).expect_err("a release");
    assert_eq!(only(&errors).code, Code::InvalidValue);
    let text = deployment(&format!(
        "[[step]]\nname = \"set\"\nwith = {{ archive = \"/a.tar\", sha256 = {SHA:?}, revision = \"1\" }}"
    ));
    let errors = file(&text).resolve(&given(&[]), None, &target(TARGET)).expect_err("no release");
    assert!(only(&errors).message.contains("\"git\""), "{errors}");
}

#[test]
fn the_examples_parse_and_resolve() {
    let cluster = target(example!("cluster.target.toml"));
    let files = file(example!("image.deploy.toml"));
    files.check(&given(&[])).expect("valid without its target");
    let spec =
        files.resolve(&given(&[("image", "registry.example/shop:1.4.2"), ("revision", "1.4.2")]), None, &cluster);
    let spec = spec.expect("valid");
    assert!(commit(&spec, 0).files["image.yaml"].contains("registry.example/shop:1.4.2"));
    let archive = file(example!("manifests.deploy.toml"));
    archive.check(&given(&[])).expect("valid without its target");
    let inputs = given(&[("archive", "/var/tmp/manifests.tar.gz"), ("sha256", SHA), ("revision", "1.4.2")]);
    let spec = archive.resolve(&inputs, None, &cluster).expect("valid");
    assert!(!commit(&spec, 0).keep);
}
