//! Whatever is fed in: no panic, a clear error with a place, no control character in what is resolved, and the two
//! notations say the same.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use serde_json::{Value, json};

use super::*;

const FILES: [&str; 6] = [
    include_str!("../../../../examples/shop.deploy.toml"),
    include_str!("../../../../examples/cache.deploy.toml"),
    include_str!("../../../../examples/shop.target.toml"),
    include_str!("../../../../examples/orders-restore.deploy.toml"),
    include_str!("../../../../examples/refused/destructive-migration.toml"),
    TWO_RESOURCES,
];

fn is_clear(text: &[u8], errors: &Errors) {
    let lines = text.iter().filter(|byte| **byte == b'\n').count() + 1;
    assert!(errors.iter().count() > 0);
    for error in errors {
        let place = error.position;
        assert!((1..=lines).contains(&place.line) && (1..=text.len() + 1).contains(&place.column), "{error}");
        assert!(!error.message.is_empty());
        let shown = error.to_string();
        assert!(shown.chars().all(|c| !c.is_control()) && shown.len() < 2000, "{shown:?}");
    }
}

/// Both readers, and resolution of what they take.
fn feed(bytes: &[u8], inputs: &BTreeMap<String, String>) {
    match DeploymentFile::parse_bytes(bytes) {
        Err(errors) => is_clear(bytes, &errors),
        Ok(file) => {
            if let Err(errors) = file.check(&given(&[])) {
                is_clear(bytes, &errors);
            }
            for text in [TARGET, TWO_RESOURCES] {
                let target = target(text);
                match file.resolve(inputs, Some(&target.name), &target) {
                    Err(errors) => is_clear(bytes, &errors),
                    Ok(spec) => has_no_controls(&serde_json::to_value(&spec).expect("plain data")),
                }
            }
        }
    }
    match TargetFile::parse_bytes(bytes) {
        Err(errors) => is_clear(bytes, &errors),
        Ok(spec) => has_no_controls(&serde_json::to_value(&spec).expect("plain data")),
    }
}

fn has_no_controls(value: &Value) {
    match value {
        Value::String(text) => assert!(text.chars().all(|c| !c.is_control()), "{text:?}"),
        Value::Array(list) => list.iter().for_each(has_no_controls),
        Value::Object(table) => table.iter().for_each(|(key, value)| {
            assert!(key.chars().all(|c| !c.is_control()), "{key:?}");
            has_no_controls(value);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// One small change at a place given as a share of the text.
#[derive(Clone, Debug)]
enum Edit {
    Insert(f64, String),
    Delete(f64, usize),
    Repeat(f64, usize),
    Truncate(f64),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let snippet = prop_oneof![
        "\\PC{0,3}",
        any::<char>().prop_map(String::from),
        prop::sample::select(vec![
            "\"",
            "'",
            "[",
            "]",
            "{",
            "}",
            "=",
            "\n",
            ",",
            "${",
            "}",
            "${inputs.",
            "#",
            ".",
            "\\u0000",
            "\\n",
            "\"\"\"",
            "[[step]]\n",
            "[lease]\n",
            "verify = []\n",
            "data = \"destructive\"\n",
            "[rollback]\nstrategy = \"previous-revision\"\n",
            "[[rollback.step]]\nname = \"back\"\n",
            "2027-01-31T00:00:00Z",
            "[[verify]]\ntcp = { address = \"a:1\" }\n",
            "9999999999999999999999",
            "nan",
            "1979-05-27",
            "true",
            "\u{feff}",
            "\r",
            "\u{202e}",
        ])
        .prop_map(str::to_owned),
    ];
    let edit = prop_oneof![
        (0.0..1.0, snippet).prop_map(|(at, text)| Edit::Insert(at, text)),
        (0.0..1.0, 1..40usize).prop_map(|(at, length)| Edit::Delete(at, length)),
        (0.0..1.0, 1..40usize).prop_map(|(at, length)| Edit::Repeat(at, length)),
        (0.0..1.0).prop_map(Edit::Truncate),
    ];
    prop::collection::vec(edit, 1..4)
}

fn apply(text: &str, edits: &[Edit]) -> String {
    edits.iter().fold(text.to_owned(), |text, edit| {
        let chars: Vec<char> = text.chars().collect();
        let place = |share: &f64| ((chars.len() as f64 * share) as usize).min(chars.len());
        let end = |at: usize, length: &usize| (at + length).min(chars.len());
        let text = |parts: &[&[char]]| parts.iter().flat_map(|part| part.iter()).collect::<String>();
        match edit {
            Edit::Insert(at, new) => {
                let new: Vec<char> = new.chars().collect();
                text(&[&chars[..place(at)], &new, &chars[place(at)..]])
            }
            Edit::Delete(at, length) => text(&[&chars[..place(at)], &chars[end(place(at), length)..]]),
            Edit::Repeat(at, length) => text(&[&chars[..end(place(at), length)], &chars[place(at)..]]),
            Edit::Truncate(at) => text(&[&chars[..place(at)]]),
        }
    })
}

fn some_inputs() -> impl Strategy<Value = BTreeMap<String, String>> {
    let value = prop_oneof![Just(SHA.to_owned()), "[a-z0-9.]{1,8}", "-?[0-9]{1,4}", any::<String>()];
    let name =
        prop::sample::select(vec!["archive", "sha256", "revision", "seconds", "mode", "other"]).prop_map(str::to_owned);
    prop::collection::btree_map(name, value, 0..5)
}

/// A file as data: often valid, often not quite.
fn files() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        4 => "[a-z][a-z0-9.-]{0,6}",
        2 => Just("${inputs.x}".to_owned()),
        1 => "[ -~äß\u{202e}\t\n]{0,8}",
    ];
    let data = prop_oneof![9 => Just("none"), 1 => prop::sample::select(vec!["expand", "contract", "destructive"])];
    let step = (text.clone(), prop::collection::vec(text.clone(), 1..4), any::<bool>(), 0..4u8, text.clone()).prop_map(
        |(name, run, pure, keys, revision)| {
            let mut step = json!({ "name": name });
            match keys {
                0 => step["with"] = json!({ "archive": run[0], "sha256": SHA, "revision": revision }),
                1 => step["run"] = json!(run),
                2 => {
                    step["run"] = json!(run);
                    step["with"] = json!({ "revision": revision });
                }
                _ => {
                    step["run"] = json!(run);
                    step["timeout"] = json!("90s");
                    step["effect"] = json!(if pure { "none" } else { "mutates" });
                }
            }
            step
        },
    );
    let recovery =
        prop::sample::select(vec!["none-needed", "expand-contract", "restore: a drill", "restore: ", "${inputs.x}"]);
    let until = prop::sample::select(vec!["2027-01-31T00:00:00Z", "2027-01-31", "2027-02-30T00:00:00Z", "soon"]);
    let rollback = prop::option::weighted(
        0.2,
        (0..4u8, prop::option::of(until), prop::option::of(recovery), data.clone(), step.clone()),
    );
    (prop::collection::vec(step, 1..4), text, 0..5i64, prop::option::of(-5..200i64), data, rollback).prop_map(
        |(mut steps, default, odd, tries, data, rollback)| {
            if data != "none" {
                steps[0]["data"] = json!(data);
            }
            let mut file = json!({
                "schema": "holdfast/v1",
                "target": "shop@prod",
                "inputs": { "x": { "type": "string", "default": default } },
                "step": steps,
            });
            if let Some(tries) = tries {
                file["retry"] = json!({ "max_attempts": tries, "backoff": { "initial": "1s" } });
            }
            if let Some((way, until, recovery, data, mut step)) = rollback {
                step["data"] = json!(data);
                let mut back = match way {
                    0 => json!({}),
                    1 => json!({ "strategy": "previous-revision" }),
                    2 => json!({ "step": [{ "name": "put-back" }] }),
                    _ => json!({ "step": [step] }),
                };
                if let Some(recovery) = recovery {
                    back["data_recovery"] = json!(recovery);
                }
                if let Some(until) = until {
                    back["compatible"] = json!({ "until": until, "data": "1..2" });
                }
                file["rollback"] = back;
                file["verify"] = json!([{ "tcp": { "address": "x.org:1" } }]);
            }
            if odd == 0 {
                file["verify"] = json!([{ "for": "3s", "http": { "url": "https://x.org/" } }]);
                file["leese"] = json!(1.5);
            }
            file
        },
    )
}

/// JSON's strings are TOML's basic strings; tables are written inline.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let fields: Vec<String> = table.iter().map(|(key, value)| format!("{key} = {}", toml(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(toml).collect::<Vec<_>>().join(", ")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn toml_file(value: &Value) -> String {
    let table = value.as_object().expect("a file is a table");
    table.iter().map(|(key, value)| format!("{key} = {}\n", toml(value))).collect()
}

/// What is recorded, or everything about what is wrong but its place.
fn outcome(text: &str) -> Result<DeploymentSpec, Vec<(Code, Option<String>, String)>> {
    let resolved = DeploymentFile::parse(text).and_then(|file| file.resolve(&given(&[]), None, &target(TARGET)));
    resolved.map_err(|errors| {
        let mut found: Vec<_> = errors.iter().map(|e| (e.code, e.key.clone(), e.message.clone())).collect();
        found.sort();
        found
    })
}

/// At least 512 cases; more by `PROPTEST_CASES`.
fn config() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(512), failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_bytes_are_taken_or_refused_clearly(bytes in prop::collection::vec(any::<u8>(), 0..200), inputs in some_inputs()) {
        feed(&bytes, &inputs);
    }

    #[test]
    fn any_text_is_taken_or_refused_clearly(text in "\\PC{0,80}", inputs in some_inputs()) {
        feed(text.as_bytes(), &inputs);
        feed(format!("schema = \"holdfast/v1\"\n{text}").as_bytes(), &inputs);
        feed(format!("{{\"schema\": \"holdfast/v1\", {text}").as_bytes(), &inputs);
    }

    #[test]
    fn damaged_files_are_taken_or_refused_clearly(file in prop::sample::select(FILES.to_vec()), edits in edits(), inputs in some_inputs()) {
        feed(apply(file, &edits).as_bytes(), &inputs);
    }

    #[test]
    fn damaged_json_is_taken_or_refused_clearly(file in files(), edits in edits(), inputs in some_inputs()) {
        let text = serde_json::to_string_pretty(&file).expect("plain data");
        feed(text.as_bytes(), &inputs);
        feed(apply(&text, &edits).as_bytes(), &inputs);
    }

    #[test]
    fn both_notations_say_the_same(file in files()) {
        let json = serde_json::to_string(&file).expect("plain data");
        prop_assert_eq!(outcome(&json), outcome(&toml_file(&file)));
    }

    #[test]
    fn values_are_put_in_whole_or_refused(value in any::<String>()) {
        let text = deployment("[inputs]\nx = { type = \"string\" }\n[[step]]\nname = \"one\"\nrun = [\"echo\", \"<${inputs.x}>\"]");
        match resolve(&text, &[("x", &value)]) {
            Ok(spec) => {
                prop_assert!(value.chars().all(|c| !c.is_control()));
                let argv = serde_json::to_value(&spec.steps[0].body).expect("plain data")["argv"][1].clone();
                prop_assert_eq!(argv, json!(format!("<{value}>")));
            }
            Err(errors) => prop_assert!(value.chars().any(char::is_control) || value.len() > 4096, "{}", errors),
        }
    }
}

#[test]
fn the_generated_files_are_both_taken_and_refused() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let outcomes: Vec<bool> = (0..600)
        .map(|_| outcome(&toml_file(&files().new_tree(&mut runner).expect("no rejections").current())).is_ok())
        .collect();
    assert!(outcomes.iter().filter(|taken| **taken).count() > 30, "almost none is taken");
    assert!(outcomes.iter().filter(|taken| !**taken).count() > 30, "almost none is refused");
}
