use super::*;
use holdfast_common::fence::Epoch;

const DOCS: &str = include_str!("../../../../../docs/external-adapters.md");

fn said(rest: &str) -> Result<Answer, NoAnswer> {
    answer(format!(r#"{{"protocol": "holdfast.adapter/1", {rest}}}"#).as_bytes())
}

/// The JSON blocks below a heading of the page.
fn blocks(heading: &str) -> Vec<serde_json::Value> {
    let (_, section) = DOCS.split_once(&format!("\n## {heading}\n")).expect("the page has that heading");
    let section = section.split("\n## ").next().expect("split gives one");
    let blocks = section.split("```json\n").skip(1).map(|rest| rest.split("```").next().expect("split gives one"));
    let blocks: Vec<_> =
        blocks.map(|text| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))).collect();
    assert!(!blocks.is_empty(), "{heading} has no example");
    blocks
}

#[test]
fn every_answer_on_the_page_is_one_and_every_outcome_is_on_the_page() {
    let mut words: Vec<&str> = Vec::new();
    for block in blocks("Answers") {
        let answer = answer(block.to_string().as_bytes()).unwrap_or_else(|error| panic!("{error}: {block}"));
        words.push(answer.word());
    }
    words.sort_unstable();
    words.dedup();
    let all = ["applied", "applied_before", "described", "failed", "fit", "raised", "read", "refused", "transient"];
    assert_eq!(words, all);
}

#[test]
fn the_requests_on_the_page_are_those_that_are_sent() {
    let settings: BTreeMap<String, String> = [("folder".to_owned(), "/srv/flags".to_owned())].into();
    let asked: BTreeMap<String, String> = [("checkout".to_owned(), "on".to_owned())].into();
    let (target, resource) = (TargetName::new("flags@prod").unwrap(), ResourceName::new("flags").unwrap());
    let deployment: DeploymentId = "0198c0de-0000-7000-8000-000000000012".parse().unwrap();
    let (step, to, from) = (StepName::new("flip").unwrap(), Revision::new("v2").unwrap(), Revision::new("v1").unwrap());
    let fence = Fence::first(Epoch(1)).unwrap().as_u64() + 41;
    let full = Request {
        protocol: PROTOCOL,
        call: Asked::Apply,
        target: &target,
        resource: &resource,
        settings: &settings,
        operation: Operation {
            id: OperationId { deployment, step: step.clone() }.to_string(),
            deployment,
            step: &step,
            revision: Some(&to),
            expected_revision: Some(&from),
            settings: Some(&asked),
        },
        fence: Some(fence.to_string()),
        archive: None,
        work: Some(Path::new("/var/lib/holdfast-agent/attempts/0198c0de-0000-7000-8000-0000000000aa/work")),
    };
    let look = Request { call: Asked::Inspect, fence: None, work: None, ..full.clone() };
    let shown = blocks("Requests");
    assert_eq!(shown, [serde_json::to_value(&full).unwrap(), serde_json::to_value(&look).unwrap()]);
}

#[test]
fn what_is_not_wholly_understood_is_no_answer() {
    for text in [
        "",
        "applied",
        "{}",
        "[]",
        r#"{"outcome": "applied"}"#,
        r#"{"protocol": "holdfast.adapter/1"}"#,
        r#"{"protocol": "holdfast.adapter/1", "outcome": "applied"} {"protocol": "holdfast.adapter/1"}"#,
        r#"{"protocol": "holdfast.adapter/1", "outcome": "applied", "outcome": "failed"}"#,
        r#"{"protocol": "holdfast.adapter/1", "outcome": "applied""#,
    ] {
        assert!(matches!(answer(text.as_bytes()), Err(NoAnswer::Form(_))), "{text}");
    }
    let other = answer(br#"{"protocol": "holdfast.adapter/2", "outcome": "applied"}"#);
    assert_eq!(other, Err(NoAnswer::Protocol("holdfast.adapter/2".to_owned())));
    for text in [
        r#""outcome": "done""#,
        r#""outcome": "Applied""#,
        r#""outcome": "applied", "note": "well""#,
        r#""outcome": "refused", "reason": "mood""#,
        r#""outcome": "read", "reading": {"resource_identity": "a", "state": "maybe"}"#,
        r#""outcome": "read", "reading": {"state": "applied"}"#,
        r#""outcome": "read", "reading": {"resource_identity": "a", "state": "applied", "revision": "a b"}"#,
        r#""outcome": "described", "capability": {"inspect": "all", "enforce": "fence", "outlives": false}"#,
    ] {
        assert!(matches!(said(text), Err(NoAnswer::Form(_))), "{text}");
    }
}

#[test]
fn an_answer_has_the_keys_of_its_outcome_and_no_others() {
    for (text, outcome, key) in [
        (r#""outcome": "refused""#, "refused", "reason"),
        (r#""outcome": "read""#, "read", "reading"),
        (r#""outcome": "described""#, "described", "capability"),
    ] {
        assert_eq!(said(text), Err(NoAnswer::Lacks { outcome, key }));
    }
    assert_eq!(
        said(r#""outcome": "applied", "reason": "fence""#),
        Err(NoAnswer::TooMuch { outcome: "applied", key: "reason" })
    );
    assert!(matches!(
        said(r#""outcome": "applied", "reading": {"resource_identity": "a", "state": "not_applied"}"#),
        Err(NoAnswer::TooMuch { outcome: "applied", key: "reading" })
    ));
}

#[test]
fn a_fence_is_decimal_text() {
    let of = |fence: &str| {
        said(&format!(
            r#""outcome": "read", "reading": {{"resource_identity": "a", "state": "applied", "highest_fence": {fence}}}"#
        ))
    };
    let Ok(Answer::Read { reading }) = of("\"1099511627818\"") else { panic!("it is one") };
    assert_eq!(reading.highest_fence.map(Fence::as_u64), Some(1_099_511_627_818));
    for odd in ["\"0\"", "\"\"", "\"+1\"", "\"1.42\"", "\"18446744073709551616\"", "\" 1\""] {
        assert!(matches!(of(odd), Err(NoAnswer::Fence(_))), "{odd}");
    }
    assert!(matches!(of("1099511627818"), Err(NoAnswer::Form(_))), "a number of JSON is not exact");
}
