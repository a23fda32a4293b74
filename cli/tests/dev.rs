//! `holdfast dev` as a process: the tour, its failure without the cut, cutting from another terminal, and every way to end.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use holdfast_net::bearer::Bearer;
use holdfast_net::channel::{self, Limits};
use holdfast_net::tls::ClientTls;
use holdfast_proto::v1;
use holdfast_proto::v1::operator_service_client::OperatorServiceClient;
use rustix::process::{Pid, Signal, kill_process};

/// The bound of everything that is waited for, on a machine that is busy with other tests.
const BOUND: Duration = Duration::from_secs(150);

/// A test's own folder: temporary files, runtime folder and home of what it starts.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("holdfast-dev-it-{:016x}", rand::random::<u64>()));
        fs::create_dir(&path).expect("a new folder");
        Self(path)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"HOLDFAST_") {
                command.env_remove(name);
            }
        }
        command.args(arguments).env("TMPDIR", &self.0).env("HOME", &self.0).env_remove("XDG_RUNTIME_DIR");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program can be started")
    }

    /// Started and up.
    fn start(&self, arguments: &[&str]) -> Dev {
        let out = self.0.join(format!("out-{:08x}", rand::random::<u32>()));
        let file = fs::File::create(&out).expect("a new file");
        let child = self.command(arguments).stdout(file).spawn().expect("the program can be started");
        let mut dev = Dev { child, out };
        let ended = dev.until("it to be up", |dev| dev.told().contains("It stays up").then_some(()));
        ended.unwrap_or_else(|status| panic!("ended with {status}: {}\n{}", dev.told(), dev.complaint()));
        dev
    }

    fn temporary_folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).expect("ours").map(|entry| entry.expect("ours").path());
        entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("holdfast-dev-")).collect()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running dev. It and all below it is gone with the test.
struct Dev {
    child: Child,
    out: PathBuf,
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Dev {
    fn told(&self) -> String {
        fs::read_to_string(&self.out).unwrap_or_default()
    }

    fn complaint(&mut self) -> String {
        let mut text = String::new();
        if let Some(stderr) = self.child.stderr.as_mut() {
            let _ = stderr.read_to_string(&mut text);
        }
        text
    }

    /// Looks until there is something; the status where the process ended before.
    fn until<T>(&mut self, what: &str, look: impl Fn(&Self) -> Option<T>) -> Result<T, ExitStatus> {
        let begun = Instant::now();
        loop {
            if let Some(found) = look(self) {
                return Ok(found);
            }
            if let Some(status) = self.child.try_wait().expect("our child") {
                return Err(status);
            }
            assert!(begun.elapsed() < BOUND, "waited for {what}; told so far:\n{}", self.told());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process id")
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid()).expect("a process id"), signal).expect("it runs");
    }

    fn end(mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("our child") {
                return status;
            }
            assert!(begun.elapsed() < BOUND, "it did not end; told so far:\n{}", self.told());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn folder(&self) -> PathBuf {
        let told = self.told();
        let line = told.lines().find_map(|line| line.trim().strip_prefix("folder")).expect("the folder is told");
        PathBuf::from(line.trim().rsplit_once(" (").expect("and whether it stays").0)
    }
}

/// Processes whose command line names a text, by id.
fn processes_with(text: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("Linux").flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(|id| *id != i32::try_from(std::process::id()).unwrap())
        .filter(|id| {
            let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ").contains(text)
        })
        .collect()
}

fn until_no_process_names(text: &str) {
    let begun = Instant::now();
    while !processes_with(text).is_empty() {
        assert!(begun.elapsed() < BOUND, "still there: {:?}", processes_with(text));
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_tour_is_true_and_leaves_nothing_behind() {
    let home = Home::new();
    let output = home.run(&["dev", "--tour", "--exit", "--ascii"]);
    let (told, complaint) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{told}\n{complaint}");
    for part in [
        "1. The first release",
        "shop@dev#1 has succeeded",
        "from here on nothing that web-0",
        "shop@dev#2 is uncertain",
        "shop@dev is held for shop@dev#2",
        "shop@dev#3 is queued",
        "is in contact and idle",
        "refused with HF-3002",
        "raised the fence at the resource",
        "switch is applied, and v2 is there",
        "switch was carried over, not run again",
        "superseded fence",
        "each is kept as evidence with the reason, and is no authority",
        "shop@dev#3 has succeeded",
        "going back over shop@dev#3 is compatible",
        "shop@dev#4 has succeeded",
        "shop@dev#4 goes back over shop@dev#3",
        "no record of shop@dev#3 was edited",
        "statements were checked and all are true",
    ] {
        assert!(told.contains(part), "{part:?} is missing:\n{told}");
    }
    assert!(told.is_ascii(), "{told}");
    assert_eq!(home.temporary_folders(), Vec::<PathBuf>::new());
    until_no_process_names(&home.0.display().to_string());
}

#[test]
fn without_the_cut_the_tour_fails_and_says_what_it_expected() {
    let home = Home::new();
    let data = home.0.join("data");
    let arguments = ["dev", "--tour", "--exit", "--without-cut", "--data", data.to_str().unwrap()];
    let output = home.run(&arguments);
    let (told, complaint) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{told}\n{complaint}");
    assert!(complaint.contains("expected  shop@dev#2 is uncertain"), "{complaint}");
    assert!(complaint.contains("seen      shop@dev#2 succeeded"), "{complaint}");
    assert!(!told.contains("all are true"), "{told}");
    assert!(data.join("log/coordinator.log").exists(), "what failed is kept");
    until_no_process_names(&home.0.display().to_string());
}

#[test]
fn lines_are_cut_and_healed_from_another_terminal() {
    let home = Home::new();
    let dev = home.start(&["dev"]);
    let folder = dev.folder();
    let cut = home.run(&["dev", "cut", "web-01"]);
    assert!(cut.status.success(), "{}", text(&cut.stderr));
    assert!(text(&cut.stdout).contains("the line of web-01 is cut"));
    agents_are(&folder, v1::Contact::Silent, v1::Contact::Connected);
    assert!(home.run(&["dev", "heal", "web-01"]).status.success());
    agents_are(&folder, v1::Contact::Connected, v1::Contact::Connected);
    let unknown = home.run(&["dev", "cut", "web-07"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("there are web-01, web-02"), "{}", text(&unknown.stderr));

    assert_eq!(dev.end(Signal::INT).code(), Some(0));
    assert!(!folder.exists(), "the temporary folder is removed");
    until_no_process_names(&home.0.display().to_string());
    let nobody = home.run(&["dev", "cut", "web-01"]);
    assert!(text(&nobody.stderr).contains("no holdfast dev is running"), "{}", text(&nobody.stderr));
}

#[test]
fn agents_are_paused_resumed_killed_and_started_from_another_terminal() {
    let home = Home::new();
    let data = home.0.join("data");
    let data = data.to_str().unwrap();
    let mut dev = home.start(&["dev", "--data", data]);
    let folder = PathBuf::from(data);
    let told = |arguments: &[&str]| {
        let output = home.run(&[&["dev", "--data", data], arguments].concat());
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, err) = told(&["pause", "web-01"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("stands still") && out.contains("holdfast dev resume web-01"), "{out}");
    agents_are(&folder, v1::Contact::Silent, v1::Contact::Connected);
    assert_eq!(told(&["resume", "web-01"]).0, Some(0));
    agents_are(&folder, v1::Contact::Connected, v1::Contact::Connected);

    let (code, out, _) = told(&["kill", "web-02"]);
    assert!(code == Some(0) && out.contains("holdfast dev start web-02"), "{out}");
    agents_are(&folder, v1::Contact::Connected, v1::Contact::Silent);
    let (code, _, err) = told(&["pause", "web-02"]);
    assert!(code == Some(1) && err.contains("does not run"), "{err}");
    assert_eq!(told(&["start", "web-02"]).0, Some(0));
    agents_are(&folder, v1::Contact::Connected, v1::Contact::Connected);
    let (code, _, err) = told(&["start", "web-02"]);
    assert!(code == Some(1) && err.contains("runs already"), "{err}");
    let (code, _, err) = told(&["kill", "web-07"]);
    assert!(code == Some(1) && err.contains("there are web-01, web-02"), "{err}");
    dev.until("what was done to be told", |dev| dev.told().contains("web-02 is started again").then_some(()))
        .expect("it stays up");
    assert!(!dev.told().contains("by itself"), "what was wanted needs no obituary: {}", dev.told());

    assert_eq!(told(&["pause", "web-01"]).0, Some(0));
    assert_eq!(dev.end(Signal::INT).code(), Some(0), "a paused agent ends too");
    until_no_process_names(&home.0.display().to_string());
}

/// The far end of a terminal on which the program runs.
struct Screen {
    master: fs::File,
    child: Child,
}

impl Screen {
    fn start(mut command: Command) -> Self {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("ours");
        unlockpt(&master).expect("ours");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let end =
            || fs::File::options().read(true).write(true).open(name.to_str().expect("text")).expect("the other end");
        let size = rustix::termios::Winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&master, size).expect("a size");
        let child = command.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end()).spawn().expect("started");
        Self { master: master.into(), child }
    }

    /// Reads on until what was shown fits.
    fn until(&mut self, shown: &mut String, what: &str, fits: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        let mut piece = [0; 4096];
        while !fits(shown) {
            assert!(begun.elapsed() < BOUND, "waited for {what}:\n{shown:?}");
            // The program draws several times a second, so this never waits for long; at its end it fails.
            let length = self.master.read(&mut piece).unwrap_or_else(|error| panic!("{what}: {error}\n{shown:?}"));
            shown.push_str(&String::from_utf8_lossy(&piece[..length]));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn on_a_terminal_a_watch_turns_while_the_agent_is_heard_and_freezes_into_its_silence() {
    let home = Home::new();
    let (mut dev, data, marker) = with_slow_step(&home);
    let mut command = home.command(&["watch", "slow@dev#1"]);
    for line in fs::read_to_string(data.join("environment")).expect("written by dev").lines() {
        let (name, value) = line.trim_start_matches("export ").split_once('=').expect("a variable");
        command.env(name, value);
    }
    let mut screen = Screen::start(command);
    let mut shown = String::new();
    let spinner = ['◐', '◓', '◑', '◒'];
    screen.until(&mut shown, "the spinner to turn", |shown| spinner.iter().all(|turn| shown.contains(*turn)));
    assert!(shown.contains("step 1 of 1: ") && shown.contains("slow") && shown.contains("begun"), "{shown:?}");
    let agent = ["web-01", "web-02"].into_iter().find(|name| shown.contains(&format!("on {name} under fence")));
    let pause = home.run(&["dev", "pause", agent.expect("the agent is named"), "--data", data.to_str().unwrap()]);
    assert!(pause.status.success(), "{}", text(&pause.stderr));
    let mut after = String::new();
    screen.until(&mut after, "the silence", |shown| shown.matches("silent 00:").count() >= 3);
    let frozen = &after[after.find("silent 00:").expect("it is there")..];
    assert!(!frozen.contains(spinner), "the spinner claims no life: {frozen:?}");
    assert!(!shown.contains('%') && !after.contains('%'), "how far it has come nobody knows");
    dev.signal(Signal::INT);
    assert_eq!(dev.child.wait().expect("our child").code(), Some(0));
    until_no_process_names(&marker);
}

#[test]
fn signing_in_pins_the_ca_tries_the_token_and_keeps_both_for_their_owner_alone() {
    let home = Home::new();
    let dev = home.start(&["dev"]);
    let folder = dev.folder();
    let secret = fs::read_to_string(folder.join("token")).expect("written by dev");
    let environment = fs::read_to_string(folder.join("environment")).expect("written by dev");
    let address = environment.lines().find_map(|line| line.strip_prefix("export HOLDFAST_ADDRESS=")).expect("there");
    let address = address.trim_start_matches("https://");
    let run = |arguments: &[&str], input: &str| {
        let mut child = home.command(arguments).stdin(Stdio::piped()).spawn().expect("the program can be started");
        std::io::Write::write_all(&mut child.stdin.take().expect("piped"), input.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let config = home.0.join(".config/holdfast/config.toml");

    let (code, _, err) = run(&["login", address, "--context", "dev"], &secret);
    assert_eq!(code, Some(2), "{err}");
    let shown = err.lines().find_map(|line| line.split_once("its SHA-256 is ")).expect("the fingerprint is shown").1;
    let first = if shown.starts_with("00") { "11" } else { "00" };
    let other = format!("{first}:{}", &shown[3..]);
    let (code, _, err) = run(&["login", address, "--context", "dev", "--fingerprint", &other], &secret);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("another fingerprint") && err.contains(shown), "{err}");
    let pinned = ["login", address, "--context", "dev", "--fingerprint", shown];
    let (code, _, err) = run(&pinned, "hf_wrong\n");
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("what was typed") && !err.contains("holdfast login"), "{err}");
    assert!(!config.exists(), "nothing is written before the token was tried");

    let (code, out, err) = run(&pinned, &secret);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("admin:*") && !format!("{out}{err}").contains(secret.trim()), "{out}{err}");
    for entry in fs::read_dir(config.parent().expect("a folder")).expect("there") {
        let path = entry.expect("ours").path();
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).expect("there").permissions());
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
    let (code, out, err) = run(&["token", "create", "--name", "bot", "--role", "viewer:shop@*", "-o", "json"], "");
    assert_eq!(code, Some(0), "{err}");
    let made: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let bot = made["secret"].as_str().expect("the secret").to_owned();
    let ca = folder.join("tls/ca.pem");
    let as_bot = ["login", address, "--context", "bot", "--ca", ca.to_str().expect("text")];
    assert_eq!(run(&as_bot, &bot).0, Some(0));
    let (_, out, _) = run(&["whoami"], "");
    assert!(out.starts_with("bot (viewer:shop@*)"), "{out}");
    assert!(out.contains(&format!("at {address}, said by the context bot; the token by the context bot")), "{out}");
    assert_eq!(run(&["token", "list"], "").0, Some(4), "a viewer manages no tokens");
    let (_, out, _) = run(&["whoami", "--context", "dev"], "");
    assert!(out.starts_with("dev (admin:*)"), "{out}");
    assert_eq!(run(&["context", "use", "dev"], "").0, Some(0));
    assert_eq!(run(&["token", "revoke", "bot"], "").0, Some(0));
    assert_eq!(run(&["whoami", "--context", "bot"], "").0, Some(4));
    assert_eq!(run(&["context", "remove", "bot"], "").0, Some(0));
    assert_eq!(run(&["context", "list", "-o", "name"], "").1, "dev\n");
    assert_eq!(dev.end(Signal::INT).code(), Some(0));
}

#[test]
fn a_wait_says_nothing_and_its_exit_code_tells() {
    let home = Home::new();
    let data = home.0.join("data");
    let dev = home.start(&["dev", "--data", data.to_str().unwrap()]);
    submit(&data, "exit 0", "quick");
    let environment = fs::read_to_string(data.join("environment")).expect("written by dev");
    let variables = environment.lines().filter_map(|line| line.strip_prefix("export ")?.split_once('='));
    let wait = |more: &[&str]| {
        let line = [&["wait", "slow@dev#1", "--for", "terminal"], more].concat();
        let output = home.command(&line).envs(variables.clone()).output().expect("the program can be started");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    assert_eq!(wait(&[]), (Some(0), String::new(), String::new()));
    assert_eq!(wait(&["-o", "name"]), (Some(0), "slow@dev#1\n".to_owned(), String::new()), "asked for");
    assert_eq!(dev.end(Signal::INT).code(), Some(0));
}

#[test]
fn a_child_that_dies_is_told_and_not_started_again() {
    let home = Home::new();
    let data = home.0.join("data");
    let mut dev = home.start(&["dev", "--data", data.to_str().unwrap()]);
    let agent = processes_with(&format!("agent run --config {}", data.join("web-02.toml").display()));
    let [agent] = agent.as_slice() else { panic!("{agent:?}") };
    kill_process(Pid::from_raw(*agent).unwrap(), Signal::KILL).expect("it runs");
    let told = dev.until("the death to be told", |dev| dev.told().contains("web-02 ended by itself").then_some(()));
    told.expect("it stays up");
    agents_are(&data, v1::Contact::Connected, v1::Contact::Silent);
    assert_eq!(dev.end(Signal::TERM).code(), Some(0));
    until_no_process_names(&home.0.display().to_string());
}

#[test]
fn children_never_outlive_a_killed_dev_and_its_folder_can_be_used_again() {
    let home = Home::new();
    let data = home.0.join("data");
    let arguments = ["dev", "--data", data.to_str().unwrap()];
    let dev = home.start(&arguments);
    let second = home.run(&arguments);
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second.stderr).contains("another holdfast dev is using"), "{}", text(&second.stderr));
    dev.end(Signal::KILL);
    until_no_process_names(&home.0.display().to_string());
    let again = home.run(&[&arguments[..], &["--exit"]].concat());
    assert!(again.status.success(), "{}", text(&again.stderr));
}

#[test]
fn a_step_that_outlives_its_agent_is_ended_and_told() {
    let home = Home::new();
    let (mut dev, _, marker) = with_slow_step(&home);
    dev.signal(Signal::INT);
    let complaint = dev.complaint();
    assert_eq!(dev.child.wait().expect("our child").code(), Some(0));
    assert!(complaint.contains("a step was still at work and was ended"), "{complaint}");
    until_no_process_names(&marker);
    until_no_process_names(&home.0.display().to_string());
}

fn with_client<T>(
    folder: &Path,
    act: impl AsyncFnOnce(
        OperatorServiceClient<tonic::service::interceptor::InterceptedService<tonic::transport::Channel, Bearer>>,
    ) -> T,
) -> T {
    let environment = fs::read_to_string(folder.join("environment")).expect("written by dev");
    let value = |name: &str| {
        let start = format!("export {name}=");
        environment.lines().find_map(|line| line.strip_prefix(start.as_str())).expect("exported").to_owned()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let tls = ClientTls::from_files(Path::new(&value("HOLDFAST_CA")), None, None).expect("a CA");
        let channel = channel::connect_lazy(&value("HOLDFAST_ADDRESS"), &tls, &Limits::default()).expect("an address");
        let bearer = Bearer::new(&value("HOLDFAST_TOKEN")).expect("a token");
        act(OperatorServiceClient::with_interceptor(channel, bearer)).await
    })
}

/// Waits until both agents are so.
fn agents_are(folder: &Path, first: v1::Contact, second: v1::Contact) {
    with_client(folder, async |mut client| {
        let begun = Instant::now();
        loop {
            let agents =
                client.list_agents(v1::ListAgentsRequest::default()).await.expect("an answer").into_inner().agents;
            let found: Vec<_> = agents.iter().map(v1::Agent::contact).collect();
            if found == [first, second] {
                return;
            }
            assert!(begun.elapsed() < BOUND, "{agents:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
}

/// A dev with a step at work that takes so long that only dev can end it: its folder, and a name to find the step by.
fn with_slow_step(home: &Home) -> (Dev, PathBuf, String) {
    let data = home.0.join("data");
    let mut dev = home.start(&["dev", "--data", data.to_str().unwrap()]);
    let marker = format!("holdfast-slow-{:016x}", rand::random::<u64>());
    submit_slow(&data, &marker);
    dev.until("the step to run", |_| (!processes_with(&marker).is_empty()).then_some(())).expect("it stays up");
    (dev, data, marker)
}

/// Deploys one step that takes very long, under a name to find it by.
fn submit_slow(folder: &Path, marker: &str) {
    submit(folder, "trap '' TERM; sleep 1000; sleep 1000", marker);
}

/// Deploys one step that runs this script.
fn submit(folder: &Path, script: &str, marker: &str) {
    const TARGET: &str = "schema = \"holdfast/v1\"\nname = \"slow@dev\"\nagents = { role = \"shop\" }\n\
        reconcile.policy = \"manual\"\n[[resource]]\nname = \"slow\"\nadapter = \"command\"\nreach = \"shared\"\n";
    let file = format!(
        "schema = \"holdfast/v1\"\ntarget = \"slow@dev\"\n[[step]]\nname = \"slow\"\n\
         run = [\"sh\", \"-c\", \"{script}\", \"{marker}\"]\n"
    );
    with_client(folder, async |mut client| {
        client.apply_target(v1::ApplyTargetRequest { file: TARGET.to_owned() }).await.expect("declared");
        let request_id = uuid::Uuid::new_v4().to_string();
        client.submit(v1::SubmitRequest { request_id, file, ..Default::default() }).await.expect("submitted");
    });
}
