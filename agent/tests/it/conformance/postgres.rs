//! A schema of a real PostgreSQL server as a subject.

use std::process::Command;

use holdfast_agent::adapters::system::{Call, Order};
use holdfast_common::adapter::{Capability, Enforce, Inspect};
use holdfast_common::fence::Fence;
use holdfast_common::system::{Change, Migrate, System};
use holdfast_tests_postgres::Backup;

use super::{Named, Subject};
use crate::postgres::deaf;
use crate::postgres::shop::{Role, Shop, setup};

/// A schema. Each operation has a folder with one migration: in a transaction, or a statement outside of one. The latter is compared
/// with fence and revision at its begin alone, and whether it came to its end may never be known.
pub(crate) struct PostgresSubject {
    shop: Shop,
    kept: Option<Backup>,
}

impl PostgresSubject {
    pub(crate) fn new() -> Self {
        Self::of(Shop::new())
    }

    pub(crate) fn outside() -> Self {
        let mut shop = Shop::new();
        shop.migrate.transaction = false;
        Self::of(shop)
    }

    fn of(shop: Shop) -> Self {
        let subject = Self { shop, kept: None };
        subject.let_the_schema_count();
        subject
    }

    /// What took effect is told by rows that the migrations write themselves, in the order of their transactions' ends.
    fn let_the_schema_count(&self) {
        self.shop.sql(
            "CREATE TABLE shop.underwent (number serial, version text); GRANT ALL ON shop.underwent TO shop_deploy",
        );
        self.shop.sql("GRANT ALL ON SEQUENCE shop.underwent_number_seq TO shop_deploy");
    }

    fn in_transaction(&self) -> bool {
        self.shop.migrate.transaction
    }

    fn order(&self, named: &Named) -> Order {
        let expected = named.expected.as_ref().map(|expected| expected.as_str());
        let mut order = self.shop.ordered(named.operation.clone(), named.revision.as_str(), expected);
        let folder = self.shop.folder.0.join(format!("only-{}", named.revision));
        std::fs::create_dir_all(&folder).unwrap();
        let outside = if self.in_transaction() { "" } else { " transaction=none" };
        let text = format!(
            "-- holdfast: data=none{outside}\nINSERT INTO underwent (version) VALUES ('{}');\n",
            named.revision
        );
        std::fs::write(folder.join(format!("{}_count.sql", named.revision)), text).unwrap();
        if let Some(Change::Migrate(Migrate { migrations, .. })) = &mut order.operation.change {
            folder.to_str().unwrap().clone_into(migrations);
        }
        order
    }
}

impl Subject for PostgresSubject {
    fn capability(&self) -> Capability {
        let change = Change::Migrate(self.shop.migrate.clone());
        let declared = self.shop.order.system.capability(&change).unwrap();
        let enforce = if self.in_transaction() { Enforce::Fence } else { Enforce::None };
        assert_eq!(declared, Capability { inspect: Inspect::Operation, enforce, outlives: true });
        declared
    }

    fn compares(&self) -> Enforce {
        Enforce::Fence
    }

    fn repeats_unknown(&self) -> bool {
        !self.in_transaction()
    }

    fn calls(&self) -> Vec<&'static str> {
        if self.in_transaction() {
            vec!["connect", "read", "migrate", "close"]
        } else {
            vec!["connect", "read", "parse", "begin", "statement", "end", "close"]
        }
    }

    fn apply(&self, named: &Named, fence: Fence) -> Command {
        self.shop.apply(&self.order(named), fence)
    }

    fn inspect(&self, named: &Named) -> Command {
        self.shop.call(&self.order(named), Call::Inspect, Role::Inspect)
    }

    fn raise(&self, named: &Named, fence: Fence) -> Option<Command> {
        Some(self.shop.call(&self.order(named), Call::Raise { fence }, Role::Fence))
    }

    fn underwent(&self) -> Vec<String> {
        self.shop.sql("SELECT version FROM shop.underwent ORDER BY number").lines().map(str::to_owned).collect()
    }

    fn back_up(&mut self) {
        self.kept = Some(self.shop.server.back_up());
    }

    fn restore(&mut self) {
        self.shop.server.restore(self.kept.as_ref().unwrap());
    }

    fn down(&mut self) {
        self.shop.server.down();
    }

    fn up(&mut self) {
        self.shop.server.up();
    }

    fn replace(&mut self) {
        let System::Postgres(system) = &self.shop.order.system else { unreachable!("it is a schema") };
        self.shop.sql(&format!("DROP SCHEMA holdfast CASCADE; DROP SCHEMA {} CASCADE", system.schema));
        self.shop.sql(&setup(&system.schema, self.shop.order.target.as_str(), self.shop.order.resource.as_str()));
        self.let_the_schema_count();
    }

    fn lose_answer(&mut self, named: &Named, fence: Fence) -> Option<Command> {
        let mut order = self.order(named);
        let change = if self.in_transaction() { "holdfast.apply" } else { "holdfast.end_statement" };
        let port = deaf::line_to(self.shop.server.port(), change);
        if let System::Postgres(system) = &mut order.system {
            system.server = Some(format!("127.0.0.1:{port}"));
        }
        Some(self.shop.apply(&order, fence))
    }
}

/// What the suite relies on, where it would not notice.
#[test]
fn a_schema_as_subject_goes_down_and_back_and_is_replaced() {
    use holdfast_common::id::Revision;
    use holdfast_common::outcome::OperationState;

    use crate::postgres::shop::{ran, reading};
    use crate::support::{fence, operation};

    let mut subject = PostgresSubject::new();
    assert_eq!(subject.capability().enforce, Enforce::Fence);
    let revision = |text: &str| Revision::new(text).unwrap();
    let named = |number, before: Option<&str>| Named {
        operation: operation(number),
        revision: revision(&format!("{number:04}")),
        expected: before.map(revision),
    };
    let look = |subject: &PostgresSubject, named: &Named| reading(&subject.inspect(named).output().unwrap());
    for call in subject.calls() {
        let mut command = subject.apply(&named(1, None), fence(1));
        assert!(command.env("HOLDFAST_HALT", format!("apply.{call}=abort")).output().unwrap().status.code().is_none());
    }
    assert_eq!(ran(subject.apply(&named(1, None), fence(1))).0, Some(0));
    subject.back_up();
    let identity = look(&subject, &named(1, None)).resource_identity;
    assert_eq!(ran(subject.apply(&named(2, Some("0001")), fence(2))).0, Some(0));
    assert_eq!(subject.underwent(), ["0001", "0002"]);
    assert_eq!(ran(subject.raise(&named(2, None), fence(7)).unwrap()).0, Some(0));
    subject.restore();
    let restored = look(&subject, &named(2, None));
    assert_eq!((restored.highest_fence, &restored.resource_identity), (Some(fence(1)), &identity));
    assert_eq!(subject.underwent(), ["0001"]);
    subject.down();
    assert_eq!(ran(subject.inspect(&named(1, None))).0, Some(75));
    subject.up();
    subject.replace();
    assert_ne!(look(&subject, &named(1, None)).resource_identity, identity);
    let lost = subject.lose_answer(&named(1, None), fence(1)).unwrap();
    assert_eq!(ran(lost).0, Some(71), "it can't know");
    assert_eq!(look(&subject, &named(1, None)).state, OperationState::Applied);
}
