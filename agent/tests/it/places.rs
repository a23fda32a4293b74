//! Real systems, each asked with the host's own credentials where `resource.at` lists it, and no other asked where it does not.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::git::remote::Bare;
use crate::git::server::Server;
use crate::http::api::{Api, DEPLOY, FENCE, INSPECT};
use crate::postgres::shop::{Role, Shop};
use crate::support::Folder;
use crate::trial::{Host, says};

const READ: &str = "it can be read";

/// Whoever only the target names.
struct Elsewhere(TcpListener);

impl Elsewhere {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    /// A connection waits here from the moment that whoever made it goes on.
    fn was_asked(&self) -> bool {
        self.0.accept().is_ok()
    }
}

/// A host with that rule tries a resource; its rule refuses it, and nobody was connected to.
#[track_caller]
fn is_refused(policy: &str, resource: &str, elsewhere: &Elsewhere, why: &str) {
    let host = Host::of(policy, resource);
    let (status, stdout, stderr) = host.test("thing", &[]);
    assert_eq!(status, Some(1), "{stdout} {stderr}");
    assert!(stdout.contains(&format!("refused by resource.at of this host: {why}")), "{stdout}");
    assert!(!stdout.contains(READ), "nothing was tried: {stdout}");
    assert!(!elsewhere.was_asked(), "{resource}");
    let own = TcpStream::connect(elsewhere.address()).unwrap();
    assert!(elsewhere.was_asked(), "whoever comes is seen");
    drop(own);
}

#[track_caller]
fn is_read(policy: &str, resource: &str) {
    let (status, found) = Host::of(policy, resource).verdicts("thing");
    assert_eq!(status, Some(0), "{found:?}");
    says(&found, "this host allows it", "shown");
    says(&found, READ, "shown");
}

/// What the host says of `thing`, with a file of variables for each set.
fn policy(folder: &Folder, adapter: &str, at: &str, sets: [&str; 3]) -> String {
    let names = ["deploy", "inspect", "fence"];
    let lines = names.iter().zip(sets).map(|(name, variables)| {
        let path = folder.0.join(format!("{name}.env"));
        std::fs::write(&path, variables).unwrap();
        format!("credentials.{name} = {{ environment_file = {path:?} }}\n")
    });
    let lines: String = lines.collect();
    format!("[[resource]]\ntarget = \"shop@prod\"\nname = \"thing\"\nadapter = {adapter:?}\n{at}\n{lines}")
}

fn repository(url: &str) -> String {
    format!("name = \"thing\"\nadapter = \"git\"\nwith = {{ url = {url:?}, branches = [\"main\"] }}")
}

#[test]
fn a_repository_is_asked_where_the_host_lists_it_and_no_other_is_asked() {
    let (folder, bare, elsewhere) = (Folder::new(), Bare::new(&["main"]), Elsewhere::new());
    let server = Server::of(&bare.folder.0);
    server.ways.locked.store(true, Ordering::SeqCst);
    let set = "GIT_USERNAME=deploy\nGIT_PASSWORD=geheimnis\n";
    let rule = |at: &str| policy(&folder, "git", at, [set; 3]);
    let at = format!("at = [\"http://{}\"]", server.address());
    is_read(&rule(&at), &repository(&server.url("remote.git")));
    let other = format!("http://{}/remote.git", elsewhere.address());
    let listed = format!("{other} is not http://{} or below", server.address());
    is_refused(&rule(&at), &repository(&other), &elsewhere, &listed);
    let missing = format!("it is missing, and nothing else lets this host's credentials go to {other:?}");
    is_refused(&rule(""), &repository(&other), &elsewhere, &missing);
    let by_user = format!("at = [\"http://{}/shop\"]", server.address());
    let above = server.url("shop/%2e%2e/remote.git");
    is_refused(&rule(&by_user), &repository(&above), &elsewhere, &format!("{above:?} has a path"));
}

#[test]
fn a_folder_is_a_repository_where_the_host_lists_it_and_no_other_is() {
    let (folder, inside, outside, elsewhere) =
        (Folder::new(), Bare::new(&["main"]), Bare::new(&["main"]), Elsewhere::new());
    let real = |path: &Path| path.canonicalize().unwrap();
    let rule = policy(&folder, "git", &format!("at = [{:?}]", inside.folder.0), [""; 3]);
    is_read(&rule, &repository(inside.path.to_str().unwrap()));
    let link = inside.folder.0.join("link.git");
    std::os::unix::fs::symlink(&outside.path, &link).unwrap();
    let why = format!("{} is not {} or below", real(&outside.path).display(), inside.folder.0.display());
    let before = outside.refs();
    is_refused(&rule, &repository(outside.path.to_str().unwrap()), &elsewhere, &why);
    let why = format!("{link:?} leads elsewhere: name the repository's own folder");
    is_refused(&rule, &repository(link.to_str().unwrap()), &elsewhere, &why);
    assert_eq!(outside.refs(), before);
}

#[test]
fn an_api_is_asked_where_the_host_lists_it_and_no_other_is_asked() {
    let (folder, elsewhere) = (Folder::new(), Elsewhere::new());
    let api = Api::start(&folder.0, "api.db", "shop@prod/thing");
    let sets = [DEPLOY, INSPECT, FENCE].map(|token| format!("HTTP_BEARER={token}\n"));
    let rule = |at: &str| policy(&folder, "http", at, [&sets[0], &sets[1], &sets[2]]);
    let declared = |address: SocketAddr| {
        format!(
            "name = \"thing\"\nadapter = \"http\"\n\
             with = {{ url = \"http://{address}\", submit = \"/deployments\", status = \"/deployments/{{operation}}\", resource = \"/\", \
             headers = {{ idempotency = \"Idempotency-Key\" }}, states = {{ applied = [\"succeeded\"] }} }}"
        )
    };
    let at = format!("at = [\"http://{}/\"]", api.address);
    is_read(&rule(&at), &declared(api.address));
    let other = elsewhere.address();
    let why = format!("http://{other} is not http://{}/ or below", api.address);
    is_refused(&rule(&at), &declared(other), &elsewhere, &why);
    let why = format!("it is missing, and nothing else lets this host's credentials go to \"http://{other}\"");
    is_refused(&rule(""), &declared(other), &elsewhere, &why);
}

#[test]
fn a_database_is_asked_where_the_host_lists_it_and_no_other_is_asked() {
    let (folder, shop, elsewhere) = (Folder::new(), Shop::new(), Elsewhere::new());
    // One of the roles for this look; no set names a server.
    shop.sql("UPDATE holdfast.resource SET owner = 'shop@prod/thing' WHERE schema_name = 'shop'");
    let set = |role: Role| format!("PGUSER={}\nPGPASSWORD='{}'\n", role.name(), role.password());
    let sets = [Role::Deploy, Role::Inspect, Role::Fence].map(set);
    let rule = |at: &str| policy(&folder, "postgres", at, [&sets[0], &sets[1], &sets[2]]);
    let declared = |address: &str, database: &str| {
        format!(
            "name = \"thing\"\nadapter = \"postgres\"\nwith = {{ schema = \"shop\", server = {address:?}, database = {database:?} }}"
        )
    };
    let (own, database) = (format!("127.0.0.1:{}", shop.server.port()), shop.database.as_str());
    let at = format!("at = [\"postgres://{own}/{database}\"]");
    is_read(&rule(&at), &declared(&own, database));
    let other = elsewhere.address().to_string();
    let why =
        |server: &str, name: &str| format!("postgres://{server}/{name} is not postgres://{own}/{database} or below");
    is_refused(&rule(&at), &declared(&other, database), &elsewhere, &why(&other, database));
    is_refused(&rule(&at), &declared(&own, "postgres"), &elsewhere, &why(&own, "postgres"));
    // Without the rule the adapter itself shows the credentials to nobody.
    let (status, stdout, _) = Host::of(&rule(""), &declared(&other, database)).test("thing", &[]);
    assert_eq!(status, Some(1), "{stdout}");
    assert!(stdout.contains("nothing says for which server the credentials are"), "{stdout}");
    assert!(!elsewhere.was_asked());
}

#[test]
fn a_database_on_a_local_socket_is_named_by_the_credentials_alone() {
    let (folder, shop, elsewhere) = (Folder::new(), Shop::new(), Elsewhere::new());
    shop.sql("UPDATE holdfast.resource SET owner = 'shop@prod/thing' WHERE schema_name = 'shop'");
    let (socket, port) = (shop.server.socket().display().to_string(), shop.server.port());
    let set = |role: Role| format!("PGHOST={socket}\nPGPORT={port}\nPGUSER={}\n", role.name());
    let sets = [Role::Deploy, Role::Inspect, Role::Fence].map(set);
    let at = format!("at = [\"postgres:///{}\"]", shop.database);
    let rule = policy(&folder, "postgres", &at, [&sets[0], &sets[1], &sets[2]]);
    let declared = |more: &str, database: &str| {
        format!(
            "name = \"thing\"\nadapter = \"postgres\"\nwith = {{ schema = \"shop\", {more}database = {database:?} }}"
        )
    };
    is_read(&rule, &declared("", &shop.database));
    let why = |place: &str| format!("{place} is not postgres:///{} or below", shop.database);
    is_refused(&rule, &declared("", "postgres"), &elsewhere, &why("postgres:///postgres"));
    let (server, name) = (elsewhere.address(), &shop.database);
    let named = declared(&format!("server = \"{server}\", "), name);
    is_refused(&rule, &named, &elsewhere, &why(&format!("postgres://{server}/{name}")));
}
