//! A file that round-trips, and differences planted in it, each named.

use holdfast_common::fence::Epoch;
use holdfast_common::id::{StoreId, TargetName};
use holdfast_common::time::Wall;
use uuid::Uuid;

use super::export::{self, Export, Sink};
use super::{Checked, check, goes_on};
use crate::store::{Identity, Reader};
use crate::verify::tests::Planted;

impl Sink for Vec<String> {
    async fn put(&mut self, lines: Vec<String>) -> bool {
        self.extend(lines);
        true
    }
}

async fn exported(planted: &Planted, whole: bool, targets: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    let export = Export {
        identity: Identity { store: StoreId(Uuid::from_u128(1)), epoch: Epoch(1) },
        by: "anna".to_owned(),
        at: Wall(1_700_000_000_000_000),
        targets: targets.iter().map(|name| TargetName::new(*name).unwrap()).collect(),
        whole,
    };
    assert!(export::run(export, Reader::over(&planted.path()).unwrap(), &mut lines).await.unwrap());
    lines
}

async fn whole(planted: &Planted) -> Vec<String> {
    exported(planted, true, &["blog@prod", "shop@prod"]).await
}

fn checked(lines: &[String]) -> Checked {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    check(text.as_bytes()).unwrap()
}

fn told(lines: &[String]) -> String {
    checked(lines).faults.iter().map(|fault| format!("{fault}\n")).collect()
}

#[track_caller]
fn assert_told(lines: &[String], words: &[&str]) {
    let told = told(lines);
    for words in words {
        assert!(told.contains(words), "{words:?} is not in:\n{told}");
    }
}

fn at(lines: &[String], words: &str) -> usize {
    lines.iter().position(|line| line.contains(words)).unwrap()
}

#[tokio::test]
async fn an_exported_file_holds_everything_and_checks() {
    let planted = Planted::new();
    let lines = whole(&planted).await;
    let checked = checked(&lines);
    assert_eq!(checked.faults, []);
    assert!(checked.sound && checked.events > 20);
    assert_eq!((checked.evidence, checked.acts, checked.heads.len()), (1, 3, 2));
    let head = checked.head.unwrap();
    assert_eq!((head.exported_by.as_str(), head.whole), ("anna", true));
    assert_eq!(head.exported_at, "2023-11-14T22:13:20.000000Z");
    let one = exported(&planted, false, &["blog@prod"]).await;
    let one = super::check(one.join("\n").as_bytes()).unwrap();
    assert_eq!(one.faults.len(), 1, "its last line has no end: {:?}", one.faults);
    assert_eq!((one.acts, one.heads.len()), (0, 1));
}

#[tokio::test]
async fn every_change_of_an_exported_file_is_named() {
    let planted = Planted::new();
    let lines = whole(&planted).await;
    let sum = "the lines were changed: their SHA-256 is";
    let submitted = at(&lines, "\\\"event\\\":\\\"submitted\\\"");
    let changed = |index: usize, from: &str, to: &str| {
        let mut lines = lines.clone();
        assert!(lines[index].contains(from), "{}", lines[index]);
        lines[index] = lines[index].replace(from, to);
        lines
    };
    let flipped = changed(submitted, "\\\"by\\\":\\\"ada\\\"", "\\\"by\\\":\\\"adb\\\"");
    assert_told(
        &flipped,
        &[&format!("line {}: blog@prod event 2: its hash is not the hash of what it says", submitted + 1), sum],
    );

    let mut dropped = lines.clone();
    dropped.remove(submitted);
    assert_told(&dropped, &["blog@prod event 3: missing: it follows event 1", "lines were written, and", sum]);

    let mut swapped = lines.clone();
    swapped.swap(submitted, submitted + 1);
    assert_told(
        &swapped,
        &["blog@prod event 3: missing: it follows event 1", "blog@prod event 2: it stands behind event 3", sum],
    );

    let mut doubled = lines.clone();
    doubled.insert(submitted, lines[submitted].clone());
    assert_told(&doubled, &["blog@prod event 2: it stands behind event 2: out of order, or twice"]);

    let cut: Vec<String> = lines[..lines.len() - 4].to_vec();
    assert_told(&cut, &[&format!("the file ends without its last line: it was cut off after line {}", cut.len())]);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let half = check(&text.as_bytes()[..text.len() / 2]).unwrap();
    assert!(half.faults.iter().any(|fault| fault.what == "the line is cut off"), "{:?}", half.faults);
    assert_told(&[], &["the file is empty"]);

    let evidence = at(&lines, "\"line\":\"evidence\"");
    let other = changed(evidence, "\"late_report\"", "\"late_word\"");
    assert_told(&other, &["the evidence of event", "is not here, or is another one"]);
    let mut without = lines.clone();
    without.remove(evidence);
    assert_told(&without, &["the evidence of event"]);
    let mut moved = lines.clone();
    moved.insert(1, lines[evidence].clone());
    assert_told(&moved, &["line 2: it does not stand behind event"]);

    let act = at(&lines, "\"line\":\"act\"");
    assert_told(&changed(act, "token_made", "token_revoked"), &["acts 1: its hash is not the hash of what it says"]);
    let mut fewer = lines.clone();
    fewer.remove(act);
    assert_told(&fewer, &["acts 1: missing: act 2 follows act 0"]);

    assert_told(
        &changed(submitted, "\"time\":\"1970", "\"time\":\"1971"),
        &["its time is not the one that was hashed"],
    );
    assert_told(&changed(0, "holdfast/audit/1", "holdfast/audit/9"), &["its format is holdfast/audit/9"]);
    assert_told(&changed(1, "\"sequence\":1,", "\"sequence\":1,\"more\":1,"), &["it is no line of an audit file"]);
    let end = lines.len() - 1;
    let other_end = changed(end, "\"shop@prod\":{\"sequence\":", "\"shop@prod\":{\"sequence\":9");
    assert_told(&other_end, &["is named as the last one, and is not"]);
    let mut behind = lines.clone();
    behind.push(lines[1].clone());
    assert_told(&behind, &["it stands behind the last line"]);
}

#[tokio::test]
async fn an_earlier_file_tells_that_a_history_was_hashed_anew() {
    let planted = Planted::new();
    let before = checked(&whole(&planted).await);
    assert_eq!(goes_on(&before, &checked(&whole(&planted).await)), Vec::<String>::new());
    assert_eq!(goes_on(&before, &checked(&exported(&planted, false, &["shop@prod"]).await)), Vec::<String>::new());
    planted.change(
        "UPDATE events SET body = replace(body, '\"by\":\"ada\"', '\"by\":\"eve\"') WHERE target = 'shop@prod'",
    );
    planted.chain_anew("shop@prod");
    let after = checked(&whole(&planted).await);
    assert!(after.sound, "it was hashed anew: {:?}", after.faults);
    let told = goes_on(&before, &after).join("\n");
    assert!(told.contains("shop@prod: event") && told.contains("the history was rewritten"), "{told}");

    let planted = Planted::new();
    planted
        .change("DELETE FROM events WHERE target = 'shop@prod' AND sequence > 5; DELETE FROM acts WHERE sequence = 3");
    let told = goes_on(&before, &checked(&whole(&planted).await)).join("\n");
    assert!(told.contains("is in the earlier file and not here: the history was cut"), "{told}");
    assert!(told.contains("act 3 is in the earlier file and not here"), "{told}");
}
