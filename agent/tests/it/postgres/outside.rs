//! Statements that can't run in a transaction.

use holdfast_common::outcome::OperationState;

use super::shop::{Shop, ran, stopped_before};
use crate::support::{fence, operation, resume};

const INDEX: &str = "-- holdfast: data=none transaction=none\nCREATE INDEX CONCURRENTLY item_id ON item (id);\n";

fn shop() -> Shop {
    let mut shop = Shop::new();
    shop.migrate.transaction = false;
    shop.file("0001_items.sql", "-- holdfast: data=expand\nCREATE TABLE item (id int);\n");
    shop.file("0002_index.sql", INDEX);
    shop
}

#[test]
fn an_index_is_made_concurrently() {
    let shop = shop();
    let order = shop.to(1, "0002");
    assert_eq!(ran(shop.apply(&order, fence(1))), (Some(0), "applied\n".to_owned()));
    assert_eq!(shop.sql("SELECT indisvalid FROM pg_index WHERE indexrelid = 'shop.item_id'::regclass"), "t");
    let seen = shop.inspect(&order);
    assert_eq!((seen.state, seen.revision.unwrap().as_str()), (OperationState::Applied, "0002"));
    assert_eq!(ran(shop.apply(&order, fence(2))), (Some(0), "applied before, nothing changed\n".to_owned()));
}

#[test]
fn a_begin_is_refused_under_an_old_fence_and_an_end_is_recorded_as_what_it_is() {
    let shop = shop();
    assert_eq!(ran(shop.apply(&shop.to(1, "0001"), fence(1))).0, Some(0));
    let order = shop.to(2, "0002");
    let before = stopped_before(shop.apply(&order, fence(2)), "begin");
    let after = |number: u64| {
        let _ = shop.raise(&order, fence(number));
    };
    after(3);
    resume(&before);
    assert_eq!(before.wait_with_output().unwrap().status.code(), Some(73));
    assert_eq!(shop.inspect(&order).state, OperationState::NotApplied);

    let during = stopped_before(shop.apply(&order, fence(3)), "end");
    after(4);
    assert_eq!(shop.inspect(&order).state, OperationState::Applying);
    resume(&during);
    assert_eq!(during.wait_with_output().unwrap().status.code(), Some(0));
    let seen = shop.inspect(&order);
    assert_eq!((seen.state, seen.highest_fence), (OperationState::Applied, Some(fence(4))));
}

#[test]
fn what_was_begun_and_not_seen_to_end_is_unknown_until_another_attempt_takes_it_over() {
    let shop = shop();
    assert_eq!(ran(shop.apply(&shop.to(1, "0001"), fence(1))).0, Some(0));
    let order = shop.to(2, "0002");
    let mut killed = stopped_before(shop.apply(&order, fence(2)), "statement");
    // While its session lives nobody begins it again.
    let (exit, text) = ran(shop.apply(&shop.to(3, "0002"), fence(3)));
    assert_eq!(exit, Some(71), "{text}");
    assert!(text.contains("is run by backend"), "{text}");
    killed.kill().unwrap();
    killed.wait().unwrap();
    let seen = crate::support::eventually("its session is gone", || {
        Some(shop.inspect(&order)).filter(|seen| seen.state != OperationState::Applying)
    });
    assert_eq!((seen.state, seen.revision.unwrap().as_str()), (OperationState::Unknown, "0001"));
    // The same attempt never begins it a second time.
    let (exit, text) = ran(shop.apply(&order, fence(2)));
    assert_eq!(exit, Some(71), "{text}");
    assert!(text.contains("not known to be done"), "{text}");
    assert_eq!(ran(shop.apply(&shop.to(3, "0002"), fence(4))).0, Some(0));
    assert_eq!(shop.inspect(&shop.to(3, "0002")).state, OperationState::Applied);
    // What became of the first nobody can say any more.
    assert_eq!(shop.inspect(&order).state, OperationState::Unknown);
}

#[test]
fn a_statement_that_fails_is_no_refusal() {
    let shop = shop();
    shop.file(
        "0002_index.sql",
        "-- holdfast: data=none transaction=none\nCREATE UNIQUE INDEX CONCURRENTLY one ON item ((1));\n",
    );
    assert_eq!(ran(shop.apply(&shop.to(1, "0001"), fence(1))).0, Some(0));
    shop.sql("INSERT INTO shop.item VALUES (1), (2)");
    let order = shop.to(2, "0002");
    let (exit, text) = ran(shop.apply(&order, fence(2)));
    assert_eq!(exit, Some(71), "{text}");
    assert!(text.contains("0002_index.sql") && text.contains("23505"), "{text}");
    assert_eq!(shop.inspect(&order).state, OperationState::Unknown);
    // It left an index that is not valid, which only a look can tell.
    assert_eq!(shop.sql("SELECT indisvalid FROM pg_index WHERE indexrelid = 'shop.one'::regclass"), "f");
}

#[test]
fn one_file_is_one_statement() {
    let shop = shop();
    shop.file(
        "0002_index.sql",
        "-- holdfast: data=none transaction=none\nCREATE TABLE a (i int); CREATE TABLE b (i int);\n",
    );
    let (exit, text) = ran(shop.apply(&shop.to(1, "0002"), fence(1)));
    // Its first migration was applied, so it is no refusal; the second was not even begun.
    assert_eq!(exit, Some(72), "{text}");
    assert!(text.contains("0002_index.sql") && text.contains("multiple commands"), "{text}");
    assert_eq!(shop.inspect(&shop.to(1, "0002")).state, OperationState::Partial);
    assert_eq!(shop.sql("SELECT to_regclass('shop.a') IS NULL"), "t");
}

#[test]
fn what_a_person_saw_to_be_done_can_be_written_down() {
    let shop = shop();
    let order = shop.to(1, "0002");
    let mut command = shop.apply(&order, fence(1));
    assert!(command.env("HOLDFAST_HALT", "apply.end=abort").output().unwrap().status.code().is_none());
    let seen = crate::support::eventually("its session is gone", || {
        Some(shop.inspect(&order)).filter(|seen| seen.state != OperationState::Applying)
    });
    assert_eq!(seen.state, OperationState::Unknown);
    // As docs/postgres.md has it. The one without the other is refused before the permit.
    shop.sql("UPDATE holdfast.migration SET done_at = now() WHERE schema_name = 'shop' AND version = '0002'");
    let next = shop.ordered(operation(2), "0002", Some("0001"));
    for (exit, text) in [ran(shop.apply(&next, fence(2))), ran(shop.examining(&next))] {
        assert_eq!(exit, Some(78), "{text}");
        assert!(text.contains("the ledger ends with 0002, and the record has the revision 0001"), "{text}");
    }
    shop.sql("UPDATE holdfast.resource SET revision = '0002' WHERE schema_name = 'shop'");
    let next = shop.to(2, "0002");
    assert_eq!(ran(shop.apply(&next, fence(2))).0, Some(0));
    let seen = shop.inspect(&next);
    assert_eq!((seen.state, seen.revision.unwrap().as_str()), (OperationState::Applied, "0002"));
}
