use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use holdfast_common::id::AgentName;
use serde::Deserialize;

use super::*;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    data: PathBuf,
    listen: Listen,
    #[serde(default)]
    log: Log,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    agent: Option<AgentName>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Listen {
    address: SocketAddr,
    #[serde(default)]
    max_streams: u32,
    #[serde(default)]
    names: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Log {
    format: crate::telemetry::Format,
    colour: Option<bool>,
}

const FILE: &str = "\
data = \"/var/lib/x\"
# 'ä' counts as one column
[listen]
address = \"127.0.0.1:1\"
max-streams = 5
";

/// Loads `text` from a real file of its own.
fn load_text(text: &str, environment: &[(&str, &str)]) -> Result<Config, Error> {
    let mut file = Scratch::new();
    file.write(text);
    load(Some(&file.path), variables_of(environment))
}

fn variables_of(environment: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    environment.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new() -> Self {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Self { path: std::env::temp_dir().join(format!("holdfast-config-{}-{number}.toml", std::process::id())) }
    }

    fn write(&mut self, text: &str) {
        let mut file = std::fs::File::create(&self.path).expect("a temporary file");
        file.write_all(text.as_bytes()).expect("a temporary file");
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn failure(text: &str, environment: &[(&str, &str)]) -> String {
    let message = load_text(text, environment).expect_err("must be refused").to_string();
    match message.split_once(".toml") {
        Some((_, rest)) => format!("FILE{rest}"),
        None => message,
    }
}

#[test]
fn every_key_can_come_from_the_file_or_from_its_variable() {
    let from_file = load_text(
        &format!(
            "agent = \"web-07\"\n{FILE}names = [\"a\", \"b\"]\n[log]\nformat = \"json\"\n[labels]\nrole = \"shop\"\n"
        ),
        &[],
    );
    let from_environment: Result<Config, _> = load(
        None,
        variables_of(&[
            ("HOLDFAST_DATA", "/var/lib/x"),
            ("HOLDFAST_LISTEN_ADDRESS", "127.0.0.1:1"),
            ("HOLDFAST_LISTEN_MAX_STREAMS", "5"),
            ("HOLDFAST_LISTEN_NAMES", "[\"a\", \"b\"]"),
            ("HOLDFAST_LOG_FORMAT", "json"),
            ("HOLDFAST_LABELS", "{ role = \"shop\" }"),
            ("HOLDFAST_AGENT", "web-07"),
        ]),
    );
    assert_eq!(from_file.expect("sound"), from_environment.expect("sound"));
}

#[test]
fn a_variable_beats_the_file_and_an_empty_one_is_not_set() {
    let config =
        load_text(FILE, &[("HOLDFAST_LISTEN_ADDRESS", "[::1]:2"), ("HOLDFAST_LISTEN_MAX_STREAMS", "")]).expect("sound");
    assert_eq!(config.listen.address, "[::1]:2".parse().expect("an address"));
    assert_eq!(config.listen.max_streams, 5);
}

#[test]
fn keys_and_variables_are_listed_from_the_type() {
    let listed: Vec<_> = variables::<Config>().into_iter().map(|v| format!("{} {}", v.key, v.name)).collect();
    assert_eq!(
        listed,
        [
            "data HOLDFAST_DATA",
            "listen.address HOLDFAST_LISTEN_ADDRESS",
            "listen.max-streams HOLDFAST_LISTEN_MAX_STREAMS",
            "listen.names HOLDFAST_LISTEN_NAMES",
            "log.format HOLDFAST_LOG_FORMAT",
            "log.colour HOLDFAST_LOG_COLOUR",
            "labels HOLDFAST_LABELS",
            "agent HOLDFAST_AGENT",
        ]
    );
}

#[test]
fn errors_in_the_file_name_line_column_and_key() {
    for (text, expected) in [
        ("data = ", "FILE:1:8: "),
        (
            &FILE.replace("max-streams", "max-stream"),
            "FILE:5:1: unknown key \"listen.max-stream\", did you mean max-streams?",
        ),
        (&FILE.replace("[listen]", "[listne]"), "FILE:3:2: unknown key \"listne\", did you mean listen?"),
        (&format!("zzz = 1\n{FILE}"), "FILE:1:1: unknown key \"zzz\""),
        (
            &FILE.replace("= 5", "= \"ä\""),
            "FILE:5:15: \"listen.max-streams\": invalid type: string \"ä\", expected u32",
        ),
        (&FILE.replace("= 5", "= -1"), "FILE:5:15: \"listen.max-streams\": "),
        (&FILE.replace("127.0.0.1:1", "here"), "FILE:4:11: \"listen.address\": invalid socket address syntax"),
        (&FILE.replace("data", "# data"), "FILE: the key \"data\" is missing: set it there or as HOLDFAST_DATA"),
        (
            &FILE.replace("address", "# address"),
            "FILE:3:1: the key \"listen.address\" is missing: set it there or as HOLDFAST_LISTEN_ADDRESS",
        ),
        (&format!("agent = \"../x\"\n{FILE}"), "FILE:1:9: \"agent\": a agent name starts with"),
        ("listen = 3\ndata = \"x\"", "FILE:1:10: \"listen\": invalid type: integer `3`, expected struct Listen"),
    ] {
        let shown = failure(text, &[]);
        assert!(shown.starts_with(expected), "{text}\nexpected {expected}\nshown    {shown}");
    }
}

#[test]
fn errors_in_a_list_name_the_item_and_the_key_in_it() {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its keys count")]
    struct Service {
        #[serde(default)]
        worker: Vec<Worker>,
    }
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its keys count")]
    struct Worker {
        name: AgentName,
        #[serde(default)]
        at: Vec<SocketAddr>,
        #[serde(default)]
        log: Log,
    }
    let sound = "[[worker]]\nname = \"a\"\nat = [\"[::1]:1\"]\n";
    for (second, variable, expected) in [
        ("name = \"b\"\nat = [\"[::1]:1\", \"here\"]", None, "FILE:6:18: \"worker[1].at[1]\": invalid socket address"),
        ("name = \"-rf\"", None, "FILE:5:8: \"worker[1].name\": a agent name starts with"),
        ("name = \"b\"\n[worker.log]\nformat = \"xml\"", None, "FILE:7:10: \"worker[1].log.format\": unknown variant"),
        ("name = \"b\"\nlog = { format = \"xml\" }", None, "FILE:6:18: \"worker[1].log.format\": unknown variant"),
        ("name = \"b\"\nnaem = 1", None, "FILE:6:1: \"worker[1].naem\": unknown field `naem`"),
        ("at = []", None, "FILE:4:1: the key \"worker[1].name\" is missing: set it there"),
        ("name = \"b\"", Some("[{ name = \"-rf\" }]"), "HOLDFAST_WORKER: \"worker\": a agent name starts with"),
    ] {
        let mut file = Scratch::new();
        file.write(&format!("{sound}[[worker]]\n{second}\n"));
        let environment = variable.map(|value| ("HOLDFAST_WORKER".into(), value.into()));
        let shown = load::<Service>(Some(&file.path), environment).expect_err("must be refused").to_string();
        let shown = shown.split_once(".toml").map_or(shown.clone(), |(_, rest)| format!("FILE{rest}"));
        assert!(shown.starts_with(expected) && !shown.contains(" or as "), "expected {expected}\nshown    {shown}");
    }
}

#[test]
fn errors_in_a_variable_name_the_variable_and_the_key() {
    for (name, value, expected) in [
        ("HOLDFAST_LISTEN_MAX_STREAMS", "many", "HOLDFAST_LISTEN_MAX_STREAMS: \"listen.max-streams\": "),
        ("HOLDFAST_LISTEN_MAX_STREAMS", "-1", "HOLDFAST_LISTEN_MAX_STREAMS: \"listen.max-streams\": "),
        ("HOLDFAST_LISTEN_NAMES", "[\"a\", 3]", "HOLDFAST_LISTEN_NAMES: \"listen.names\": invalid type: integer `3`"),
        ("HOLDFAST_LISTEN_ADDRESS", "here", "HOLDFAST_LISTEN_ADDRESS: \"listen.address\": invalid socket address"),
        ("HOLDFAST_LOG_FORMAT", "xml", "HOLDFAST_LOG_FORMAT: \"log.format\": unknown variant `xml`"),
        ("HOLDFAST_AGENT", "-rf", "HOLDFAST_AGENT: \"agent\": a agent name starts with"),
    ] {
        let shown = failure(FILE, &[(name, value)]);
        assert!(shown.starts_with(expected), "{name}={value}\nexpected {expected}\nshown    {shown}");
    }
    let shown = failure("listen = 3", &[("HOLDFAST_LISTEN_ADDRESS", "127.0.0.1:1")]);
    assert_eq!(shown, "FILE:1:10: \"listen\": expected a table, found integer");
}

#[test]
fn only_variables_that_must_be_meant_for_us_are_unknown() {
    for (name, expected) in [
        (
            "HOLDFAST_LISTEN_ADRESS",
            "unknown environment variable HOLDFAST_LISTEN_ADRESS, did you mean HOLDFAST_LISTEN_ADDRESS?",
        ),
        ("HOLDFAST_LISTEN_WHATEVER", "unknown environment variable HOLDFAST_LISTEN_WHATEVER"),
        ("HOLDFAST_DATE", "unknown environment variable HOLDFAST_DATE, did you mean HOLDFAST_DATA?"),
    ] {
        assert_eq!(failure(FILE, &[(name, "x")]), expected);
    }
    let others = ["HOLDFAST_TOKEN", "HOLDFAST_CONFIG", "HOLDFASTDATE", "PATH", "HOLDFAST_LISTENER"];
    for name in others.into_iter().chain(STEP_VARIABLES) {
        assert!(load_text(FILE, &[(name, "x")]).is_ok(), "{name}");
    }
}

#[test]
fn an_operators_variables_are_left_to_the_operator_unless_they_are_keys() {
    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only its keys count")]
    struct Service {
        ca: Option<Files>,
        address: Option<String>,
    }
    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only its keys count")]
    struct Files {
        key: Option<String>,
    }
    let load = |name: &str| load::<Service>(None, [(OsString::from(name), OsString::from("x"))]);
    for name in OPERATOR_VARIABLES {
        assert!(load(name).is_ok(), "{name}");
    }
    assert_eq!(load("HOLDFAST_ADDRESS").expect("a key").address.as_deref(), Some("x"), "a key of its own stays one");
    assert!(load("HOLDFAST_CA_KEYS").is_err(), "what is meant for the service is still looked at");
}

#[cfg(unix)]
#[test]
fn text_that_is_not_utf_8_is_refused_by_place() {
    use std::os::unix::ffi::OsStringExt;
    let bad = OsString::from_vec(vec![0xff]);
    let mut file = Scratch::new();
    file.write(FILE);
    let error = load::<Config>(Some(&file.path), [("HOLDFAST_DATA".into(), bad.clone())]).expect_err("not text");
    assert_eq!(error.to_string(), "HOLDFAST_DATA: not UTF-8 text");
    assert!(load::<Config>(Some(&file.path), [("OTHER".into(), bad)]).is_ok());
    std::fs::write(&file.path, [0xff]).expect("a temporary file");
    assert!(matches!(load::<Config>(Some(&file.path), []), Err(Error::NotText { place: Place::File(_) })));
    assert!(matches!(load::<Config>(Some(&file.path.join("x")), []), Err(Error::Read { .. })));
}
