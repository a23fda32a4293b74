//! Files, their order, and what is refused before anything runs.

use std::fs;

use holdfast_agent::adapters::system::{Call, Order};
use holdfast_common::outcome::OperationState;
use holdfast_common::rollback::DataEffect;
use holdfast_common::system::{Archive, Change, Migrate};

use super::shop::{Role, Shop, ran, reading, said};
use crate::support::{fence, operation};

const ONE: &str = "-- holdfast: data=expand\nCREATE TABLE item (id int PRIMARY KEY);\nINSERT INTO item VALUES (1);\n";
const TWO: &str = "-- holdfast: data=expand\nALTER TABLE item ADD COLUMN name text;\n";

fn shop() -> Shop {
    let shop = Shop::new();
    shop.file("0001_items.sql", ONE);
    shop.file("0002_names.sql", TWO);
    shop
}

/// What ran, as the database tells it.
fn underwent(shop: &Shop) -> String {
    shop.sql("SELECT string_agg(version, ' ' ORDER BY done_at) FROM holdfast.migration")
}

/// A part of it is there, and nothing of it is under way.
const PART: i32 = 72;

#[test]
fn migrations_run_once_in_order_and_are_read_back() {
    let shop = shop();
    shop.file("0010_more.sql", "-- holdfast: data=none\nUPDATE item SET name = 'ten';\n");
    let order = shop.to(1, "0002");
    assert_eq!(shop.inspect(&order).state, OperationState::NotApplied);
    assert!(shop.examine(&order).status.success(), "{}", said(&shop.examine(&order)));
    assert_eq!(ran(shop.apply(&order, fence(1))), (Some(0), "applied\n".to_owned()));
    let seen = shop.inspect(&order);
    assert_eq!((seen.state, seen.revision.unwrap().as_str()), (OperationState::Applied, "0002"));
    assert_eq!(seen.highest_fence, Some(fence(1)));
    assert_eq!(ran(shop.apply(&order, fence(1))), (Some(0), "applied before, nothing changed\n".to_owned()));
    assert_eq!(
        (underwent(&shop), shop.sql("SELECT count(*) FROM shop.item")),
        ("0001 0002".to_owned(), "1".to_owned())
    );

    // Another operation that finds everything there is applied too, and raises the highest fence.
    let again = shop.to(2, "0002");
    assert_eq!(ran(shop.apply(&again, fence(2))).0, Some(0));
    let seen = shop.inspect(&again);
    assert_eq!((seen.state, seen.highest_fence), (OperationState::Applied, Some(fence(2))));
    let last = shop.ordered(operation(3), "0010", Some("0002"));
    assert_eq!(ran(shop.apply(&last, fence(3))).0, Some(0));
    assert_eq!(underwent(&shop), "0001 0002 0010");
    assert!(!shop.inspect(&order).is_as_left(order.operation.revision.as_ref()), "it was replaced");
}

#[test]
fn an_operation_that_failed_half_way_goes_on_where_it_stopped() {
    let shop = shop();
    shop.file(
        "0002_names.sql",
        "-- holdfast: data=expand\nALTER TABLE item ADD COLUMN name text;\n\nSELECT nothing FROM item;\n",
    );
    let order = shop.ordered(operation(1), "0002", None);
    let (exit, text) = ran(shop.apply(&order, fence(1)));
    // A part of it is there, so it is no refusal any more.
    assert_eq!(exit, Some(PART), "{text}");
    assert!(text.contains("0002_names.sql") && text.contains("line 4") && text.contains("nothing"), "{text}");
    let seen = shop.inspect(&order);
    assert_eq!((seen.state, seen.revision.unwrap().as_str()), (OperationState::Partial, "0001"));
    // Nor is anything else, as long as the rest is missing.
    fs::remove_file(shop.folder.0.join("db/0002_names.sql")).unwrap();
    let (exit, text) = ran(shop.apply(&order, fence(1)));
    assert_eq!(exit, Some(PART), "{text}");
    let _ = shop.raise(&order, fence(2));
    let (exit, text) = ran(shop.apply(&order, fence(1)));
    assert_eq!(exit, Some(PART), "{text}");
    assert!(text.contains("after a part of the operation was applied: refused: fence 1.1"), "{text}");
    shop.file("0002_names.sql", TWO);
    assert_eq!(ran(shop.apply(&order, fence(2))), (Some(0), "applied\n".to_owned()));
    assert_eq!((underwent(&shop).as_str(), shop.inspect(&order).state), ("0001 0002", OperationState::Applied));
}

#[test]
fn a_migration_is_whole_or_not_at_all_and_can_not_commit_by_itself() {
    let shop = Shop::new();
    for (number, statements) in [
        "CREATE TABLE half (i int); SELECT 1/0",
        "CREATE TABLE half (i int); COMMIT",
        "CREATE TABLE half (i int); DO $$ BEGIN COMMIT; END $$",
        "CREATE TABLE half (i int); SET CONSTRAINTS ALL DEFERRED; CREATE TABLE a (i int PRIMARY KEY); \
         CREATE TABLE b (i int REFERENCES a DEFERRABLE INITIALLY DEFERRED); INSERT INTO b VALUES (1)",
        "CREATE TABLE half (i int); CREATE INDEX CONCURRENTLY ON half (i)",
        "UPDATE holdfast.resource SET highest_fence = 0",
        "SELECT holdfast.raise_fence('shop', 'shop@prod/db', 1)",
    ]
    .into_iter()
    .enumerate()
    {
        shop.file("0001_half.sql", &format!("-- holdfast: data=expand\n{statements};\n"));
        let order = shop.to(number as u128, "0001");
        let (exit, text) = ran(shop.apply(&order, fence(1)));
        assert_eq!(exit, Some(65), "{statements}: {text}");
        assert_eq!(shop.sql("SELECT to_regclass('shop.half') IS NULL"), "t", "{statements}");
        assert_eq!(shop.inspect(&order).state, OperationState::NotApplied, "{statements}");
    }
}

/// By the examination with the set that reads, and by an apply.
fn refused(shop: &Shop, order: &Order, status: i32, why: &str) {
    let output = shop.examine(order);
    assert_eq!(output.status.code(), Some(status), "{why}: {}", said(&output));
    assert!(said(&output).contains(why), "{}", said(&output));
    assert_eq!(ran(shop.apply(order, fence(1))).0, Some(status), "{why}");
}

#[test]
fn what_would_be_refused_is_refused_before_the_permit() {
    let mut shop = shop();
    refused(&shop, &shop.to(1, "0003"), 65, "no migration has the version 0003");
    refused(&shop, &shop.ordered(operation(1), "0002", Some("0000")), 74, "expected was 0000");
    shop.migrate.data = DataEffect::None;
    refused(&shop, &shop.to(1, "0002"), 65, "has data=expand");
    shop.migrate.data = DataEffect::Destructive;
    shop.file("0002_twice.sql", TWO);
    refused(&shop, &shop.to(1, "0002"), 65, "are the same version");
    fs::remove_file(shop.folder.0.join("db/0002_twice.sql")).unwrap();
    std::os::unix::fs::symlink("0001_items.sql", shop.folder.0.join("db/0000_link.sql")).unwrap();
    refused(&shop, &shop.to(1, "0002"), 65, "not a regular file");
    fs::remove_file(shop.folder.0.join("db/0000_link.sql")).unwrap();
    shop.file("0002_names.sql", "ALTER TABLE item ADD COLUMN name text");
    refused(&shop, &shop.to(1, "0002"), 65, "does not begin with");
    shop.file("0002_names.sql", "-- holdfast: data=none transaction=none\nVACUUM item");
    refused(&shop, &shop.to(1, "0002"), 65, "transaction = false");
    shop.file("0002_names.sql", TWO);
    assert_eq!(ran(shop.apply(&shop.to(2, "0002"), fence(1))).0, Some(0));
    shop.file("0001_items.sql", &format!("{ONE}-- a word more"));
    shop.file("0003_last.sql", "-- holdfast: data=none\nSELECT 1");
    refused(&shop, &shop.to(3, "0003"), 65, "0001_items.sql was applied with another content");
    let renamed = |from: &str, to: &str| {
        fs::rename(shop.folder.0.join("db").join(from), shop.folder.0.join("db").join(to)).unwrap();
    };
    renamed("0001_items.sql", "0001_things.sql");
    refused(&shop, &shop.to(3, "0003"), 65, "0001_things.sql was applied as 0001_items.sql with another content");
    shop.file("0001_things.sql", ONE);
    assert!(shop.examine(&shop.to(3, "0003")).status.success(), "what stands behind the version is free");
    renamed("0001_things.sql", "1_items.sql");
    refused(&shop, &shop.to(3, "0003"), 65, "1_items.sql was applied as 0001_items.sql: its version is 0001 for good");
    renamed("1_items.sql", "0001_items.sql");
    refused(&shop, &shop.to(3, "0001"), 65, "beyond 0001");
    let mut other = shop.to(3, "0003");
    other.resource = holdfast_common::id::ResourceName::new("other").unwrap();
    refused(&shop, &other, 78, "belongs to shop@prod/db");
    assert_eq!(underwent(&shop), "0001 0002");
}

#[test]
fn the_files_can_come_in_an_archive() {
    let mut shop = Shop::new();
    let mut builder = tar::Builder::new(Vec::new());
    for (name, text) in [("app/db/0001_items.sql", ONE), ("app/db/old/0000_not.sql", "no"), ("app/db/README.md", "no")]
    {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    let bytes = builder.into_inner().unwrap();
    let path = shop.folder.0.join("app.tar");
    fs::write(&path, &bytes).unwrap();
    let sha256 = holdfast_common::spec::hex(&<sha2::Sha256 as sha2::Digest>::digest(&bytes));
    let archive = Some(Archive { archive: "app.tar".to_owned(), sha256 });
    shop.migrate = Migrate { archive, migrations: "app/db/".to_owned(), ..shop.migrate };
    let order = shop.to(1, "0001");
    assert!(matches!(order.operation.change, Some(Change::Migrate(_))));
    let call = Call::Apply { fence: fence(1), archive: Some(path), work: shop.folder.0.clone() };
    assert_eq!(ran(shop.call(&order, call, Role::Deploy)), (Some(0), "applied\n".to_owned()));
    assert_eq!((underwent(&shop).as_str(), shop.sql("SELECT count(*) FROM shop.item").as_str()), ("0001", "1"));
}

#[test]
fn a_server_that_is_down_says_nothing_and_a_wrong_password_is_refused_without_being_told() {
    let shop = shop();
    let order = shop.to(1, "0002");
    let said = [("PGUSER", Role::Deploy.name().to_owned()), ("PGPASSWORD", "hunter2".to_owned())].into();
    let call = Call::Apply { fence: fence(1), archive: None, work: shop.folder.0.clone() };
    let (exit, text) = ran(shop.command(&Order { call, ..order.clone() }, &said));
    assert_eq!(exit, Some(78), "{text}");
    assert!(!text.contains("hunter2") && text.contains("28P01"), "{text}");
    shop.server.down();
    assert_eq!(ran(shop.apply(&order, fence(1))).0, Some(75));
    assert_eq!(ran(shop.call(&order, Call::Inspect, Role::Inspect)).0, Some(75));
    assert_eq!(ran(shop.call(&order, Call::Raise { fence: fence(2) }, Role::Fence)).0, Some(75));
    shop.server.up();
    assert_eq!(ran(shop.apply(&order, fence(1))).0, Some(0));
    let backup = shop.server.back_up();
    assert_eq!(shop.raise(&order, fence(9)).highest_fence, Some(fence(9)));
    shop.server.restore(&backup);
    // What a coordinator that was told 9 takes as the sign of a backup.
    let seen = reading(&shop.call(&order, Call::Inspect, Role::Inspect).output().unwrap());
    assert_eq!(seen.highest_fence, Some(fence(1)));
}
