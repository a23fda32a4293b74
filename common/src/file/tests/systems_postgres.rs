//! Schemas in targets, and migrations in deployments.

use super::*;
use crate::adapter::{Adapter, Capability, Enforce, Inspect};
use crate::rollback::DataEffect;
use crate::spec::{ResourceAdapter, RetryClass, StepBody};
use crate::system::{Change, Migrate, Postgres, System};

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/postgres/", $name))
    };
}

const SCHEMA: &str = r#"
schema = "holdfast/v1"
name = "shop@prod"
agents = { role = "shop" }
[[resource]]
name = "db"
adapter = "postgres"
reach = "shared"
with = { schema = "shop", server = "db.example.org:5432", database = "shop" }
"#;

fn resolved(with: &str, keys: &str) -> Result<DeploymentSpec, Errors> {
    let text = deployment(&format!("[[step]]\nname = \"migrate\"\nwith = {with}\n{keys}"));
    DeploymentFile::parse(&text)?.resolve(&given(&[]), None, &target(SCHEMA))
}

fn migrate(with: &str, keys: &str) -> Migrate {
    let spec = resolved(with, keys).unwrap_or_else(|errors| panic!("{errors}"));
    let StepBody::System(Change::Migrate(migrate)) = &spec.steps[0].body else { panic!("{spec:?}") };
    migrate.clone()
}

#[test]
fn a_schema_is_read_and_is_the_same_place_in_every_target() {
    let read = |text: &str| {
        let spec = target(text);
        let ResourceAdapter::System(System::Postgres(postgres)) = &spec.resources[0].adapter else {
            panic!("{spec:?}")
        };
        postgres.clone()
    };
    let whole = read(SCHEMA);
    let (schema, server, database) = ("shop", "db.example.org:5432", "shop");
    assert_eq!(
        whole,
        Postgres { schema: schema.to_owned(), server: Some(server.to_owned()), database: Some(database.to_owned()) }
    );
    assert_eq!(System::Postgres(whole).place().as_deref(), Some("postgres:db.example.org:5432/shop/shop"));
    let bare = SCHEMA.replace(", server = \"db.example.org:5432\", database = \"shop\"", "");
    assert_eq!(System::Postgres(read(&bare)).place(), None, "only the host knows where it is");
}

#[test]
fn what_is_no_schema_of_ones_own_is_refused() {
    for (from, to, code, key) in [
        ("schema = \"shop\"", "schema = \"holdfast\"", Code::InvalidValue, "resource[0].with.schema"),
        ("schema = \"shop\"", "schema = \"pg_catalog\"", Code::InvalidValue, "resource[0].with.schema"),
        ("schema = \"shop\"", "schema = \"Shop\"", Code::InvalidValue, "resource[0].with.schema"),
        ("schema = \"shop\"", "schema = \"a;b\"", Code::InvalidValue, "resource[0].with.schema"),
        ("schema = \"shop\", ", "", Code::MissingKey, "resource[0].with"),
        (":5432", "", Code::InvalidValue, "resource[0].with.server"),
        ("database = \"shop\"", "database = \"\"", Code::InvalidValue, "resource[0].with.database"),
        ("database = \"shop\"", "user = \"shop\"", Code::UnknownKey, "resource[0].with.user"),
    ] {
        let Err(errors) = TargetFile::parse(&SCHEMA.replacen(from, to, 1)) else { panic!("was taken: {to}") };
        let error = only(&errors);
        assert_eq!((error.code, error.key.as_deref()), (code, Some(key)), "{error}");
    }
}

#[test]
fn a_migration_is_read_with_what_its_step_says() {
    let bare = migrate("{ migrations = \"/srv/db\", to = \"0042\" }", "");
    assert_eq!((bare.archive, bare.transaction, bare.data), (None, true, DataEffect::None));
    let archive = format!("{{ archive = \"/srv/a.tgz\", sha256 = \"{SHA}\", migrations = \"db/\", to = \"0042\" }}");
    let whole = migrate(&archive, "data = \"expand\"");
    assert_eq!((whole.archive.is_some(), whole.data), (true, DataEffect::Expand));
    let spec = resolved("{ migrations = \"/srv/db\", to = \"0042\", expected_revision = \"0041\" }", "").unwrap();
    let step = &spec.steps[0];
    assert_eq!(step.revision.as_ref().map(crate::id::Revision::as_str), Some("0042"), "the version is the revision");
    assert_eq!(step.expected_revision.as_ref().map(crate::id::Revision::as_str), Some("0041"));
}

#[test]
fn what_a_migration_can_not_be_is_refused() {
    for (with, keys, code) in [
        ("{ migrations = \"/srv/db\" }", "", Code::MissingKey),
        ("{ to = \"0042\" }", "", Code::MissingKey),
        ("{ migrations = \"/srv/../db\", to = \"0042\" }", "", Code::InvalidValue),
        ("{ migrations = \"/srv/db\", to = \"0042_add\" }", "", Code::InvalidValue),
        ("{ migrations = \"/srv/db\", to = \"\" }", "", Code::InvalidValue),
        ("{ migrations = \"/srv/db\", to = \"0042\", archive = \"/a.tgz\" }", "", Code::MissingKey),
        (
            "{ migrations = \"/srv/db\", to = \"0042\", transaction = false }",
            "retry = \"idempotent\"",
            Code::InvalidValue,
        ),
        ("{ migrations = \"/srv/db\", to = \"0042\", transaction = \"no\" }", "", Code::InvalidValue),
    ] {
        let Err(errors) = resolved(with, keys) else { panic!("was taken: {with} {keys}") };
        assert_eq!(only(&errors).code, code, "{errors}");
    }
}

#[test]
fn the_examples_resolve_and_say_what_they_can_prove() {
    let orders = target(example!("target.toml"));
    assert_eq!(orders.resources[0].adapter.adapter(), Adapter::Postgres);
    for (text, data, enforce, retry) in [
        (example!("expand.deploy.toml"), DataEffect::Expand, Enforce::Fence, RetryClass::Idempotent),
        (example!("index.deploy.toml"), DataEffect::None, Enforce::None, RetryClass::Unsafe),
        (example!("contract.deploy.toml"), DataEffect::Contract, Enforce::Fence, RetryClass::Idempotent),
    ] {
        let file = file(text);
        file.check(&given(&[])).expect("valid without its target");
        let spec = file.resolve(&given(&[("migrations", "/srv/db")]), None, &orders).expect("valid");
        let (step, resource) = (&spec.steps[0], &orders.resources[0]);
        assert_eq!((step.data, step.retry), (data, retry));
        assert_eq!(step.capability(resource), Capability { inspect: Inspect::Operation, enforce, outlives: true });
    }
}
