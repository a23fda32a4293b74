//! What each of the three roles can't do, and what the setup refuses.

use holdfast_agent::adapters::system::{Call, Order};
use holdfast_common::outcome::OperationState;
use holdfast_common::system::System;

use super::shop::{Role, Shop, ran, setup};
use crate::support::{Paused, fence, resume, wait_for_pause};

/// What the server says to a role that tries it itself.
fn tries(shop: &Shop, role: Role, sql: &str) -> Result<String, String> {
    shop.server.try_sql(&shop.database, &format!("SET SESSION AUTHORIZATION {};\n{sql}", role.name()))
}

#[test]
fn no_role_can_do_what_another_is_for() {
    let shop = Shop::new();
    shop.file("0001_items.sql", "-- holdfast: data=expand\nCREATE TABLE item (id int);\n");
    let order = shop.to(1, "0001");
    let apply = || Call::Apply { fence: fence(1), archive: None, work: shop.folder.0.clone() };
    assert_eq!(ran(shop.call(&order, Call::Raise { fence: fence(9) }, Role::Deploy)).0, Some(78));
    assert_eq!(ran(shop.call(&order, Call::Raise { fence: fence(9) }, Role::Inspect)).0, Some(78));
    for role in [Role::Inspect, Role::Fence] {
        let (exit, text) = ran(shop.call(&order, apply(), role));
        assert_eq!(exit, Some(65), "{text}");
        assert!(text.contains("42501"), "{text}");
    }
    for role in [Role::Deploy, Role::Inspect, Role::Fence] {
        for table in ["resource", "turn", "migration", "abandoned", "operation"] {
            for sql in [format!("DELETE FROM holdfast.{table}"), format!("TRUNCATE holdfast.{table}")] {
                assert!(tries(&shop, role, &sql).is_err(), "{role:?}: {sql}");
            }
        }
        for sql in [
            "UPDATE holdfast.resource SET highest_fence = 0",
            "CREATE TABLE holdfast.mine (i int)",
            "DROP FUNCTION holdfast.durably()",
            "SELECT holdfast.claim('shop', 'shop@prod/db', 'shop_deploy', 'shop_inspect', 'shop_fence')",
            "SELECT holdfast.locked('shop', 'shop@prod/db', 'deploy', 1)",
        ] {
            assert!(tries(&shop, role, sql).is_err(), "{role:?}: {sql}");
        }
    }
    assert_eq!(shop.sql("SELECT to_regclass('shop.item') IS NULL"), "t");
    assert_eq!(ran(shop.apply(&order, fence(1))).0, Some(0));
}

#[test]
fn what_a_role_puts_in_the_way_fools_no_function_of_the_owner() {
    let shop = Shop::new();
    let _ = shop.raise(&shop.to(1, "0001"), fence(9));
    let traps = "CREATE TEMP TABLE resource (schema_name text, highest_fence bigint);
        CREATE FUNCTION shop.greatest(bigint, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint';
        CREATE FUNCTION shop.is_less(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false';
        CREATE OPERATOR shop.< (FUNCTION = shop.is_less, LEFTARG = bigint, RIGHTARG = bigint);
        SET search_path = pg_temp, shop, pg_catalog;";
    let low = fence(8).as_u64();
    let record = format!("SELECT holdfast.record('shop', 'shop@prod/db', 'o', {low}, NULL, '1', 'n', 'c', true)");
    let said = tries(&shop, Role::Deploy, &format!("{traps}\n{record}")).unwrap_err();
    assert!(said.contains("below the highest seen"), "{said}");
}

#[test]
fn several_schemas_of_a_database_are_resources_of_their_own() {
    let shop = Shop::new();
    shop.sql("CREATE ROLE other_deploy; CREATE ROLE other_inspect; CREATE ROLE other_fence");
    let other = setup("other", "shop@prod", "other").replace("'shop_", "'other_");
    shop.sql(&other);
    assert_eq!(shop.sql("SELECT count(DISTINCT identity) FROM holdfast.resource"), "2");
    let fences =
        |role, schema| tries(&shop, role, &format!("SELECT holdfast.raise_fence('{schema}', 'shop@prod/{schema}', 7)"));
    let said = fences(Role::Fence, "other").unwrap_err();
    assert!(said.contains("is not the role for that"), "{said}");
    let said = shop.server.try_sql(&shop.database, &setup("shop", "billing@prod", "db")).unwrap_err();
    assert!(said.contains("belongs to shop@prod/db"), "{said}");
}

#[test]
fn a_setup_that_would_prove_nothing_is_refused() {
    let shop = Shop::new();
    let refused = |sql: &str, why: &str| {
        let said = shop.server.try_sql(&shop.database, sql).unwrap_err();
        assert!(said.contains(why), "{said}");
    };
    let again = setup("shop", "shop@prod", "db");
    refused(&again.replace("'shop_fence'", "'shop_deploy'"), "three roles");
    refused(&again.replace("'shop_fence'", "'admin'"), "could rewrite the record");
    shop.sql("GRANT shop_fence TO shop_deploy");
    refused(&again, "three roles");
    shop.sql("REVOKE shop_fence FROM shop_deploy; DROP SCHEMA holdfast CASCADE; CREATE SCHEMA holdfast AUTHORIZATION shop_deploy");
    refused(&again, "is not yours");
    let order = shop.to(1, "0001");
    let (exit, text) = ran(shop.call(&order, Call::Inspect, Role::Inspect));
    assert_eq!(exit, Some(78), "{text}");
    assert!(text.contains("adapter sql"), "{text}");
}

#[test]
fn a_member_of_a_role_acts_for_it() {
    let shop = Shop::new();
    shop.file("0001_items.sql", "-- holdfast: data=expand\nCREATE TABLE item (id int);\n");
    shop.sql("CREATE ROLE robot LOGIN PASSWORD 'robot' IN ROLE shop_deploy");
    let order = shop.to(1, "0001");
    let call = Call::Apply { fence: fence(1), archive: None, work: shop.folder.0.clone() };
    let said = [("PGUSER", "robot".to_owned()), ("PGPASSWORD", "robot".to_owned())].into();
    let mut stopped = shop.command(&Order { call, ..order.clone() }, &said);
    let stopped = stopped.env("HOLDFAST_HALT", "apply.migrate=stop").spawn().unwrap();
    assert_eq!(wait_for_pause(&stopped), Paused::Stopped);
    assert_eq!(shop.inspect(&order).state, OperationState::Applying, "its session is seen as one of the deploy role");
    resume(&stopped);
    assert_eq!(stopped.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(shop.sql("SELECT run_by FROM holdfast.migration"), "robot");
}

#[test]
fn the_owner_of_a_database_sets_it_up_without_being_a_superuser() {
    let shop = Shop::new();
    shop.file("0001_items.sql", "-- holdfast: data=expand\nCREATE TABLE item (id int);\n");
    shop.server.sql("postgres", "CREATE ROLE dba");
    shop.server.sql("postgres", "CREATE DATABASE owned OWNER dba");
    let setup = format!("SET SESSION AUTHORIZATION dba;\n{}", setup("shop", "shop@prod", "db"));
    shop.server.sql("owned", &setup);
    let mut order = shop.to(1, "0001");
    if let System::Postgres(system) = &mut order.system {
        system.database = Some("owned".to_owned());
    }
    assert_eq!(ran(shop.apply(&order, fence(1))), (Some(0), "applied\n".to_owned()));
    let seen = shop.raise(&order, fence(2));
    assert_eq!((seen.state, seen.highest_fence), (OperationState::Applied, Some(fence(2))));
}
