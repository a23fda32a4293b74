use super::*;
use crate::adapter::Adapter;
use crate::spec::{CheckSpec, Probe, RetryClass, StepEffect, Timeouts};
use crate::time::Millis;

/// One check on line 6, with these keys from line 7 on.
fn check(keys: &str) -> String {
    step(&format!("[[verify]]\n{keys}"))
}

fn spec(text: &str) -> CheckSpec {
    let mut spec = resolve(text, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let last = spec.steps.pop().expect("a step");
    last.body.check().expect("a check was asked for").clone()
}

#[test]
fn checks_are_final_steps_without_effect_in_file_order() {
    let text = step(
        "[[verify]]\nhttp = { url = \"http://127.0.0.1:8080/healthz\", expect_status = 200 }\nfor = \"30s\"\ntimeout = \"3m\"\n\
         [[verify]]\nname = \"port\"\ntcp = { address = \"[::1]:8080\" }\n\
         [[verify]]\ncommand = [\"test\", \"-e\", \"/srv/up\"]",
    );
    let spec = resolve(&text, &[]).expect("valid");
    let names: Vec<&str> = spec.steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["one", "verify-1", "port", "verify-3"]);
    for step in &spec.steps[1..] {
        assert_eq!((step.effect, step.retry, &step.resource), (StepEffect::None, RetryClass::Pure, &None));
        assert_eq!(step.timeout, None, "a check keeps its own time");
    }
    let adapters: Vec<Adapter> = spec.steps[1..].iter().map(|step| step.body.adapter()).collect();
    assert_eq!(adapters, [Adapter::Check, Adapter::Check, Adapter::Command]);
    let first = spec.steps[1].body.check().expect("a check");
    assert_eq!(
        (first.hold, first.interval, first.give_up),
        (Millis::from_secs(30), Millis::from_secs(1), Millis::from_secs(180))
    );
    assert_eq!(spec.steps[1].stop_after(), Some(Millis::from_secs(185)));
    assert_eq!(first.to_string(), "http://127.0.0.1:8080/healthz answers 200 for 30s, within 3m");
    let last = spec.steps[3].body.check().expect("a check");
    assert_eq!(last.to_string(), "test -e /srv/up exits with 0, once within 5m");
}

#[test]
fn a_check_without_a_timeout_has_one_and_short_windows_are_looked_at_more_often() {
    let tcp = "tcp = { address = \"a:1\" }";
    let found = spec(&check(tcp));
    assert_eq!((found.hold, found.interval, found.give_up), (Millis(0), Millis(1000), Millis::from_secs(300)));
    let found = spec(&check(&format!("{tcp}\nfor = \"10m\"")));
    assert_eq!(found.give_up, Millis::from_secs(900));
    let found = spec(&check(&format!("{tcp}\nfor = \"200ms\"\ntimeout = \"1s\"")));
    assert_eq!(found.interval, Millis(100));
}

#[test]
fn inputs_are_substituted_in_what_is_looked_at() {
    let text = deployment(
        "[inputs]\nport = { type = \"integer\" }\n[[step]]\nname = \"one\"\nrun = [\"true\"]\n[[verify]]\n\
         http = { url = \"http://127.0.0.1:${inputs.port}/\", expect_status = 204, expect_body = \"at ${inputs.port}\" }",
    );
    let spec = resolve(&text, &[("port", "81")]).expect("valid");
    let probe = Probe::Http {
        url: "http://127.0.0.1:81/".to_owned(),
        expect_status: 204,
        expect_body: Some("at 81".to_owned()),
    };
    assert_eq!(spec.steps[1].body.check().map(|check| &check.probe), Some(&probe));
    let errors = resolve(&text, &[("port", "99999")]).expect_err("no port");
    is(only(&errors), Code::InvalidValue, "9:16", "verify[0].http.url", "port outside");
}

#[test]
fn a_check_looks_at_exactly_one_thing() {
    is(only(&refusal(&check("for = \"3s\""))), Code::MissingKey, "6:1", "verify[0]", "\"http\"");
    let two = "tcp = { address = \"a:1\" }\ncommand = [\"true\"]";
    is(only(&refusal(&check(two))), Code::InvalidValue, "8:1", "verify[0].command", "one thing");
    let errors = refusal(&check("htpp = { }"));
    assert_eq!(errors.iter().map(|error| error.code).collect::<Vec<_>>(), [Code::MissingKey, Code::UnknownKey]);
    assert_eq!(errors.iter().nth(1).and_then(|error| error.suggestion.as_deref()), Some("http"));
}

#[test]
fn a_check_that_could_never_have_held_is_refused() {
    for keys in [
        "for = \"10s\"\ntimeout = \"10s\"",
        "for = \"10s\"\ntimeout = \"5s\"",
        "interval = \"10s\"\ntimeout = \"10s\"",
        "for = \"5s\"\ninterval = \"6s\"",
    ] {
        let errors = refusal(&check(&format!("{keys}\ntcp = {{ address = \"a:1\" }}")));
        is(only(&errors), Code::InvalidValue, "6:1", "verify[0]", "");
    }
    for (key, place) in [("interval = \"99ms\"", "7:12"), ("timeout = \"8d\"", "7:11"), ("for = \"25h\"", "7:7")] {
        let errors = refusal(&check(&format!("{key}\ntcp = {{ address = \"a:1\" }}")));
        is(
            only(&errors),
            Code::InvalidValue,
            place,
            &format!("verify[0].{}", &key[..key.find(' ').unwrap()]),
            "outside",
        );
    }
}

#[test]
fn urls_and_addresses_are_plain() {
    for good in ["http://a", "https://a.b:443/c?d=e&f", "http://[::1]:80/", "http://10.0.0.1/%20", "https://a/?q"] {
        spec(&check(&format!("http = {{ url = {good:?}, expect_status = 200 }}")));
    }
    for bad in [
        "",
        "a",
        "ftp://a/",
        "http://",
        "http:///x",
        "http://user:hunter2@a/",
        "http://a:0/",
        "http://a:70000/",
        "http://a:/",
        "http://a:8o/",
        "http://a/ b",
        "http://a/#part",
        "http://[::1/",
        "http://[a]/",
        "http://-a/",
        "http://\u{fc}/",
    ] {
        let errors = refusal(&check(&format!("http = {{ url = {bad:?}, expect_status = 200 }}")));
        is(only(&errors), Code::InvalidValue, "7:16", "verify[0].http.url", "");
        assert!(!errors.to_string().contains("hunter2"), "{errors}");
    }
    for bad in ["a", "a:", "a:0", ":80", "::1:80", "http://a:80", "a:80/x"] {
        let errors = refusal(&check(&format!("tcp = {{ address = {bad:?} }}")));
        is(only(&errors), Code::InvalidValue, "7:19", "verify[0].tcp.address", "127.0.0.1:8080");
    }
    let status = refusal(&check("http = { url = \"http://a\", expect_status = 99 }"));
    is(only(&status), Code::InvalidValue, "7:44", "verify[0].http.expect_status", "100 to 599");
    is(only(&refusal(&check("command = []"))), Code::InvalidValue, "7:1", "verify[0].command", "0 entries");
}

#[test]
fn names_of_checks_and_steps_are_one_list() {
    let taken = check("name = \"one\"\ntcp = { address = \"a:1\" }");
    is(only(&refusal(&taken)), Code::InvalidValue, "6:1", "verify[0]", "taken");
    let default =
        step("[[verify]]\nname = \"verify-2\"\ntcp = { address = \"a:1\" }\n[[verify]]\ntcp = { address = \"a:1\" }");
    is(only(&refusal(&default)), Code::InvalidValue, "9:1", "verify[1]", "taken");
}

#[test]
fn deadlines_of_the_whole_are_read_and_bounded() {
    let read = |keys: &str| resolve(&step(&format!("[timeouts]\n{keys}")), &[]).map(|spec| spec.timeouts);
    assert_eq!(resolve(&step(""), &[]).expect("valid").timeouts, Timeouts::default());
    let both = Timeouts { queue: Some(Millis::from_secs(600)), deployment: Some(Millis::from_secs(3600)) };
    assert_eq!(read("queue = \"10m\"\ndeployment = \"1h\"").expect("valid"), both);
    for (keys, place, key) in [
        ("queue = \"0s\"", "7:9", "timeouts.queue"),
        ("deployment = \"31d\"", "7:14", "timeouts.deployment"),
        ("deployment = 3", "7:14", "timeouts.deployment"),
    ] {
        is(only(&refusal(&step(&format!("[timeouts]\n{keys}")))), Code::InvalidValue, place, key, "");
    }
}
