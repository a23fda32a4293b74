use super::*;
use crate::adapter::{Enforce, Inspect};
use crate::spec::{ResourceAdapter, RetryClass, StepBody};
use crate::system::{Change, Http, Submit, System};
use crate::time::Millis;

const EXAMPLE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/http/service.target.toml"));
const ROLL_OUT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/http/service.deploy.toml"));

/// A target with this `with`, on line 9.
fn with(keys: &str) -> String {
    format!(
        "schema = \"holdfast/v1\"\nname = \"app@prod\"\nagents = {{ role = \"app\" }}\n[[resource]]\nname = \"service\"\n\
         adapter = \"http\"\nreach = \"shared\"\n[resource.with]\n{keys}"
    )
}

fn http(target: &TargetSpec) -> &Http {
    let ResourceAdapter::System(System::Http(http)) = &target.resources[0].adapter else {
        panic!("it is declared as one: {target:?}");
    };
    http
}

fn refused(text: &str) -> Errors {
    match TargetFile::parse(text) {
        Ok(_) => panic!("was taken:\n{text}"),
        Err(errors) => errors,
    }
}

#[test]
fn the_example_parses_and_can_be_proven() {
    let service = target(EXAMPLE);
    let file = file(ROLL_OUT);
    file.check(&given(&[])).expect("valid without its target");
    let spec = file.resolve(&given(&[("revision", "v2")]), None, &service).expect("valid");
    let step = &spec.steps[0];
    let body = r#"{"revision": "v2", "duration_ms": 2000}"#.to_owned();
    let submit = Submit { body, content_type: "application/json".to_owned(), headers: [].into() };
    assert_eq!(step.body, StepBody::System(Change::Submit(submit)));
    assert_eq!((step.retry, step.revision.as_ref().map(|it| it.as_str())), (RetryClass::Idempotent, Some("v2")));
    let proof = step.capability(&service.resources[0]);
    assert_eq!((proof.inspect, proof.enforce, proof.outlives), (Inspect::Operation, Enforce::Fence, true));
}

#[test]
fn little_is_declared_and_little_is_claimed() {
    let bare = target(&with("url = \"https://api.example.org/v1\"\nsubmit = \"/deploy\""));
    let found = http(&bare);
    assert_eq!((found.method.as_str(), found.enforce, found.poll), ("POST", Enforce::None, Millis::from_secs(1)));
    assert_eq!((&found.status, &found.resource, &found.fence), (&None, &None, &None));
    assert_eq!((&found.headers.idempotency, &found.headers.fence, &found.headers.expected), (&None, &None, &None));
    assert!(found.transient.is_empty(), "no status is transient unless it is declared");
    assert_eq!((found.pointers.state.as_str(), &found.pointers.owner), ("/state", &None));
    assert_eq!(
        (found.words.applied.as_slice(), found.words.partial.as_slice()),
        (&["applied".to_owned()][..], &["partial".to_owned()][..])
    );
    let change =
        Change::Submit(Submit { body: String::new(), content_type: "text/plain".to_owned(), headers: [].into() });
    let claimed = |keys: &str| {
        let text = with(&format!("url = \"https://api.example.org\"\nsubmit = \"/deploy\"\n{keys}"));
        System::Http(Box::new(http(&target(&text)).clone())).capability(&change).expect("its own change").inspect
    };
    assert_eq!(claimed(""), Inspect::None);
    assert_eq!(claimed("resource = \"/\""), Inspect::Revision);
    assert_eq!(claimed("status = \"/ops/{operation}\"\nheaders = { idempotency = \"K\" }"), Inspect::Operation);
}

#[test]
fn what_is_claimed_needs_what_would_carry_it() {
    let base = "url = \"https://a.org\"\nsubmit = \"/d\"\n";
    let headers = "headers = { idempotency = \"K\", fence = \"F\", expected = \"E\" }";
    for (keys, code, message) in [
        ("enforce = \"fence\"".to_owned(), Code::MissingKey, "enforce = \"fence\" needs headers.fence"),
        ("enforce = \"revision\"".to_owned(), Code::MissingKey, "enforce = \"revision\" needs headers.expected"),
        (format!("enforce = \"fence\"\n{headers}"), Code::MissingKey, "needs \"fence\", where it is raised"),
        (format!("enforce = \"fence\"\nfence = \"/f\"\n{headers}"), Code::MissingKey, "needs \"resource\""),
        ("status = \"/ops/{operation}\"".to_owned(), Code::MissingKey, "the API must be told the operation"),
        (format!("status = \"/ops\"\n{headers}"), Code::InvalidValue, "needs the gap \"{operation}\""),
        ("states = { applied = [] }".to_owned(), Code::InvalidValue, "\"states.applied\" needs a word"),
        (
            "states = { applied = [\"done\"], partial = [\"done\"] }".to_owned(),
            Code::InvalidValue,
            "the word \"done\" stands twice",
        ),
    ] {
        let errors = refused(&with(&format!("{base}{keys}")));
        let error = only(&errors);
        assert_eq!((error.code, error.key.as_deref()), (code, Some("resource[0].with")), "{error}");
        assert!(error.message.contains(message), "{error} lacks {message:?}");
    }
    // The path can tell the operation too.
    target(&with(
        "url = \"https://a.org\"\nsubmit = \"/d/{operation}\"\nmethod = \"PUT\"\nstatus = \"/d/{operation}\"",
    ));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (keys, code, place, key) in [
        ("url = \"ftp://a\"\nsubmit = \"/d\"", Code::InvalidValue, "9:7", "resource[0].with.url"),
        ("url = \"https://me@a\"\nsubmit = \"/d\"", Code::InvalidValue, "9:7", "resource[0].with.url"),
        ("url = \"https://a?x=1\"\nsubmit = \"/d\"", Code::InvalidValue, "9:7", "resource[0].with.url"),
        ("url = \"https://a\"", Code::MissingKey, "8:11", "resource[0].with"),
        ("url = \"https://a\"\nsubmit = \"d\"", Code::InvalidValue, "10:10", "resource[0].with.submit"),
        ("url = \"https://a\"\nsubmit = \"/d/../x\"", Code::InvalidValue, "10:10", "resource[0].with.submit"),
        ("url = \"https://a\"\nsubmit = \"/{name}\"", Code::InvalidValue, "10:10", "resource[0].with.submit"),
        (
            "url = \"https://a\"\nsubmit = \"/d\"\nmethod = \"GET\"",
            Code::InvalidValue,
            "11:10",
            "resource[0].with.method",
        ),
        (
            "url = \"https://a\"\nsubmit = \"/d\"\ntransient = [200]",
            Code::InvalidValue,
            "11:14",
            "resource[0].with.transient[0]",
        ),
        ("url = \"https://a\"\nsubmit = \"/d\"\npoll = \"1ms\"", Code::InvalidValue, "11:8", "resource[0].with.poll"),
        (
            "url = \"https://a\"\nsubmit = \"/d\"\nheaders = { fence = \"Cookie\" }",
            Code::InvalidValue,
            "11:21",
            "resource[0].with.headers.fence",
        ),
        (
            "url = \"https://a\"\nsubmit = \"/d\"\nheaders = { fence = \"X-HTTP-Method-Override\" }",
            Code::InvalidValue,
            "11:21",
            "resource[0].with.headers.fence",
        ),
        (
            "url = \"https://a\"\nsubmit = \"/d\"\npointers = { owner = \"owner\" }",
            Code::InvalidValue,
            "11:22",
            "resource[0].with.pointers.owner",
        ),
        ("url = \"https://a\"\nsubmit = \"/d\"\nsatus = \"/\"", Code::UnknownKey, "11:1", "resource[0].with.satus"),
    ] {
        let errors = refused(&with(keys));
        let error = only(&errors);
        let found = (error.code, error.position.to_string(), error.key.as_deref().unwrap_or(""));
        assert_eq!(found, (code, place.to_owned(), key), "{error}");
    }
}

#[test]
fn a_step_says_its_body_and_its_revision() {
    let service = target(EXAMPLE);
    let step = |with: &str| {
        format!(
            "schema = \"holdfast/v1\"\ntarget = \"app@prod\"\n[inputs]\nname = {{ type = \"string\" }}\n[[step]]\n\
             name = \"one\"\nwith = {{ {with} }}"
        )
    };
    let text = step(
        "revision = \"v1\", body = \"a\\nb ${inputs.name}\", content_type = \"text/plain\", headers = { X-Who = \"${inputs.name}\" }",
    );
    let spec = file(&text).resolve(&given(&[("name", "me")]), None, &service).expect("valid");
    let StepBody::System(Change::Submit(submit)) = &spec.steps[0].body else { panic!("{:?}", spec.steps[0].body) };
    assert_eq!((submit.body.as_str(), submit.content_type.as_str()), ("a\nb me", "text/plain"));
    assert_eq!(submit.headers, given(&[("X-Who", "me")]));
    let errors = file(&text).resolve(&given(&[("name", "ä")]), None, &service).expect_err("no header has that");
    is(only(&errors), Code::InvalidValue, "7:106", "step[0].with.headers.X-Who", "no header's value");
    is(only(&refusal(&step("body = \"x\""))), Code::MissingKey, "7:1", "step[0].with", "needs \"revision\"");
    let odd = step("revision = \"v1\", body = \"x\", headers = { Authorization = \"x\" }");
    is(only(&refusal(&odd)), Code::InvalidValue, "7:51", "step[0].with.headers.Authorization", "no header that can be");
    let odd = step("revision = \"v1\", body = \"x\", headers = { X-Original-URL = \"/admin\" }");
    is(only(&refusal(&odd)), Code::InvalidValue, "7:51", "step[0].with.headers.X-Original-URL", "to another place");
    let errors = file(&step("archive = \"/a\", sha256 = \"${inputs.name}\", revision = \"v1\""))
        .resolve(&given(&[("name", SHA)]), None, &service)
        .expect_err("a release is nothing for an API");
    assert!(only(&errors).message.contains("has the adapter \"http\""), "{errors}");
}
