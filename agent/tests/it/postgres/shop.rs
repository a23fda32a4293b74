//! A schema `shop` on a real server, set up as an administrator would, with the three roles and a folder of migrations.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::rc::Rc;

use holdfast_agent::adapters::system::{Call, Operation, Order};
use holdfast_agent::internal::{INTERNAL, name};
use holdfast_common::fence::Fence;
use holdfast_common::id::{OperationId, ResourceName, Revision, TargetName};
use holdfast_common::outcome::Reading;
use holdfast_common::rollback::DataEffect;
use holdfast_common::system::{Change, Migrate, Postgres, System};
use holdfast_tests_postgres::Server;
use uuid::Uuid;

use crate::support::{AGENT, Folder};

/// Who connects.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    Deploy,
    Inspect,
    Fence,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Deploy => "shop_deploy",
            Role::Inspect => "shop_inspect",
            Role::Fence => "shop_fence",
        }
    }

    pub(crate) fn password(self) -> String {
        format!("secret of {}", self.name())
    }
}

thread_local! {
    /// One server for all resources of a test. It ends with the test's thread.
    static SERVER: Rc<Server> = Rc::new(with_roles(Server::start()));
    static DATABASES: Cell<u32> = const { Cell::new(0) };
}

fn with_roles(server: Server) -> Server {
    for role in [Role::Deploy, Role::Inspect, Role::Fence] {
        server.sql("postgres", &format!("CREATE ROLE {} LOGIN PASSWORD '{}'", role.name(), role.password()));
    }
    server
}

pub(crate) struct Shop {
    pub(crate) server: Rc<Server>,
    pub(crate) database: String,
    pub(crate) folder: Folder,
    pub(crate) order: Order,
    pub(crate) migrate: Migrate,
}

impl Shop {
    pub(crate) fn new() -> Self {
        Self::on(SERVER.with(Rc::clone))
    }

    /// On a server of its own.
    pub(crate) fn alone(server: Server) -> Self {
        Self::on(Rc::new(with_roles(server)))
    }

    fn on(server: Rc<Server>) -> Self {
        let number = DATABASES.replace(DATABASES.get() + 1);
        let database = format!("shop_{number}");
        server.sql("postgres", &format!("CREATE DATABASE {database}"));
        let folder = Folder::new();
        fs::create_dir(folder.0.join("db")).unwrap();
        let migrations = folder.0.join("db").to_str().unwrap().to_owned();
        let address = format!("127.0.0.1:{}", server.port());
        let migrate =
            Migrate { archive: None, migrations, to: String::new(), transaction: true, data: DataEffect::Destructive };
        let order = Order {
            target: TargetName::new("shop@prod").unwrap(),
            resource: ResourceName::new("db").unwrap(),
            system: System::Postgres(Postgres {
                schema: "shop".to_owned(),
                server: Some(address),
                database: Some(database.clone()),
            }),
            operation: Operation {
                id: crate::support::operation(1),
                revision: None,
                expected_revision: None,
                change: None,
            },
            call: Call::Inspect,
            program: None,
            is_placed: false,
            cache: folder.0.join("cache"),
        };
        let shop = Self { server, database, folder, order, migrate };
        shop.sql(&setup("shop", "shop@prod", "db"));
        shop
    }

    /// As the administrator.
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.server.sql(&self.database, sql)
    }

    /// Writes a file of the folder.
    pub(crate) fn file(&self, name: &str, text: &str) {
        fs::write(self.folder.0.join("db").join(name), text).unwrap();
    }

    /// The order of an operation that migrates to that version.
    pub(crate) fn to(&self, number: u128, version: &str) -> Order {
        self.ordered(crate::support::operation(number), version, None)
    }

    pub(crate) fn ordered(&self, id: OperationId, version: &str, expected: Option<&str>) -> Order {
        let change = Change::Migrate(Migrate { to: version.to_owned(), ..self.migrate.clone() });
        let expected_revision = expected.map(|text| Revision::new(text).unwrap());
        let revision = Some(Revision::new(version).unwrap());
        Order { operation: Operation { id, revision, expected_revision, change: Some(change) }, ..self.order.clone() }
    }

    pub(crate) fn examine(&self, order: &Order) -> Output {
        self.examining(order).output().unwrap()
    }

    pub(crate) fn examining(&self, order: &Order) -> Command {
        self.call(order, Call::Examine { archive: None, work: self.folder.0.clone() }, Role::Inspect)
    }

    pub(crate) fn apply(&self, order: &Order, fence: Fence) -> Command {
        self.call(order, Call::Apply { fence, archive: None, work: self.folder.0.clone() }, Role::Deploy)
    }

    pub(crate) fn inspect(&self, order: &Order) -> Reading {
        reading(&self.call(order, Call::Inspect, Role::Inspect).output().unwrap())
    }

    pub(crate) fn raise(&self, order: &Order, fence: Fence) -> Reading {
        reading(&self.call(order, Call::Raise { fence }, Role::Fence).output().unwrap())
    }

    /// The real process of a call, with one role's credentials.
    pub(crate) fn call(&self, order: &Order, call: Call, role: Role) -> Command {
        let said = BTreeMap::from([("PGUSER", role.name().to_owned()), ("PGPASSWORD", role.password())]);
        self.command(&Order { call, ..order.clone() }, &said)
    }

    pub(crate) fn command(&self, order: &Order, said: &BTreeMap<&str, String>) -> Command {
        let mut command = Command::new(AGENT);
        let System::Postgres(system) = &order.system else { panic!("a schema") };
        let (host, port) = system.server.as_deref().unwrap().rsplit_once(':').unwrap();
        command
            .args([INTERNAL, name::SYSTEM])
            .env_clear()
            .envs([("PGHOST", host), ("PGPORT", port)])
            .envs(said)
            .stdin(stdin(&self.folder, order));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn stdin(folder: &Folder, order: &Order) -> File {
    let path: PathBuf = folder.0.join(format!("order-{}", Uuid::new_v4()));
    fs::write(&path, serde_json::to_vec(order).unwrap()).unwrap();
    File::open(path).unwrap()
}

/// What `holdfast-agent adapter sql` prints.
pub(crate) fn setup(schema: &str, target: &str, resource: &str) -> String {
    let mut command = Command::new(AGENT);
    command.args(["adapter", "sql", "--schema", schema, "--target", target, "--resource", resource]);
    for (option, role) in [("--deploy", Role::Deploy), ("--inspect", Role::Inspect), ("--fence", Role::Fence)] {
        command.args([option, role.name()]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn reading(output: &Output) -> Reading {
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs it to its end: what it exited with, and what it said.
pub(crate) fn ran(mut command: Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    (output.status.code(), said(&output))
}

/// Stops itself right before a call.
pub(crate) fn stopped_before(mut command: Command, call: &str) -> Child {
    let child = command.env("HOLDFAST_HALT", format!("apply.{call}=stop")).spawn().unwrap();
    assert_eq!(crate::support::wait_for_pause(&child), crate::support::Paused::Stopped);
    child
}
