use holdfast_common::id::{DeploymentId, OperationId, StepName};
use holdfast_common::rollback::DataEffect;
use uuid::Uuid;

use super::*;

fn file(version: &str, first: &str) -> Migration {
    Migration::of(Version::of(version), &format!("{version}_x.sql"), format!("{first}\nSELECT {version}").into())
        .unwrap()
}

fn files() -> Vec<Migration> {
    vec![
        file("1", "-- holdfast: data=none"),
        file("2", "-- holdfast: data=expand"),
        file("10", "-- holdfast: data=expand"),
    ]
}

fn row(file: &Migration, operation: &str, is_done: bool) -> Row {
    Row {
        version: file.version.as_str().to_owned(),
        name: file.name.clone(),
        checksum: file.checksum.clone(),
        operation: operation.to_owned(),
        session: String::new(),
        is_done,
    }
}

fn ledger(rows: Vec<Row>) -> Ledger {
    let revision = rows.iter().rfind(|row| row.is_done).map(|row| row.version.clone());
    Ledger { identity: "i".to_owned(), highest: 0, revision, finished: None, abandoned: None, rows }
}

fn migrate(data: DataEffect, transaction: bool) -> Migrate {
    Migrate { archive: None, migrations: "db".to_owned(), to: "10".to_owned(), transaction, data }
}

fn operation(expected: Option<&str>) -> Operation {
    Operation {
        id: OperationId { deployment: DeploymentId(Uuid::from_u128(1)), step: StepName::new("m").unwrap() },
        revision: None,
        expected_revision: expected.map(|text| Revision::new(text).unwrap()),
        change: None,
    }
}

fn planned(files: Vec<Migration>, rows: Vec<Row>) -> Result<Vec<String>, Failure> {
    let planned = plan(files, &ledger(rows), &migrate(DataEffect::Expand, true), &operation(None))?;
    Ok(planned.into_iter().map(|pending| pending.migration.version.as_str().to_owned()).collect())
}

#[test]
fn what_is_not_applied_runs_in_order() {
    let all = files();
    assert_eq!(planned(files(), vec![]).unwrap(), ["1", "2", "10"]);
    assert_eq!(planned(files(), vec![row(&all[0], "o", true)]).unwrap(), ["2", "10"]);
    assert!(planned(files(), all.iter().map(|file| row(file, "o", true)).collect()).unwrap().is_empty());
    // Old files may be gone, and an applied one needs no first line any more.
    assert_eq!(planned(all[1..].to_vec(), vec![row(&all[0], "o", true)]).unwrap(), ["2", "10"]);
    let bare = vec![file("1", "-- old"), all[1].clone(), all[2].clone()];
    assert_eq!(planned(bare.clone(), vec![row(&bare[0], "o", true)]).unwrap(), ["2", "10"]);
}

#[test]
fn a_version_that_is_written_in_another_way_is_refused_by_both_names() {
    let (mut renamed, known) = (files(), files().remove(0));
    renamed[0] = Migration { version: Version::of("0001"), name: "0001_x.sql".to_owned(), ..known.clone() };
    for (is_done, was) in [(true, "applied"), (false, "begun")] {
        let Err(Failure::Content(text)) = planned(renamed.clone(), vec![row(&known, "o", is_done)]) else {
            panic!("{was}")
        };
        assert_eq!(text, format!("0001_x.sql was {was} as 1_x.sql: its version is 1 for good, so call it so again"));
    }
}

#[test]
fn what_stands_behind_the_version_is_free() {
    let mut named = files();
    named[0].name = "1_another.sql".to_owned();
    assert_eq!(planned(named, vec![row(&files()[0], "o", true)]).unwrap(), ["2", "10"]);
}

#[test]
fn what_does_not_fit_the_ledger_is_refused() {
    let all = files();
    let says = |files: Vec<Migration>, rows: Vec<Row>, why: &str| match planned(files, rows) {
        Err(Failure::Content(text)) => assert!(text.contains(why), "{text}"),
        other => panic!("{other:?}"),
    };
    says(
        files(),
        vec![row(&file("1", "-- holdfast: data=expand"), "o", true)],
        "1_x.sql was applied with another content",
    );
    says(files(), vec![row(&file("11", ""), "o", true)], "beyond 10");
    says(files(), vec![row(&all[1], "o", true)], "1_x.sql comes before 2");
    says(files(), vec![row(&all[1], "o", false)], "2 was begun by o");
    says(vec![file("10", "SELECT")], vec![], "does not begin with");
}

#[test]
fn a_record_that_the_ledger_contradicts_is_refused() {
    let rows = files().iter().map(|file| row(file, "o", true)).collect();
    let by_hand = Ledger { revision: Some("2".to_owned()), ..ledger(rows) };
    let planned = plan(files(), &by_hand, &migrate(DataEffect::Expand, true), &operation(Some("2")));
    let Err(Failure::Resource(text)) = planned else { panic!("{planned:?}") };
    assert_eq!(text, "the ledger ends with 10, and the record has the revision 2");
}

#[test]
fn a_begun_migration_is_the_servers_to_decide() {
    let all = files();
    assert_eq!(planned(files(), vec![row(&all[0], "o", false)]).unwrap(), ["1", "2", "10"]);
}

#[test]
fn a_step_says_all_that_its_migrations_do() {
    let plan = |data, transaction, files| plan(files, &ledger(vec![]), &migrate(data, transaction), &operation(None));
    let alone = || vec![file("10", "-- holdfast: data=contract transaction=none")];
    assert!(matches!(plan(DataEffect::Expand, false, alone()), Err(Failure::Content(_))));
    assert!(matches!(plan(DataEffect::Contract, true, alone()), Err(Failure::Content(_))));
    assert!(plan(DataEffect::Contract, false, alone()).is_ok());
    assert!(plan(DataEffect::Destructive, false, files()).is_ok());
}

#[test]
fn the_expected_revision_is_met_by_the_first_migration_alone() {
    let all = files();
    let other = vec![row(&all[0], "other", true)];
    let own = vec![row(&all[0], &operation(None).id.to_string(), true)];
    let plan =
        |rows, expected| plan(files(), &ledger(rows), &migrate(DataEffect::Expand, true), &operation(Some(expected)));
    assert!(plan(other.clone(), "1").is_ok());
    assert!(matches!(plan(other, "0"), Err(Failure::Revision { .. })));
    assert!(matches!(plan(vec![], "0"), Err(Failure::Revision { found: None, .. })));
    assert!(plan(own, "0").is_ok());
}
