//! A schema of a real database, with three migrations that each write down that they ran.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use holdfast_agent::adapters::postgres::Claim;
use holdfast_common::id::{ResourceName, TargetName};
use holdfast_tests_postgres::Server;

use crate::folder::Folder;

const DATABASE: &str = "shop";
const ROLES: [&str; 3] = ["deploy", "inspect", "fence"];

/// The resource `db` of one target.
#[derive(Debug)]
pub struct Database {
    server: Server,
    folder: Folder,
    resource: String,
    schema: String,
}

impl Database {
    /// Starts a server, makes the three roles, and lets an administrator claim the schema for that target.
    #[must_use]
    pub fn start(target: &str) -> Self {
        Self::of(target, "db", "shop")
    }

    /// The same for that resource and that schema.
    #[must_use]
    pub fn of(target: &str, resource: &str, schema: &str) -> Self {
        let (server, folder) = (Server::start(), Folder::new());
        server.sql("postgres", &format!("CREATE DATABASE {DATABASE}"));
        for role in ROLES {
            server.sql("postgres", &format!("CREATE ROLE {role} LOGIN PASSWORD 'secret-{role}'"));
            let who = format!("PGDATABASE={DATABASE}\nPGUSER={role}\nPGPASSWORD=secret-{role}\n");
            let path = folder.write(&format!("{role}.env"), &who);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a test's own folder");
        }
        let claim = Claim {
            schema: schema.to_owned(),
            target: TargetName::new(target).expect("a target's name"),
            resource: ResourceName::new(resource).expect("a resource's name"),
            deploy: "deploy".to_owned(),
            inspect: "inspect".to_owned(),
            fence: "fence".to_owned(),
        };
        server.sql(DATABASE, &claim.sql());
        fs::create_dir(folder.path().join("migrations")).expect("a test's own folder");
        let migration = |number: u32, before: &str| {
            let text =
                format!("-- holdfast: data=expand\n{before}INSERT INTO underwent (revision) VALUES ('r{number}');\n");
            folder.write(&format!("migrations/000{number}_one.sql"), &text);
        };
        migration(1, "CREATE TABLE underwent (id serial PRIMARY KEY, revision text NOT NULL);\n");
        migration(2, "");
        migration(3, "");
        Self { server, folder, resource: resource.to_owned(), schema: schema.to_owned() }
    }

    /// The resource, in a target's file.
    #[must_use]
    pub fn resource(&self) -> String {
        format!(
            "[[resource]]\nname = {:?}\nadapter = \"postgres\"\nreach = \"shared\"\n\
             with = {{ schema = {:?}, server = \"127.0.0.1:{}\", database = \"{DATABASE}\" }}\n",
            self.resource,
            self.schema,
            self.server.port()
        )
    }

    /// A target that is this schema alone.
    #[must_use]
    pub fn target_file(&self, target: &str) -> String {
        format!(
            "schema = \"holdfast/v1\"\nname = \"{target}\"\nagents = {{ role = \"shop\" }}\n\n[reconcile]\npolicy = \"manual\"\n\n{}",
            self.resource()
        )
    }

    /// What an agent is told of it.
    #[must_use]
    pub fn rule(&self, target: &str) -> String {
        let set = |role: &str| {
            format!("{role} = {{ environment_file = {:?} }}", self.folder.path().join(format!("{role}.env")))
        };
        let sets = ROLES.map(set).join(", ");
        let (name, at) = (&self.resource, format!("postgres://127.0.0.1:{}/{DATABASE}", self.server.port()));
        format!(
            "{{ target = {target:?}, name = {name:?}, adapter = \"postgres\", at = [{at:?}], credentials = {{ {sets} }} }}"
        )
    }

    /// The folder of the migrations 0001 to 0003.
    #[must_use]
    pub fn migrations(&self) -> PathBuf {
        self.folder.path().join("migrations")
    }

    /// What ran, in order.
    #[must_use]
    pub fn underwent(&self) -> Vec<String> {
        let rows =
            self.server.try_sql(DATABASE, &format!("SELECT revision FROM {}.underwent ORDER BY id", self.schema));
        rows.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// What an administrator reads there.
    #[must_use]
    pub fn sql(&self, sql: &str) -> String {
        self.server.sql(DATABASE, sql)
    }

    /// The server's port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.server.port()
    }
}
