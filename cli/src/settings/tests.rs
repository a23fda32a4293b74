use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;

const CONTEXTS: &str = r#"
current = "prod"
[context.prod]
address = "prod:1"
ca = "prod.pem"
token = "prod-token"
[context.stage]
address = "stage:1"
ca = "/etc/stage.pem"
server_name = "stage.example"
token_file = "stage.token"
[context.bare]
address = "bare:1"
ca = "bare.pem"
"#;

/// A home with a configuration file of its own, gone with the value.
struct Home(PathBuf);

impl Home {
    fn new(config: &str) -> Self {
        let home = std::env::temp_dir().join(format!("holdfast-settings-{}", uuid::Uuid::new_v4()));
        fs::create_dir_all(home.join("holdfast")).expect("a folder");
        let home = Self(home);
        home.write("config.toml", config);
        home.write("stage.token", "stage-token\n");
        home
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("our file");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join("holdfast").join(name)
    }

    fn find(&self, options: &Connection, variables: &[(&str, &str)]) -> Result<Settings, Box<Problem>> {
        let home = ("XDG_CONFIG_HOME".to_owned(), self.0.clone().into_os_string());
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
        Settings::find(options, &variables.chain([home]).collect()).map_err(problem)
    }
}

fn problem(failure: Failure) -> Box<Problem> {
    Box::new(failure.problem().expect("a refusal").clone())
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_context_that_is_written_is_found_again_and_the_rest_of_the_file_stays() {
    let home = Home::new(&format!("# mine\n{CONTEXTS}"));
    let contexts = || {
        let variables = [("XDG_CONFIG_HOME".to_owned(), home.0.clone().into_os_string())];
        Contexts::of(&variables.into_iter().collect()).expect("sound")
    };
    let token = Token::new("hf_new".to_owned());
    let new = New { name: "10.0.0.7", address: "10.0.0.7:1", ca: "PEM\n", server_name: Some("deploy"), token: &token };
    contexts().save(&new).expect("written");
    let found = home.find(&options(), &[]).expect("it is current");
    assert_eq!((found.address.as_str(), found.token.reveal()), ("10.0.0.7:1", "hf_new"));
    assert_eq!((found.ca, found.server_name.as_deref()), (home.path("10.0.0.7.ca.pem"), Some("deploy")));
    assert_eq!(found.warnings, Vec::<String>::new(), "nobody else can read it");
    assert_eq!(home.find(&context("prod"), &[]).expect("as before").token.reveal(), "prod-token");
    let text = fs::read_to_string(home.path("config.toml")).expect("there");
    assert!(text.starts_with("# mine\n") && !text.contains("hf_new"), "{text}");
    for name in ["config.toml", "10.0.0.7.ca.pem", "10.0.0.7.token"] {
        let mode = fs::metadata(home.path(name)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }

    assert!(contexts().choose("stage").expect("there").current);
    assert_eq!(home.find(&options(), &[]).expect("complete").address, "stage:1");
    let names: Vec<String> = contexts().all().into_iter().map(|about| about.name).collect();
    assert_eq!(names, ["10.0.0.7", "bare", "prod", "stage"]);
    contexts().remove("10.0.0.7").expect("there");
    assert!(!home.path("10.0.0.7.token").exists() && !home.path("10.0.0.7.ca.pem").exists());
    assert!(contexts().remove("stage").expect("there").current);
    assert_eq!(home.find(&options(), &[]).expect_err("none is current").code, Code::Config);
    assert!(contexts().remove("10.0.0.7").is_err() && contexts().choose("nope").is_err());
}

#[test]
fn a_context_is_called_by_a_name_that_a_file_can_have() {
    let home = Home::new("");
    let variables = [("XDG_CONFIG_HOME".to_owned(), home.0.clone().into_os_string())];
    let contexts = Contexts::of(&variables.into_iter().collect()).expect("sound");
    let token = Token::new("t".to_owned());
    for name in ["", "../x", "a/b", ".hidden", "a b", &"x".repeat(65)] {
        let new = New { name, address: "a:1", ca: "", server_name: None, token: &token };
        assert_eq!(problem(contexts.save(&new).expect_err(name)).code, Code::InvalidValue, "{name:?}");
    }
}

fn options() -> Connection {
    Connection::default()
}

fn context(name: &str) -> Connection {
    Connection { context: Some(name.to_owned()), ..options() }
}

#[test]
fn the_current_context_is_taken_and_its_paths_are_relative_to_the_file() {
    let home = Home::new(CONTEXTS);
    let found = home.find(&options(), &[]).expect("complete");
    assert_eq!((found.address.as_str(), found.token.reveal()), ("prod:1", "prod-token"));
    assert_eq!(found.ca, home.path("prod.pem"));
    assert_eq!(found.warnings, Vec::<String>::new());
    let found = home.find(&options(), &[("HOLDFAST_CONTEXT", "stage")]).expect("complete");
    assert_eq!((found.address.as_str(), found.token.reveal()), ("stage:1", "stage-token"));
    assert_eq!(found.ca, Path::new("/etc/stage.pem"));
    assert_eq!(found.server_name.as_deref(), Some("stage.example"));
}

#[test]
fn a_context_by_option_is_not_changed_by_the_environment() {
    let home = Home::new(CONTEXTS);
    let variables = [("HOLDFAST_ADDRESS", "other:1"), ("HOLDFAST_TOKEN", "other"), ("HOLDFAST_CA", "/other.pem")];
    let found = home.find(&context("stage"), &variables).expect("complete");
    assert_eq!((found.address.as_str(), found.token.reveal()), ("stage:1", "stage-token"));
}

#[test]
fn a_contexts_token_never_goes_to_another_address() {
    let home = Home::new(CONTEXTS);
    let elsewhere = Connection { address: Some("other:1".to_owned()), ca: Some("/x.pem".into()), ..options() };
    for (options, variables) in [
        (elsewhere.clone(), &[][..]),
        (Connection { context: Some("prod".to_owned()), ..elsewhere }, &[]),
        (options(), &[("HOLDFAST_ADDRESS", "other:1"), ("HOLDFAST_CA", "/x.pem")]),
    ] {
        let problem = home.find(&options, variables).expect_err("no token for that address");
        assert_eq!(problem.code, Code::NotSignedIn);
    }
    let same = Connection { address: Some("prod:1".to_owned()), ..options() };
    assert_eq!(home.find(&same, &[]).expect("its own address").token.reveal(), "prod-token");
}

#[test]
fn variables_alone_are_enough_and_a_broken_file_is_not_even_read() {
    let home = Home::new("this is no TOML");
    let variables = [("HOLDFAST_ADDRESS", "a:1"), ("HOLDFAST_CA", "/ca.pem"), ("HOLDFAST_TOKEN", "t")];
    assert_eq!(home.find(&options(), &variables).expect("complete").address, "a:1");
    assert_eq!(home.find(&options(), &[]).expect_err("broken").code, Code::Config);
}

#[test]
fn two_variables_that_choose_are_a_question() {
    let home = Home::new(CONTEXTS);
    let variables = [("HOLDFAST_ADDRESS", "a:1"), ("HOLDFAST_CONTEXT", "stage")];
    let problem = home.find(&options(), &variables).expect_err("not clear");
    assert!(problem.title.contains("not clear"), "{problem}");
}

#[test]
fn what_is_missing_is_named_with_what_to_do() {
    let home = Home::new(CONTEXTS);
    assert!(home.find(&context("nope"), &[]).expect_err("unknown").to_string().contains("bare, prod, stage"));
    assert_eq!(home.find(&context("bare"), &[]).expect_err("no token").code, Code::NotSignedIn);
    let nothing = Settings::find(&options(), &Environment::default()).map_err(problem).expect_err("nothing is set");
    assert_eq!(nothing.code, Code::Config);
    assert!(nothing.to_string().contains("HOLDFAST_ADDRESS"), "{nothing}");
}

#[test]
fn a_fault_in_the_file_has_its_place_and_never_shows_the_line() {
    let home = Home::new("[context.prod]\naddress = \"a\"\nca = \"b\"\ntoken = secret-token\n");
    let problem = home.find(&options(), &[]).expect_err("a bare word").to_string();
    assert!(problem.contains("config.toml:4:"), "{problem}");
    assert!(!problem.contains("secret-token"), "{problem}");
    home.write("config.toml", "[context.prod]\nadress = \"a\"\n");
    let problem = home.find(&options(), &[]).expect_err("an unknown key").to_string();
    assert!(problem.contains("adress") && problem.contains("config.toml:2:1"), "{problem}");
}

#[test]
fn a_token_that_others_can_read_is_used_with_a_warning_and_never_printed() {
    let home = Home::new(CONTEXTS);
    fs::set_permissions(home.path("stage.token"), fs::Permissions::from_mode(0o644)).expect("our file");
    let found = home.find(&context("stage"), &[]).expect("complete");
    assert!(found.warnings[0].contains("chmod 600"), "{:?}", found.warnings);
    assert!(!format!("{found:?}").contains("stage-token"));
}

#[test]
fn who_said_the_address_and_the_token_is_known() {
    let home = Home::new(CONTEXTS);
    let found = home.find(&options(), &[("HOLDFAST_TOKEN", "other")]).expect("complete");
    assert_eq!(
        (found.address_from, found.token_from),
        (Source::Context("prod".to_owned()), Source::Variable("HOLDFAST_TOKEN"))
    );
    let found = home.find(&context("stage"), &[("HOLDFAST_TOKEN", "other")]).expect("complete");
    assert_eq!(found.token_from, Source::Context("stage".to_owned()));
    let variables = [("HOLDFAST_ADDRESS", "a:1"), ("HOLDFAST_CA", "/ca.pem"), ("HOLDFAST_TOKEN", "t")];
    assert_eq!(home.find(&options(), &variables).expect("complete").address_from, Source::Variable("HOLDFAST_ADDRESS"));
}

#[test]
fn of_a_context_by_variable_other_variables_replace_their_part() {
    let home = Home::new(CONTEXTS);
    let variables = [("HOLDFAST_CONTEXT", "stage"), ("HOLDFAST_TOKEN", "other"), ("HOLDFAST_CA", "/other.pem")];
    let found = home.find(&options(), &variables).expect("complete");
    assert_eq!((found.address.as_str(), found.token.reveal()), ("stage:1", "other"));
    assert_eq!(found.ca, Path::new("/other.pem"));
}

#[test]
fn a_refused_token_is_told_with_where_it_came_from_and_not_sent_to_a_login_that_changes_nothing() {
    let refused = || Problem::new(Code::NotSignedIn, "not signed in").next("holdfast login ADDRESS, with a token");
    let told = Source::Variable("HOLDFAST_TOKEN").of_refused_token(refused());
    assert_eq!(told.known, ["the token came from HOLDFAST_TOKEN"]);
    assert!(told.next.len() == 1 && told.next[0].contains("HOLDFAST_TOKEN"), "{told}");
    let told = Source::Context("prod".to_owned()).of_refused_token(refused());
    assert_eq!(told.next, ["holdfast login --context prod, with a token of this coordinator"]);
    let told = Source::Typed.of_refused_token(refused());
    assert!(!told.to_string().contains("login"), "{told}");
    let other = Problem::new(Code::TargetNotFound, "no such target");
    assert_eq!(Source::Typed.of_refused_token(other.clone()), other);
}
