//! The rule asked as the agent asks it: at the offer, before a launch, a look and a raise.

use std::collections::BTreeSet;
use std::path::PathBuf;

use holdfast_agent_core::work::Assignment;
use holdfast_common::claim::Claim;
use holdfast_common::fence::{Epoch, Fence};
use holdfast_common::file::TargetFile;
use holdfast_common::id::{AttemptId, DeploymentId, EvidenceId, OperationId, StepName, TargetName};
use holdfast_common::rollback::DataEffect;
use holdfast_common::spec::{PlanDigest, RetryClass, StepBody, StepEffect, StepSpec};
use holdfast_common::system::{Change, Submit};
use holdfast_common::time::Millis;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::config::Config;
use crate::policy::{Findings, Host, Occasion, check, words};
use crate::session::{Inquiry, Question};

/// A folder that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("holdfast-at-{}", Uuid::new_v4().simple()));
        std::fs::create_dir(&path).unwrap();
        Self(path.canonicalize().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A host that says this of its only resource, `thing` of `shop@prod`.
fn config(folder: &Folder, rule: &serde_json::Value) -> Config {
    let mut said = json!({ "target": "shop@prod", "name": "thing" });
    said.as_object_mut().unwrap().extend(rule.as_object().unwrap().clone());
    let config = json!({
        "state_dir": folder.0,
        "coordinator": { "address": "127.0.0.1:1" },
        "identity": { "dir": "/nowhere" },
        "resource": [said],
    });
    serde_json::from_value(config).unwrap()
}

/// With credentials, which nobody reads before the policy was asked.
fn with_credentials(adapter: &str, at: Option<&[&str]>) -> serde_json::Value {
    let credentials = json!({ "deploy": { "files": { "secret": "/nowhere/secret" } } });
    match at {
        Some(at) => json!({ "adapter": adapter, "at": at, "credentials": credentials }),
        None => json!({ "adapter": adapter, "credentials": credentials }),
    }
}

fn target(adapter: &str, with: &str) -> ResourceSpec {
    let text = format!(
        "schema = \"holdfast/v1\"\nname = \"shop@prod\"\nagents = {{ role = \"shop\" }}\n\n[[resource]]\nname = \"thing\"\nadapter = {adapter:?}\nreach = \"shared\"\nwith = {{ {with} }}\n"
    );
    let file = TargetFile::parse(&text).unwrap_or_else(|errors| panic!("{errors}"));
    file.resources.into_iter().next().expect("it has one")
}

fn repository_at(url: &str) -> ResourceSpec {
    target("git", &format!("url = {url:?}, branches = [\"main\"]"))
}

fn api_at(url: &str) -> ResourceSpec {
    target("http", &format!("url = {url:?}, submit = \"/deployments\", resource = \"/?full=1\""))
}

fn database_at(server: &str, database: &str) -> ResourceSpec {
    target("postgres", &format!("schema = \"shop\", server = {server:?}, database = {database:?}"))
}

fn step(resource: &ResourceSpec) -> StepSpec {
    let change =
        Change::Submit(Submit { body: String::new(), content_type: "text/plain".to_owned(), headers: [].into() });
    StepSpec {
        name: StepName::new("change").unwrap(),
        effect: StepEffect::Mutates,
        resource: Some(resource.name.clone()),
        retry: RetryClass::Idempotent,
        body: StepBody::System(change),
        revision: None,
        expected_revision: None,
        timeout: None,
        data: DataEffect::None,
    }
}

fn assignment(resource: &ResourceSpec) -> Assignment {
    let fence = Fence::first(Epoch(1)).unwrap();
    Assignment {
        claim: Claim { deployment: DeploymentId(Uuid::nil()), attempt: AttemptId(Uuid::nil()), fence },
        target: TargetName::new("shop@prod").unwrap(),
        number: 1,
        plan: PlanDigest("plan".to_owned()),
        steps: vec![step(resource)],
        resources: vec![resource.clone()],
        carried: BTreeSet::new(),
        grace: Millis(10),
        goes_on: None,
        carries: Vec::new(),
        transient_exit_codes: BTreeSet::new(),
    }
}

fn inquiry(resource: &ResourceSpec, question: Question) -> Inquiry {
    let step = step(resource);
    Inquiry {
        id: EvidenceId(Uuid::nil()),
        target: TargetName::new("shop@prod").unwrap(),
        resource: resource.clone(),
        operation: OperationId { deployment: DeploymentId(Uuid::nil()), step: step.name.clone() },
        step,
        question,
    }
}

/// Every way in which a host is asked, and by which name it keeps a refusal.
fn ask_all(host: &Host, resource: &ResourceSpec) -> Vec<(&'static str, Result<(), Refusal>)> {
    let (assignment, step) = (assignment(resource), step(resource));
    let fence = assignment.claim.fence;
    vec![
        ("offer", host.offer(&assignment)),
        ("archive", host.archive(&assignment, &step)),
        ("launch", host.step(&assignment, &step, Path::new("/")).map(drop)),
        ("inspect", host.look(&assignment, resource).map(drop)),
        ("inspect", host.inquiry(&inquiry(resource, Question::Inspect)).map(drop)),
        ("fence-off", host.inquiry(&inquiry(resource, Question::FenceOff(fence))).map(drop)),
    ]
}

/// The sentence, which is the same wherever it is asked; `None`: it is allowed everywhere.
#[track_caller]
fn refused(rule: &serde_json::Value, resource: &ResourceSpec) -> Option<String> {
    let folder = Folder::new();
    let host = Host::of(&config(&folder, rule));
    let said: Vec<_> =
        ask_all(&host, resource).into_iter().map(|(_, found)| found.err().map(|why| why.to_string())).collect();
    assert!(said.iter().all(|one| *one == said[0]), "{said:?}");
    said.into_iter().next().expect("it was asked")
}

const REPOSITORIES: &[&str] = &["https://git.example/shop", "ssh://git@git.example/repos"];
const API: &[&str] = &["https://deploy.example/api"];
const DATABASE: &[&str] = &["postgres://db.example:5432/shop"];

#[test]
fn where_a_target_names_a_listed_place_it_may_be_there() {
    for (rule, resource) in [
        (with_credentials("git", Some(REPOSITORIES)), repository_at("https://git.example/shop/site.git")),
        (with_credentials("git", Some(REPOSITORIES)), repository_at("ssh://git@git.example/repos/site.git")),
        (with_credentials("http", Some(API)), api_at("https://deploy.example/api/")),
        (with_credentials("postgres", Some(DATABASE)), database_at("db.example:5432", "shop")),
        // Without credentials nothing of this host is told to anybody.
        (json!({ "adapter": "git" }), repository_at("https://git.example/shop/site.git")),
        (json!({ "adapter": "http" }), api_at("https://evil.example/api")),
        // The password's own set says where it may go.
        (with_credentials("postgres", None), database_at("db.example:5432", "shop")),
    ] {
        assert_eq!(refused(&rule, &resource), None, "{rule}");
    }
}

#[test]
fn where_a_target_names_another_place_the_rule_says_so_wherever_it_is_asked() {
    for (rule, resource, why) in [
        (
            with_credentials("git", Some(REPOSITORIES)),
            repository_at("https://git.example.evil/shop/site.git"),
            "https://git.example.evil/shop/site.git is not https://git.example/shop, ssh://git@git.example/repos or below",
        ),
        (
            with_credentials("git", Some(REPOSITORIES)),
            repository_at("https://git.example/shop/%2e%2e/all.git"),
            "\"https://git.example/shop/%2e%2e/all.git\" has a path that is not written plainly: parts of letters, digits and -._~+@=,: with no \"..\" and none empty",
        ),
        (
            with_credentials("http", Some(API)),
            api_at("https://evil.example/api"),
            "https://evil.example/api is not https://deploy.example/api or below",
        ),
        (
            with_credentials("postgres", Some(DATABASE)),
            database_at("evil.example:5432", "shop"),
            "postgres://evil.example:5432/shop is not postgres://db.example:5432/shop or below",
        ),
        (
            with_credentials("git", None),
            repository_at("https://git.example/shop/site.git"),
            "it is missing, and nothing else lets this host's credentials go to \"https://git.example/shop/site.git\"",
        ),
        (
            with_credentials("http", None),
            api_at("https://deploy.example/api"),
            "it is missing, and nothing else lets this host's credentials go to \"https://deploy.example/api\"",
        ),
        (
            json!({ "adapter": "external", "at": API }),
            target("external", "program = \"flags\""),
            "where adapter external goes can't be told from a target",
        ),
        (
            json!({ "adapter": "http", "at": [] }),
            api_at("https://deploy.example/api"),
            "https://deploy.example/api is not in it: it lists nothing",
        ),
    ] {
        assert_eq!(refused(&rule, &resource), Some(format!("refused by resource.at of this host: {why}")), "{rule}");
    }
}

/// What reaches an agent need not have come through a file that was checked.
#[test]
fn a_path_of_an_api_leads_nowhere_else() {
    let rule = with_credentials("http", Some(API));
    let odd = [
        "@evil.example/",
        ".evil.example/",
        ":8443/",
        "",
        "/../admin",
        "/%2e%2e/admin",
        "/..",
        "/\\evil",
        "//evil.example",
        "/x/./y",
        "/{operation}/../..",
        "/\t",
        "/#x",
    ];
    let sound = ["/", "/deployments", "/deployments/{operation}", "/x?to=/../%2e%2e", "/x/"];
    for (path, is_allowed) in odd.map(|path| (path, false)).into_iter().chain(sound.map(|path| (path, true))) {
        for change in [
            |http: &mut Http, path: &str| http.submit = path.to_owned(),
            |http: &mut Http, path: &str| http.status = Some(path.to_owned()),
            |http: &mut Http, path: &str| http.resource = Some(path.to_owned()),
            |http: &mut Http, path: &str| http.fence = Some(path.to_owned()),
        ] {
            let mut resource = api_at("https://deploy.example/api");
            let ResourceAdapter::System(System::Http(http)) = &mut resource.adapter else { panic!("an API") };
            change(http, path);
            assert_eq!(refused(&rule, &resource).is_none(), is_allowed, "{path:?}");
        }
    }
}

#[test]
fn a_repository_in_a_folder_is_where_every_link_and_every_way_that_git_takes_it_leads() {
    let folder = Folder::new();
    let place = |name: &str| folder.0.join(name);
    for name in ["git/shop.git", "git/tree/.git", "git-evil/shop.git", "outside.git"] {
        std::fs::create_dir_all(place(name)).unwrap();
    }
    for name in ["git/link.git", "git/bare/.git", "git/named.git"] {
        std::fs::create_dir_all(place(name).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(place("outside.git"), place(name)).unwrap();
    }
    let at = place("git");
    let rule = with_credentials("git", Some(&[at.to_str().unwrap()]));
    std::fs::write(place("git/file.git"), "gitdir: ../outside.git\n").unwrap();
    std::fs::create_dir_all(place("git/common.git")).unwrap();
    std::fs::write(place("git/common.git/commondir"), "../../outside.git\n").unwrap();
    std::fs::create_dir_all(place("git/shared.git")).unwrap();
    std::os::unix::fs::symlink(place("outside.git"), place("git/shared.git/objects")).unwrap();
    for (name, is_allowed) in [
        // A file that names another folder; one that shares another's branches, or objects.
        ("git/file.git", false),
        ("git/file", false),
        ("git/common.git", false),
        ("git/shared.git", false),
        ("git/shop.git", true),
        ("git/tree", true),
        ("git/not-yet.git", true),
        ("git-evil/shop.git", false),
        ("outside.git", false),
        // A link; a work tree whose repository is one; what git finds under a name with `.git` behind it.
        ("git/link.git", false),
        ("git/bare", false),
        ("git/named", false),
    ] {
        let found = refused(&rule, &repository_at(place(name).to_str().unwrap()));
        assert_eq!(found.is_none(), is_allowed, "{name}: {found:?}");
    }
    let unlisted = repository_at(place("git/shop.git").to_str().unwrap());
    for rule in [json!({ "adapter": "git" }), with_credentials("git", None)] {
        assert!(refused(&rule, &unlisted).is_some_and(|why| why.contains("nothing else lets git work in")), "{rule}");
    }
    let mut above = repository_at("/srv/git");
    let ResourceAdapter::System(System::Git(git)) = &mut above.adapter else { panic!("a repository") };
    git.url = format!("{}/../outside.git", at.display());
    assert!(refused(&rule, &above).is_some());
}

#[test]
fn what_a_target_leaves_to_the_credentials_must_fit_every_place_of_the_list() {
    let rule =
        with_credentials("postgres", Some(&["postgres://db.example:5432/shop", "postgres://other.example:5432"]));
    let named = |with: &str| target("postgres", &format!("schema = \"shop\"{with}"));
    for (with, is_allowed) in [
        (", database = \"payroll\"", false),
        (", database = \"shop\"", true),
        (", server = \"other.example:5432\", database = \"payroll\"", true),
        (", server = \"other.example:5432\"", false),
        ("", true),
    ] {
        assert_eq!(refused(&rule, &named(with)).is_none(), is_allowed, "{with}");
    }
}

#[test]
fn a_refusal_is_kept_with_its_rule() {
    let folder = Folder::new();
    let host = Host::of(&config(&folder, &with_credentials("http", Some(API))));
    let asked: Vec<_> = ask_all(&host, &api_at("https://evil.example")).into_iter().map(|(asked, _)| asked).collect();
    let kept = crate::policy::Refusals::below(&folder.0).all().unwrap();
    assert_eq!(kept.iter().map(|one| one.asked.as_str()).collect::<Vec<_>>(), asked);
    for one in &kept {
        assert_eq!((one.rule.as_str(), one.target.as_str()), ("resource.at", "shop@prod"));
        assert_eq!(one.why, "https://evil.example is not https://deploy.example/api or below");
    }
}

/// A grant is what makes an adapter tell a password to the server that the target names.
#[test]
fn only_a_place_that_the_host_lists_is_its_word() {
    let folder = Folder::new();
    let resource = database_at("db.example:5432", "shop");
    for (at, is_placed) in [(Some(DATABASE), true), (None, false)] {
        let host = Host::of(&config(&folder, &with_credentials("postgres", at)));
        assert_eq!(host.look(&assignment(&resource), &resource).unwrap().is_placed, is_placed, "{at:?}");
    }
}

fn found(rule: &serde_json::Value) -> (Findings, String) {
    let folder = Folder::new();
    let config = config(&folder, rule);
    (check(&config, Occasion::ByHand), words(&config).join("\n"))
}

#[test]
fn check_config_says_where_a_resource_may_be() {
    let (findings, words) = found(&json!({ "adapter": "git", "at": REPOSITORIES }));
    assert_eq!(findings.errors, Vec::<String>::new());
    let line = "thing of shop@prod, by git, at https://git.example/shop, ssh://git@git.example/repos or below";
    assert!(words.contains(line), "{words}");
}

#[test]
fn check_config_says_what_is_wrong_with_where_a_resource_may_be() {
    for (rule, error) in [
        (json!({ "adapter": "http", "at": [] }), "at lists nothing"),
        (
            json!({ "adapter": "http", "at": ["ssh://git@git.example"] }),
            "at ssh://git@git.example is nothing that adapter http reaches",
        ),
        (json!({ "adapter": "git", "at": DATABASE }), "is nothing that adapter git reaches"),
        (json!({ "adapter": "postgres", "at": API }), "is nothing that adapter postgres reaches"),
        (json!({ "adapter": "release", "at": ["/srv/shop"] }), "a release has a root"),
        (json!({ "adapter": "command", "at": API }), "where adapter command goes can't be told from a target"),
        (json!({ "adapter": "external", "at": API }), "where adapter external goes can't be told from a target"),
    ] {
        let (findings, _) = found(&rule);
        assert!(findings.errors.iter().any(|one| one.contains(error)), "{rule}: {findings:?}");
    }
    for (adapter, at, is_told) in
        [("git", None, true), ("http", None, true), ("postgres", None, false), ("http", Some(API), false)]
    {
        let (findings, _) = found(&with_credentials(adapter, at));
        let told = findings.warnings.iter().any(|one| one.contains("it has credentials and no `at`"));
        assert_eq!(told, is_told, "{adapter}: {findings:?}");
    }
}

#[test]
fn a_place_that_can_not_be_compared_is_no_configuration() {
    let text =
        json!({ "target": "shop@prod", "name": "thing", "adapter": "http", "at": ["https://deploy.example/a/../b"] });
    let error = serde_json::from_value::<Resource>(text).unwrap_err().to_string();
    assert!(error.contains("\"https://deploy.example/a/../b\" has a path that is not written plainly"), "{error}");
}

#[test]
fn a_folder_that_is_not_written_plainly_is_refused_by_its_key_and_its_text() {
    let folder = Folder::new();
    let file = folder.0.join("agent.toml");
    let head = "state_dir = \"/nowhere\"\n[coordinator]\naddress = \"127.0.0.1:1\"\n[identity]\ndir = \"/nowhere\"\n";
    let table = |name: &str, at: &str| {
        format!(
            "[[resource]]\ntarget = \"shop@prod\"\nname = {name:?}\nadapter = \"git\"\nat = [\"/srv/git\", {at:?}]\n"
        )
    };
    for odd in ["/srv/../git", "/srv//git", "/srv/./git", "/srv/git/", "srv/git"] {
        std::fs::write(&file, format!("{head}{}{}", table("one", "/srv/shop"), table("two", odd))).unwrap();
        let error = holdfast_net::config::load::<Config>(Some(&file), []).unwrap_err().to_string();
        let expected = format!(":15:6: \"resource[1].at\": {odd:?} is ");
        assert!(error.contains(&expected), "{error}");
    }
    let rule = json!({ "adapter": "release", "root": "/srv/../git" });
    assert!(found(&rule).0.errors.iter().any(|one| one.contains("root /srv/../git goes up by \"..\"")), "{rule}");
}
