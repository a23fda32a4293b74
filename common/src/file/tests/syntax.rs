use super::*;
use crate::file::{MAX_DEPTH, MAX_FILE, text};

#[test]
fn broken_toml_is_told_with_its_place() {
    let errors = refusal("schema = \"holdfast/v1\"\ntarget = \n");
    let error = only(&errors);
    assert_eq!((error.code, error.position.line), (Code::FileSyntax, 2), "{error}");
    assert_eq!(errors.code(), Code::FileSyntax);
    let error = refusal("a = 1\na = 2\n");
    assert_eq!((only(&error).code, only(&error).position.line), (Code::FileSyntax, 2), "{error}");
}

#[test]
fn broken_json_is_told_with_its_place() {
    is(only(&refusal("{\n  \"schema\": \"holdfast/v1\",\n  \"ä\": nul\n}")), Code::FileSyntax, "3:11", "", "not JSON");
    is(only(&refusal("{\"a\": 1, \"a\": 2}")), Code::FileSyntax, "1:10", "", "twice");
    is(only(&refusal("{\"a\": \"\\ud800\"}")), Code::FileSyntax, "1:7", "", "not JSON");
    is(only(&refusal("{\"a\": 1} x")), Code::FileSyntax, "1:10", "", "not JSON");
    is(only(&refusal("{\n\"schema\":")), Code::FileSyntax, "2:9", "", "EOF");
}

#[test]
fn json_errors_have_line_column_and_key_too() {
    let json = "{\"schema\": \"holdfast/v1\", \"target\": \"shop@prod\",\n \"step\": [{\"name\": \"ö\", \"run\": [\"true\", 5]}]}";
    let errors = refusal(json);
    let mut errors = errors.iter();
    is(errors.next().expect("name"), Code::InvalidValue, "2:20", "step[0].name", "step name");
    is(
        errors.next().expect("run"),
        Code::InvalidValue,
        "2:41",
        "step[0].run[1]",
        "expected a string, found an integer",
    );
}

#[test]
fn bytes_that_are_not_utf8_are_told_with_their_offset() {
    let errors = text(b"schema = \"holdfast/v1\"\nname = \"\xe4\"\n").expect_err("latin 1");
    is(only(&errors), Code::FileSyntax, "2:9", "", "offset 31");
    let errors = TargetFile::parse_bytes(b"\xff").expect_err("no text");
    is(only(&errors), Code::FileSyntax, "1:1", "", "offset 0");
}

#[test]
fn columns_count_characters() {
    let errors =
        refusal("schema = \"holdfast/v1\"\n\"täuschung\" = { x = 1 }\nstep = [{ name = \"é\", run = [\"true\"] }]");
    let places: Vec<String> = errors.iter().map(|error| error.position.to_string()).collect();
    assert_eq!(places, ["2:1", "3:18"]);
}

#[test]
fn size_nesting_and_count_are_bounded() {
    let long = format!("# {}", "x".repeat(MAX_FILE));
    assert_eq!(only(&refusal(&long)).code, Code::TooLarge);
    assert_eq!(only(&text(long.as_bytes()).expect_err("too large")).code, Code::TooLarge);
    for depth in [MAX_DEPTH + 1, 60, 1_000, 100_000] {
        let lists = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let errors = refusal(&format!("{{\"schema\": {lists}}}"));
        assert_eq!(only(&errors).code, Code::TooLarge, "{depth}: {errors}");
        let code = only(&refusal(&format!("schema = {lists}"))).code;
        assert!(matches!(code, Code::TooLarge | Code::FileSyntax), "{depth}");
    }
    let many = format!("schema = [{}]", "1,".repeat(30_000));
    assert_eq!(only(&refusal(&many)).code, Code::TooLarge);
}

#[test]
fn very_many_errors_are_cut_and_counted() {
    let keys: String = (0..500).map(|n| format!("key{n} = 1\n")).collect();
    let errors = refusal(&format!("schema = \"holdfast/v1\"\n{keys}"));
    assert_eq!((errors.iter().count(), errors.untold()), (20, 481));
    assert!(errors.to_string().ends_with("and 481 more"), "{errors}");
}

#[test]
fn escapes_in_the_file_never_reach_the_terminal_raw() {
    let errors = refusal(
        "schema = \"holdfast/v1\"\n\"\\u001b[31mx\" = 1\nstep = [{ name = \"\\u202e\", run = [\"a\\u0007\"] }]",
    );
    assert!(errors.iter().count() >= 3, "{errors}");
    for error in &errors {
        let shown = format!("{error} {}", error.problem("f\u{1b}.toml"));
        assert!(shown.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'), "{shown:?}");
    }
}

#[test]
fn an_error_becomes_the_problem_that_is_shown() {
    let errors = refusal(&step("retyr = \"unsafe\""));
    let shown = only(&errors).problem("shop.deploy.toml").to_string();
    let expected = "\
error[HF-1002]: unknown key \"retyr\"
  known      shop.deploy.toml:6:1, at step[0].retyr
  so         nothing was recorded and nothing was started
  next       did you mean \"retry\"? then: holdfast check shop.deploy.toml
  more       holdfast explain HF-1002";
    assert_eq!(shown, expected);
}

/// A file of the largest size costs no more than its size: were anything quadratic, this would run for minutes.
#[test]
fn large_hostile_files_are_read_in_one_pass() {
    let head = "schema = \"holdfast/v1\"\n";
    let fill = |unit: &str| unit.repeat((MAX_FILE - 200) / unit.len());
    for text in [
        format!("{head}{}", fill("[[step]]\n")),
        format!("{head}step = [{}]", fill("{},")),
        format!("{head}{} = 1", fill("k")),
        format!("{head}step = [{{ name = \"a\", run = [\"{}\"] }}]", fill("${inputs.x}")),
        format!("{head}name = \"{}\"", fill("\\u001b")),
        format!("{{\"schema\": \"holdfast/v1\", \"step\": [{}1]}}", fill("[],")),
        format!("{{\"schema\": \"{}\"}}", fill("\\\"")),
        fill("[a.b]\n"),
    ] {
        let errors = refusal(&text);
        assert!(errors.to_string().len() < 20 * 2000);
    }
}
