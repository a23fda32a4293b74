//! What a trial says of systems that answer, refuse, or say nothing.

use super::{Host, says};
use crate::git::remote::{Bare, Resource, change};
use crate::http::api::Api;
use crate::http::proxy::{Manner, Proxy};
use crate::postgres::shop::{Role, Shop};
use crate::support::{Folder, fence};

const GOES_WELL: &str = "a raise that changes nothing goes well, twice";
const KEPT_APART: &str = "the inspect credentials can't raise the fence";

/// The example's API behind a proxy, with a fence that was raised.
struct Service {
    folder: Folder,
    proxy: Proxy,
    _api: Api,
}

impl Service {
    fn new() -> Self {
        let folder = Folder::new();
        let api = Api::start(&folder.0, "api.db", "shop@prod/service");
        let proxy = Proxy::start(api.address, api.data.clone());
        let raised = rusqlite::Connection::open(&api.data).unwrap();
        raised
            .execute(
                "UPDATE resource SET highest_fence = ?1, revision = 'v1'",
                [i64::try_from(fence(3).as_u64()).unwrap()],
            )
            .unwrap();
        Self { folder, proxy, _api: api }
    }

    /// A host that shows these tokens, and a target that declares this.
    fn host(&self, tokens: [&str; 3], with: &str) -> Host {
        let sets = ["deploy", "inspect", "fence"].into_iter().zip(tokens).map(|(set, token)| {
            format!("[resource.credentials.{set}]\nfiles = {{ bearer = {:?} }}\n", self.folder.0.join(token))
        });
        let policy = format!(
            "[[resource]]\ntarget = \"shop@prod\"\nname = \"service\"\nadapter = \"http\"\nat = [\"http://{}\"]\n",
            self.proxy.address
        );
        let with = format!("url = \"http://{}\"\nsubmit = \"/deployments\"\n{with}", self.proxy.address);
        let resource = format!("name = \"service\"\nadapter = \"http\"\n[resource.with]\n{with}");
        Host::of(&(policy + &sets.collect::<String>()), &resource)
    }
}

const TOKENS: [&str; 3] = ["deploy", "inspect", "fence"];
const CHECKS: &str = r#"status = "/deployments/{operation}"
resource = "/"
fence = "/fence"
enforce = "fence"
headers = { idempotency = "Idempotency-Key", fence = "Holdfast-Fence", expected = "If-Match" }
pointers = { fence = "/highest_fence", owner = "/owner" }
"#;

#[test]
fn an_api_shows_whom_it_lets_raise_a_fence() {
    let service = Service::new();
    let (status, found) = service.host(TOKENS, CHECKS).verdicts("service");
    assert_eq!(status, Some(0), "{found:?}");
    for what in ["it has an identity", "its revision is read", "another target is not let in", GOES_WELL, KEPT_APART] {
        says(&found, what, "shown");
    }
    assert_eq!(service.proxy.posts(), ["/fence"; 3], "it was tried");
}

#[test]
fn credentials_that_an_api_does_not_let_raise_a_fence_are_found_though_it_stands() {
    let service = Service::new();
    let (status, found) = service.host(["deploy", "inspect", "deploy"], CHECKS).verdicts("service");
    assert_eq!(status, Some(1), "{found:?}");
    says(&found, GOES_WELL, "false");
    let (_, found) = service.host(["deploy", "fence", "fence"], CHECKS).verdicts("service");
    says(&found, GOES_WELL, "shown");
    says(&found, KEPT_APART, "gap");
}

#[test]
fn an_answer_that_says_nothing_shows_neither() {
    let service = Service::new();
    let host = service.host(TOKENS, CHECKS);
    service.proxy.next(&[Manner::Pass, Manner::Pass, Manner::Answer(503)]);
    let (status, found) = host.verdicts("service");
    says(&found, GOES_WELL, "shown");
    says(&found, KEPT_APART, "unclear");
    assert_eq!(status, Some(0));
    service.proxy.next(&[Manner::Pass, Manner::Swallow]);
    says(&host.verdicts("service").1, GOES_WELL, "unclear");
}

#[test]
fn what_an_api_is_not_declared_to_tell_is_a_gap() {
    let service = Service::new();
    let (_, found) = service.host(TOKENS, &CHECKS.replace(", owner = \"/owner\"", "")).verdicts("service");
    says(&found, "another target is not let in", "gap");
    let (_, found) = service.host(TOKENS, "resource = \"/\"\n").verdicts("service");
    says(&found, "another target is not let in", "gap");
    says(&found, "its revision is read", "shown");
    let less = "status = \"/deployments/{operation}\"\nheaders = { idempotency = \"Idempotency-Key\" }\n";
    let (_, found) = service.host(TOKENS, less).verdicts("service");
    for what in ["it has an identity", "its revision is read", "another target is not let in", GOES_WELL] {
        says(&found, what, "gap");
    }
}

#[test]
fn a_repository_is_not_asked_to_raise_what_stands() {
    let bare = Bare::new(&["main"]);
    assert!(Resource::of(&bare, &["main"], "apps/shop").apply(change(1), fence(3)).status().unwrap().success());
    let set = bare.folder.0.join("inspect.env");
    std::fs::write(&set, "GIT_AUTHOR_NAME=anna\n").unwrap();
    let policy = format!(
        "[[resource]]\ntarget = \"shop@prod\"\nname = \"site\"\nadapter = \"git\"\nat = [{:?}]\n[resource.credentials.inspect]\nenvironment_file = {set:?}\n",
        bare.path
    );
    let with = format!("url = {:?}, branches = [\"main\"], path = \"apps/shop\"", bare.path);
    let host = Host::of(&policy, &format!("name = \"site\"\nadapter = \"git\"\nwith = {{ {with} }}"));
    let (status, found) = host.verdicts("site");
    assert_eq!(status, Some(0), "{found:?}");
    for what in ["it tells the highest fence that it has seen", "another target is not let in"] {
        says(&found, what, "shown");
    }
    for what in [GOES_WELL, KEPT_APART] {
        says(&found, what, "not_tried");
    }
}

#[test]
fn a_database_shows_which_role_may_raise_a_fence() {
    let shop = Shop::new();
    let _ = shop.raise(&shop.to(1, "0001"), fence(3));
    let host = |fence: Role| {
        let sets = [("deploy", Role::Deploy), ("inspect", Role::Inspect), ("fence", fence)].map(|(set, role)| {
            let path = shop.folder.0.join(format!("{set}.env"));
            let (port, role, secret) = (shop.server.port(), role.name(), role.password());
            let text = format!("PGHOST=127.0.0.1\nPGPORT={port}\nPGUSER={role}\nPGPASSWORD={secret}\n");
            std::fs::write(&path, text).unwrap();
            format!("[resource.credentials.{set}]\nenvironment_file = {path:?}\n")
        });
        let policy = "[[resource]]\ntarget = \"shop@prod\"\nname = \"db\"\nadapter = \"postgres\"\n".to_owned();
        let with = format!("schema = \"shop\", database = {:?}", shop.database);
        Host::of(&(policy + &sets.concat()), &format!("name = \"db\"\nadapter = \"postgres\"\nwith = {{ {with} }}"))
    };
    let (status, found) = host(Role::Fence).verdicts("db");
    assert_eq!(status, Some(0), "{found:?}");
    says(&found, "its revision is read", "not_tried");
    for what in ["another target is not let in", GOES_WELL, KEPT_APART] {
        says(&found, what, "shown");
    }
    let (status, found) = host(Role::Deploy).verdicts("db");
    assert_eq!(status, Some(1));
    says(&found, GOES_WELL, "false");
}
