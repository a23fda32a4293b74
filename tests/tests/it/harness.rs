//! The harness itself: what proves things must be proven first.

use holdfast_tests::folder::Folder;
use holdfast_tests::ledger::Ledger;
use holdfast_tests::process::{Launch, Process, state_of};
use holdfast_tests::wait;

use crate::PROGRAM;

fn launch(folder: &Folder, arguments: &[String]) -> Launch {
    Launch {
        name: "ledger".to_owned(),
        wrapper: Vec::new(),
        program: arguments[0].clone().into(),
        arguments: arguments[1..].to_vec(),
        environment: [("HOLDFAST_OPERATION_ID".to_owned(), "d1/a".to_owned())].into(),
        folder: folder.path().to_owned(),
        log: folder.join("ledger.log"),
    }
}

#[tokio::test]
async fn the_oracle_sees_two_commands_that_really_overlap() {
    let folder = Folder::new();
    let ledger = Ledger::new(PROGRAM.as_ref(), &folder, "box");
    let _first = Process::start(&launch(&folder, &ledger.gated("go")));
    ledger.until_begun(1).await;
    let mut second = Process::start(&launch(&folder, &ledger.command()));
    assert!(second.ended(wait::SOON).await.success());
    let found = std::panic::catch_unwind(|| ledger.check());
    assert!(found.is_err(), "the overlap was not seen: {:?}", ledger.lines());
}

#[tokio::test]
async fn the_oracle_takes_a_dead_command_for_over_and_a_frozen_one_for_open() {
    let folder = Folder::new();
    let ledger = Ledger::new(PROGRAM.as_ref(), &folder, "box");
    let mut first = Process::start(&launch(&folder, &ledger.gated("go")));
    ledger.until_begun(1).await;
    first.kill();
    let mut second = Process::start(&launch(&folder, &ledger.gated("go")));
    ledger.until_begun(2).await;
    ledger.check();
    second.freeze().await;
    let mut third = Process::start(&launch(&folder, &ledger.command()));
    assert!(third.ended(wait::SOON).await.success());
    assert!(std::panic::catch_unwind(|| ledger.check()).is_err(), "{:?}", ledger.lines());
}

#[tokio::test]
async fn nothing_that_works_in_a_test_folder_outlives_it() {
    let folder = Folder::new();
    let ledger = Ledger::new(PROGRAM.as_ref(), &folder, "box");
    // A shell that ends at once and leaves one in a session of its own.
    let words = ["sh", "-c", "setsid \"$@\" & echo left", "sh"].map(str::to_owned);
    let words: Vec<String> = words.into_iter().chain(ledger.gated("never")).collect();
    let mut shell = Process::start(&launch(&folder, &words));
    assert!(shell.ended(wait::SOON).await.success());
    let pid = ledger.until_begun(1).await[0].pid;
    let path = folder.path().to_owned();
    assert!(state_of(pid).is_some());
    drop(folder);
    wait::until_true("the left one to be gone", wait::SOON, || matches!(state_of(pid), None | Some('Z'))).await;
    assert!(!path.exists());
}

#[tokio::test]
async fn a_gated_command_ends_as_the_gate_and_its_options_say() {
    let folder = Folder::new();
    let ledger = Ledger::new(PROGRAM.as_ref(), &folder, "box");
    let gated: Vec<String> = ledger.gated("go").into_iter().chain(["--exit".to_owned(), "7".to_owned()]).collect();
    let mut command = Process::start(&launch(&folder, &gated));
    ledger.until_begun(1).await;
    assert_eq!(command.status(), None);
    ledger.open_gate("go");
    assert_eq!(command.ended(wait::SOON).await.code(), Some(7));
    ledger.until_ended(0).await;
    ledger.check_begun(1);
}
