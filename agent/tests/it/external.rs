//! Programs that don't keep to the contract: nothing they say passes for a fact.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use holdfast_agent::adapters::system::{Call, Operation, Order};
use holdfast_common::adapter::{Enforce, Inspect};
use holdfast_common::id::{ResourceName, Revision, TargetName};
use holdfast_common::outcome::{OperationState, Reading};
use holdfast_common::system::{Change, External, ExternalChange, System};

use crate::conformance::{Ended, Run, system};
use crate::support::{AGENT, Folder, fence, operation};

const MACHINERY: Option<i32> = Some(71);
const NOT_BEGUN: Option<i32> = Some(69);
const APPLIED: &str = r#"{"protocol": "holdfast.adapter/1", "outcome": "applied"}"#;

/// A program that is a shell script.
struct Program {
    folder: Folder,
    inspect: Inspect,
    enforce: Enforce,
}

impl Program {
    fn of(script: &str) -> Self {
        let program = Self { folder: Folder::new(), inspect: Inspect::Operation, enforce: Enforce::Fence };
        std::fs::write(program.path(), format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(program.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    /// It prints that.
    fn saying(text: &str) -> Self {
        Self::of(&format!("cat <<'END'\n{text}\nEND"))
    }

    fn path(&self) -> PathBuf {
        self.folder.0.join("program")
    }

    fn order(&self, call: Call) -> Order {
        let (inspect, enforce) = (self.inspect, self.enforce);
        let settings = [("where", "here")].map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        Order {
            target: TargetName::new("shop@prod").unwrap(),
            resource: ResourceName::new("flags").unwrap(),
            system: System::External(External { program: "p".to_owned(), inspect, enforce, outlives: false, settings }),
            operation: Operation {
                id: operation(1),
                revision: Revision::new("v2").ok(),
                expected_revision: Revision::new("v1").ok(),
                change: Some(Change::External(ExternalChange { archive: None, settings: [].into() })),
            },
            call,
            program: Some(self.path()),
            is_placed: false,
            cache: self.folder.0.join("cache"),
        }
    }

    fn run(&self, call: Call, credentials: &[(&str, &str)]) -> Ended {
        Run::whole(system(&self.order(call), credentials))
    }

    fn apply(&self) -> Ended {
        self.run(Call::Apply { fence: fence(7), archive: None, work: self.folder.0.clone() }, &[])
    }

    fn examine(&self) -> Ended {
        self.run(Call::Examine { archive: None, work: self.folder.0.clone() }, &[])
    }

    fn inspect(&self) -> Ended {
        self.run(Call::Inspect, &[])
    }
}

fn described(inspect: &str, enforce: &str, outlives: bool) -> String {
    let capability = format!(r#"{{"inspect": "{inspect}", "enforce": "{enforce}", "outlives": {outlives}}}"#);
    format!(r#"{{"protocol": "holdfast.adapter/1", "outcome": "described", "capability": {capability}}}"#)
}

fn read(state: &str, revision: &str) -> String {
    let reading = format!(
        r#"{{"resource_identity": "one", "state": "{state}", "revision": "{revision}", "highest_fence": "1099511627783"}}"#
    );
    format!(r#"{{"protocol": "holdfast.adapter/1", "outcome": "read", "reading": {reading}}}"#)
}

#[test]
fn what_a_program_says_is_told_as_it_is_meant() {
    let said = |rest: &str| format!(r#"{{"protocol": "holdfast.adapter/1", "outcome": {rest}}}"#);
    for (rest, exit) in [
        (r#""applied""#, 0),
        (r#""applied_before""#, 0),
        (r#""refused", "reason": "fence""#, 73),
        (r#""refused", "reason": "revision""#, 74),
        (r#""refused", "reason": "content", "detail": "no such flag""#, 65),
        (r#""refused", "reason": "resource""#, 78),
        (r#""transient", "detail": "later""#, 75),
        (r#""failed", "detail": "cut""#, 71),
    ] {
        let ended = Program::saying(&said(rest)).apply();
        assert_eq!(ended.status, Some(exit), "{rest}: {ended:?}");
    }
    assert!(Program::saying(&said(r#""applied_before""#)).apply().says_before());
}

#[test]
fn no_end_but_a_whole_answer_says_anything_of_the_effect() {
    for script in [
        "true",
        "exit 3",
        "exit 73",
        "kill -KILL $$",
        "echo applied",
        "head -c 300000 /dev/zero",
        &format!("echo '{APPLIED}'; exit 1"),
        &format!("echo '{APPLIED}'; echo '{APPLIED}'"),
        &format!("echo '{APPLIED}'; head -c 300000 /dev/zero | tr '\\0' ' '"),
        r#"printf '{"protocol": "holdfast.adapter/1", "outcome": "app'"#,
        r#"echo '{"protocol": "holdfast.adapter/2", "outcome": "applied"}'"#,
        r#"echo '{"protocol": "holdfast.adapter/1", "outcome": "raised"}'"#,
        r#"echo '{"protocol": "holdfast.adapter/1", "outcome": "fit"}'"#,
        r#"echo '{"protocol": "holdfast.adapter/1", "outcome": "applied", "so": 1}'"#,
        r#"echo '{"protocol": "holdfast.adapter/1", "outcome": "refused", "reason": "mood"}'"#,
    ] {
        let program = Program::of(script);
        for ended in [program.apply(), program.inspect(), program.run(Call::Raise { fence: fence(7) }, &[])] {
            assert_eq!(ended.status, MACHINERY, "{script}: {ended:?}");
            assert_eq!(ended.stdout, "", "{script}: a reading");
        }
    }
}

#[test]
fn a_program_that_is_not_there_says_nothing() {
    let program = Program::of("true");
    std::fs::remove_file(program.path()).unwrap();
    for ended in [program.apply(), program.inspect(), program.examine()] {
        assert_eq!(ended.status, NOT_BEGUN, "{ended:?}");
    }
}

#[test]
fn a_look_is_never_refused() {
    let refused = r#"{"protocol": "holdfast.adapter/1", "outcome": "refused", "reason": "resource"}"#;
    assert_eq!(Program::saying(refused).inspect().status, MACHINERY);
}

#[test]
fn a_program_that_proves_less_than_is_declared_is_refused_before_the_permit() {
    let answers = |capability: &str| {
        format!(
            "case $(cat) in\n*'\"describe\"'*) echo '{capability}' ;;\n*) echo '{{\"protocol\": \"holdfast.adapter/1\", \"outcome\": \"fit\"}}' ;;\nesac"
        )
    };
    for (inspect, enforce, outlives, exit) in [
        ("operation", "fence", false, 0),
        ("revision", "fence", false, 78),
        ("none", "fence", false, 78),
        ("operation", "revision", false, 78),
        ("operation", "none", false, 78),
        ("operation", "fence", true, 78),
    ] {
        let ended = Program::of(&answers(&described(inspect, enforce, outlives))).examine();
        assert_eq!(ended.status, Some(exit), "{inspect} {enforce} {outlives}: {ended:?}");
    }
}

#[test]
fn a_reading_says_no_more_than_the_target_declares() {
    let reading = |inspect: Inspect, enforce: Enforce, state: &str, revision: &str| -> Reading {
        let program = Program { inspect, enforce, ..Program::saying(&read(state, revision)) };
        serde_json::from_str(&program.inspect().stdout).unwrap()
    };
    let whole = reading(Inspect::Operation, Enforce::Fence, "applied", "v2");
    assert_eq!((whole.state, whole.highest_fence), (OperationState::Applied, Some(fence(7))));
    let unfenced = reading(Inspect::Operation, Enforce::Revision, "applied", "v2");
    assert_eq!((unfenced.state, unfenced.highest_fence), (OperationState::Applied, None));
    for (said, revision, state) in [
        ("not_applied", "v2", OperationState::Applied),
        ("applied", "v1", OperationState::NotApplied),
        ("applied", "v7", OperationState::Unknown),
    ] {
        assert_eq!(reading(Inspect::Revision, Enforce::None, said, revision).state, state, "{said} {revision}");
    }
    let blind = reading(Inspect::None, Enforce::None, "applied", "v2");
    assert_eq!((blind.state, blind.revision), (OperationState::Unknown, None));
}

#[test]
fn a_raise_of_what_keeps_no_fence_is_refused_without_asking() {
    let program = Program::of("touch \"$(dirname \"$0\")/asked\"");
    let program = Program { enforce: Enforce::Revision, ..program };
    assert_eq!(program.run(Call::Raise { fence: fence(7) }, &[]).status, Some(78));
    assert!(!program.folder.0.join("asked").exists());
}

#[test]
fn the_program_gets_its_request_and_one_credential_set_and_what_it_says_beside_is_the_steps_output() {
    let script = "cd \"$(dirname \"$0\")\" || exit 1\ncat > request\nenv > environment\necho 'on my way' >&2\necho '{\"protocol\": \"holdfast.adapter/1\", \"outcome\": \"applied\"}'";
    let program = Program::of(script);
    let call = Call::Apply { fence: fence(7), archive: None, work: program.folder.0.clone() };
    let ended = program.run(call, &[("FLAGS_TOKEN", "sesame"), ("HOLDFAST_CREDENTIALS", "/run/set")]);
    assert!(ended.is_good(), "{ended:?}");
    assert_eq!(ended.stderr, "on my way\napplied\n");
    let text = std::fs::read_to_string(program.folder.0.join("request")).unwrap();
    let request: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&request["call"], &request["fence"]), (&"apply".into(), &"1099511627783".into()));
    assert_eq!(request["settings"]["where"], "here");
    let environment = std::fs::read_to_string(program.folder.0.join("environment")).unwrap();
    let names: Vec<&str> = environment.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    let known = ["PATH", "FLAGS_TOKEN", "HOLDFAST_CREDENTIALS", "PWD", "OLDPWD", "SHLVL", "_"];
    assert!(names.iter().all(|name| known.contains(name)), "{names:?}");
    assert!(environment.contains("FLAGS_TOKEN=sesame"));
}

#[test]
fn a_program_that_others_can_write_or_that_is_none_is_named_by_check_config() {
    let program = Program::of("true");
    let path = program.path();
    let check = |path: &str| {
        let config = program.folder.0.join("agent.toml");
        let text = format!(
            "state_dir = {:?}\n[external]\nflags = {path:?}\n[coordinator]\naddress = \"127.0.0.1:1\"\n[identity]\ndir = \"/nowhere\"\n",
            program.folder.0
        );
        std::fs::write(&config, text).unwrap();
        let output = Command::new(AGENT).args(["check-config", "--config"]).arg(config).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let text = path.to_str().unwrap();
    let good = check(text);
    assert!(good.contains(&format!("external   flags is {text}")) && !good.contains("external.flags"), "{good}");
    for (path, why) in [("flags", "no absolute path"), ("/nowhere/flags", "can't be read"), ("/tmp", "is no program")] {
        let said = check(path);
        assert!(said.contains("external.flags") && said.contains(why), "{path}: {said}");
    }
    for (mode, why) in [(0o775, "can be written"), (0o757, "can be written"), (0o644, "is no program")] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let said = check(text);
        assert!(said.contains("external.flags") && said.contains(why), "{mode:o}: {said}");
    }
}

#[test]
fn a_change_is_stopped_with_its_step_and_a_look_has_a_group_of_its_own() {
    let script =
        "read -r own _ _ parent group _ < /proc/$$/stat\necho \"$own $parent $group\" > \"$(dirname \"$0\")/group\"";
    let program = Program::of(script);
    let ids = || -> Vec<u32> {
        let text = std::fs::read_to_string(program.folder.0.join("group")).unwrap();
        text.split_whitespace().map(|number| number.parse().unwrap()).collect()
    };
    program.apply();
    assert_eq!(ids()[2], ids()[1], "in the group that our own process leads");
    program.inspect();
    assert_eq!(ids()[2], ids()[0], "in one that is ended as a whole");
}

#[test]
fn a_configuration_or_an_identity_that_others_can_write_is_refused() {
    let program = Program::of("true");
    let (config, identity) = (program.folder.0.join("agent.toml"), program.folder.0.join("identity"));
    let text = format!(
        "state_dir = {:?}\n[coordinator]\naddress = \"127.0.0.1:1\"\n[identity]\ndir = {identity:?}\n",
        program.folder.0
    );
    std::fs::write(&config, text).unwrap();
    std::fs::create_dir(&identity).unwrap();
    let says = |word: &str| {
        let output = Command::new(AGENT).args([word, "--config"]).arg(&config).output().unwrap();
        assert!(!output.status.success(), "it has not joined");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let permit = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for word in ["check-config", "run"] {
        for (path, sound, what) in [(&config, 0o640, "the configuration"), (&identity, 0o700, "the identity's folder")]
        {
            permit(path, sound);
            assert!(!says(word).contains(what), "{word}");
            for mode in [sound | 0o020, sound | 0o002] {
                permit(path, mode);
                let said = says(word);
                assert!(said.contains(what) && said.contains("chmod go-w"), "{word} {mode:o}: {said}");
            }
            permit(path, sound);
            std::os::unix::fs::chown(path, Some(65534), None).unwrap();
            let said = says(word);
            assert!(said.contains(what) && said.contains("belongs to user 65534"), "{word}: {said}");
            std::os::unix::fs::chown(path, Some(0), None).unwrap();
        }
    }
}
