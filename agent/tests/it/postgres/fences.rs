//! Fences: what a raise promises, with processes that stand still, are killed, or whose server goes on without them.

use std::process::Child;

use holdfast_common::outcome::OperationState;

use super::shop::{Shop, ran, stopped_before};
use crate::support::{Paused, eventually, fence, operation, resume, wait_for_pause};

fn shop() -> Shop {
    let shop = Shop::new();
    shop.file("0001_items.sql", "-- holdfast: data=expand\nCREATE TABLE item (id int);\n");
    shop.file(
        "0002_slow.sql",
        "-- holdfast: data=expand\nSELECT pg_advisory_xact_lock(7); CREATE TABLE slow (i int);\n",
    );
    shop
}

fn ended(child: Child) -> Option<i32> {
    assert_eq!(wait_for_pause(&child), Paused::Ended);
    child.wait_with_output().unwrap().status.code()
}

/// A session of the administrator's that holds the lock which the slow migration waits for.
struct Held(Child);

impl Held {
    fn new(shop: &Shop) -> Self {
        let mut psql = std::process::Command::new("psql");
        psql.args(["-X", "-q", "-U", holdfast_tests_postgres::ADMIN, "-d", &shop.database]);
        psql.arg("-h").arg(shop.server.socket()).arg("-p").arg(shop.server.port().to_string());
        psql.args(["-c", "SELECT pg_advisory_lock(7)", "-c", "SELECT pg_sleep(600)"]);
        let child = psql.stdout(std::process::Stdio::null()).spawn().unwrap();
        let held = Self(child);
        eventually("the lock is held", || {
            (shop.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted") == "1").then_some(())
        });
        held
    }

    fn let_go(self, shop: &Shop) {
        shop.sql("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted");
        drop(self);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn waits(shop: &Shop) {
    eventually("the migration waits", || {
        (shop.sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == "1").then_some(())
    });
}

#[test]
fn a_process_that_was_paused_anywhere_is_refused_after_a_raise() {
    let shop = shop();
    for (number, call) in ["connect", "read", "migrate"].into_iter().enumerate() {
        let number = number as u64;
        let order = shop.to(u128::from(number), "0001");
        let paused = stopped_before(shop.apply(&order, fence(10 * number + 1)), call);
        let raised = shop.raise(&order, fence(10 * number + 2));
        assert_eq!(raised.highest_fence, Some(fence(10 * number + 2)), "{call}");
        resume(&paused);
        assert_eq!(ended(paused), Some(73), "{call}");
        assert_eq!(shop.inspect(&order).state, OperationState::NotApplied, "{call}");
    }
    assert_eq!(shop.sql("SELECT to_regclass('shop.item') IS NULL"), "t");
}

#[test]
fn a_raised_fence_never_goes_down() {
    let shop = shop();
    let order = shop.to(1, "0001");
    assert_eq!(shop.raise(&order, fence(5)).highest_fence, Some(fence(5)));
    assert_eq!(shop.raise(&order, fence(3)).highest_fence, Some(fence(5)));
    shop.sql(&super::shop::setup("shop", "shop@prod", "db"));
    let (exit, text) = ran(shop.apply(&order, fence(4)));
    assert_eq!(exit, Some(73), "{text}");
    assert!(text.contains(&fence(5).to_string()), "{text}");
    let before = shop.inspect(&order).resource_identity;
    assert_eq!(ran(shop.apply(&order, fence(5))).0, Some(0));
    let seen = shop.inspect(&order);
    assert_eq!((seen.highest_fence, seen.resource_identity), (Some(fence(5)), before));
}

#[test]
fn a_migration_that_the_server_still_runs_is_seen_and_a_raise_rolls_it_back() {
    let shop = shop();
    assert_eq!(ran(shop.apply(&shop.to(1, "0001"), fence(1))).0, Some(0));
    let (held, order) = (Held::new(&shop), shop.to(2, "0002"));
    let mut running = shop.apply(&order, fence(2)).spawn().unwrap();
    waits(&shop);
    let seen = shop.inspect(&order);
    assert_eq!((seen.state, seen.active), (OperationState::Applying, Some(operation(2))));
    assert!(seen.detail.contains("backend"), "{}", seen.detail);

    // The process is killed; the server does not notice, and would commit.
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(shop.inspect(&order).state, OperationState::Applying);
    // The raise does not wait for it, and knows already what will become of it.
    assert_eq!(shop.raise(&order, fence(3)).state, OperationState::NotApplied);
    held.let_go(&shop);
    eventually("the backend is gone", || {
        (shop.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'holdfast:%'") == "0")
            .then_some(())
    });
    assert_eq!(shop.inspect(&order).state, OperationState::NotApplied);
    assert_eq!(shop.sql("SELECT to_regclass('shop.slow') IS NULL"), "t");
}

/// A migration whose own check is deferred to the end of its transaction, and does that.
fn deferred(check: &str) -> String {
    format!(
        "-- holdfast: data=expand
CREATE TABLE checked (i int);
CREATE FUNCTION check_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {check}; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER check_it AFTER INSERT ON checked DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION check_it();
INSERT INTO checked VALUES (1);
"
    )
}

#[test]
fn a_raise_does_not_wait_for_a_deferred_constraint() {
    let shop = shop();
    assert_eq!(ran(shop.apply(&shop.to(1, "0001"), fence(1))).0, Some(0));
    shop.file("0002_slow.sql", &deferred("PERFORM pg_advisory_xact_lock(7)"));
    let (held, order) = (Held::new(&shop), shop.to(2, "0002"));
    let running = shop.apply(&order, fence(2)).spawn().unwrap();
    waits(&shop);
    let raised = shop.raise(&order, fence(3));
    assert_eq!((raised.state, raised.highest_fence), (OperationState::NotApplied, Some(fence(3))));
    held.let_go(&shop);
    assert_eq!(ended(running), Some(73));
    assert_eq!(shop.sql("SELECT to_regclass('shop.checked') IS NULL"), "t");
}

#[test]
fn a_deferred_constraint_fails_before_anything_is_recorded() {
    let shop = shop();
    assert_eq!(ran(shop.apply(&shop.to(1, "0001"), fence(1))).0, Some(0));
    let recorded = "(SELECT count(*) FROM holdfast.migration WHERE version = '0002')";
    shop.file("0002_slow.sql", &deferred(&format!("RAISE 'refused with % of it recorded', {recorded}")));
    let order = shop.to(2, "0002");
    let (exit, text) = ran(shop.apply(&order, fence(2)));
    assert_eq!(exit, Some(65), "{text}");
    assert!(text.contains("0002_slow.sql: refused with 0 of it recorded"), "{text}");
    assert_eq!(shop.inspect(&order).state, OperationState::NotApplied);
    assert_eq!(shop.sql("SELECT to_regclass('shop.checked') IS NULL"), "t");
}

#[test]
fn a_cursor_that_a_migration_holds_is_not_read_at_its_commit() {
    let shop = shop();
    assert_eq!(ran(shop.apply(&shop.to(1, "0001"), fence(1))).0, Some(0));
    shop.file(
        "0002_slow.sql",
        "-- holdfast: data=expand
CREATE FUNCTION read_late() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RAISE 'read'; END $$;
DECLARE late CURSOR WITH HOLD FOR SELECT read_late();
",
    );
    assert_eq!(ran(shop.apply(&shop.to(2, "0002"), fence(2))), (Some(0), "applied\n".to_owned()));
}

#[test]
fn a_killed_process_whose_server_goes_on_is_applied_once_it_has_committed() {
    let shop = shop();
    assert_eq!(ran(shop.apply(&shop.to(1, "0001"), fence(1))).0, Some(0));
    let (held, order) = (Held::new(&shop), shop.to(2, "0002"));
    let mut running = shop.apply(&order, fence(2)).spawn().unwrap();
    waits(&shop);
    running.kill().unwrap();
    running.wait().unwrap();
    held.let_go(&shop);
    eventually("it has committed", || (shop.inspect(&order).state == OperationState::Applied).then_some(()));
    assert_eq!(ran(shop.apply(&order, fence(3))), (Some(0), "applied before, nothing changed\n".to_owned()));
}

#[test]
fn two_at_once_apply_it_once() {
    let shop = shop();
    let order = shop.to(1, "0002");
    let held = Held::new(&shop);
    let one = shop.apply(&order, fence(1)).spawn().unwrap();
    waits(&shop);
    let other = shop.apply(&order, fence(1)).spawn().unwrap();
    eventually("the other waits for its turn", || {
        (shop.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == "2").then_some(())
    });
    held.let_go(&shop);
    assert_eq!((ended(one), ended(other)), (Some(0), Some(0)));
    assert_eq!(shop.sql("SELECT count(*) FROM holdfast.migration"), "2");
    assert_eq!(shop.inspect(&order).state, OperationState::Applied);
}

#[test]
fn a_lock_that_is_not_given_in_time_is_worth_another_try() {
    let shop = shop();
    assert_eq!(ran(shop.apply(&shop.to(1, "0001"), fence(1))).0, Some(0));
    let (held, order) = (Held::new(&shop), shop.to(2, "0002"));
    let mut impatient = shop.apply(&order, fence(2));
    impatient.env("PGOPTIONS", "-c lock_timeout=100ms");
    let (exit, text) = ran(impatient);
    assert_eq!(exit, Some(75), "{text}");
    assert!(text.contains("0002_slow.sql") && text.contains("55P03"), "{text}");
    assert_eq!(shop.inspect(&order).state, OperationState::NotApplied);
    held.let_go(&shop);
    assert_eq!(ran(shop.apply(&order, fence(2))).0, Some(0));
}

#[test]
fn a_session_that_the_server_ends_is_no_refusal_and_is_read_back() {
    let shop = shop();
    assert_eq!(ran(shop.apply(&shop.to(1, "0001"), fence(1))).0, Some(0));
    let (held, order) = (Held::new(&shop), shop.to(2, "0002"));
    let running = shop.apply(&order, fence(2)).spawn().unwrap();
    waits(&shop);
    shop.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'holdfast:%'");
    assert_eq!(ended(running), Some(71));
    assert_eq!(shop.inspect(&order).state, OperationState::NotApplied);
    held.let_go(&shop);
}
