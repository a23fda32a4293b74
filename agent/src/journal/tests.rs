use std::collections::BTreeSet;
use std::path::PathBuf;

use holdfast_agent_core::work::{Assignment, LeaseCount, Phase};
use holdfast_common::fence::Epoch;
use holdfast_common::id::DeploymentId;
use holdfast_common::outcome::AttemptEnd;
use holdfast_common::spec::PlanDigest;
use holdfast_common::time::Millis;
use uuid::Uuid;

use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("holdfast-journal-{}", Uuid::new_v4()));
        Self(path)
    }

    fn open(&self) -> Journal {
        Journal::open(&self.0, IncarnationId(Uuid::new_v4())).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn claim() -> Claim {
    Claim {
        deployment: DeploymentId(Uuid::from_u128(1)),
        attempt: AttemptId(Uuid::from_u128(2)),
        fence: Fence::first(Epoch(1)).unwrap(),
    }
}

fn work() -> Work {
    let assignment = Assignment {
        claim: claim(),
        target: TargetName::new("shop@prod").unwrap(),
        number: 1,
        plan: PlanDigest("plan".to_owned()),
        steps: Vec::new(),
        resources: Vec::new(),
        carried: BTreeSet::new(),
        grace: Millis(1),
        goes_on: None,
        carries: Vec::new(),
        transient_exit_codes: BTreeSet::new(),
    };
    Work::taken(assignment, LeaseCount::NotLive, None)
}

fn ended() -> ReportBody {
    ReportBody::AttemptEnded { end: AttemptEnd::Succeeded }
}

#[test]
fn what_was_committed_is_there_after_a_restart() {
    let folder = Folder::new();
    let mut journal = folder.open();
    let incarnation = journal.incarnation();
    let target = TargetName::new("shop@prod").unwrap();
    let mut work = work();
    work.phase = Phase::Starting;
    let position = Position { store: StoreId(Uuid::from_u128(7)), epoch: 1, commit: 9 };
    let entries = [
        Entry::Work(&work),
        Entry::Fence(&target, claim().fence),
        Entry::Report(claim(), ended()),
        Entry::Welcomed("token", position),
    ];
    let reports = journal.commit(Wall(5), &entries).unwrap();
    drop(journal);
    let journal = folder.open();
    assert_eq!(journal.incarnation(), incarnation);
    assert_eq!(journal.unanswered().unwrap(), reports);
    assert_eq!(journal.fences().unwrap(), [(target, claim().fence)]);
    assert_eq!(journal.standing().unwrap(), (1, "token".to_owned(), Some(position)));
    let remembered = &journal.attempts().unwrap()[0];
    assert_eq!(remembered.phase, Phase::Starting);
    assert_eq!(remembered.assignment, work.assignment);
}

#[test]
fn report_sequences_are_never_used_twice_and_answers_are_written_with_the_next_commit() {
    let folder = Folder::new();
    let mut journal = folder.open();
    let first = journal.commit(Wall(1), &[Entry::Report(claim(), ended())]).unwrap();
    journal.answered(first[0].1.sequence, Disposition::Accepted);
    assert!(journal.has_answers());
    let second = journal.commit(Wall(2), &[Entry::Report(claim(), ended())]).unwrap();
    assert!(second[0].1.sequence > first[0].1.sequence);
    assert_eq!(journal.unanswered().unwrap(), second);
    assert_eq!(row::count_answered(&journal.connection), 1);
}

/// Whoever looks into it with another program keeps it from this one until that is over, and is told of.
#[test]
fn a_journal_that_another_process_has_open_is_told_and_nothing_of_it_is_lost() {
    let folder = Folder::new();
    let incarnation = folder.open().incarnation();
    let other = Connection::open(Places::below(&folder.0).journal()).unwrap();
    other.query_row("SELECT incarnation FROM identity", [], |_| Ok(())).unwrap();
    let error = Journal::open(&folder.0, IncarnationId(Uuid::new_v4())).unwrap_err();
    assert!(matches!(error, Error::Open { .. }), "{error}");
    drop(other);
    assert_eq!(folder.open().incarnation(), incarnation);
}

#[test]
fn second_agent_on_the_same_folder_is_refused() {
    let folder = Folder::new();
    let _first = folder.open();
    let second = Journal::open(&folder.0, IncarnationId(Uuid::new_v4()));
    assert!(matches!(second, Err(Error::InUse { .. })));
}

#[test]
fn newer_journal_is_refused() {
    let folder = Folder::new();
    folder.open().connection.pragma_update(None, "user_version", 99).unwrap();
    let opened = Journal::open(&folder.0, IncarnationId(Uuid::new_v4()));
    assert!(matches!(opened, Err(Error::Newer { found: 99, known: 1 })));
}
