//! Secrets are nowhere but where they belong: each set of a resource in its own command, and in no output, log, message, journal,
//! list of processes or store.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use holdfast_proto::v1::DeploymentState;
use holdfast_tests::api::{Operator, state_of};
use holdfast_tests::cluster::{Cluster, LONG, Plan};
use holdfast_tests::files::{DeploymentFile, command_target};
use holdfast_tests::folder::Folder;
use holdfast_tests::wait;

use crate::PROGRAM;
use crate::support::{BOX, last_attempt, submit};

/// One value each, that nothing else holds.
const DEPLOY: &str = "canary/deploy+file?1";
const DEPLOY_VARIABLE: &str = "canary-deploy-variable-2";
const INSPECT: &str = "canary-inspect-file-3";
const FENCE: &str = "canary-fence-file-4";
const CANARIES: [&str; 4] = [DEPLOY, DEPLOY_VARIABLE, INSPECT, FENCE];

/// A host with one resource and a value in each of its sets. The values lie outside of every folder that is searched.
struct Host {
    cluster: Cluster,
    operator: Operator,
    secrets: Folder,
    /// Where commands tell what they found.
    told: Folder,
}

fn secret(folder: &Folder, name: &str, text: &str) -> PathBuf {
    let path = folder.write(name, text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a test's own folder");
    path
}

impl Host {
    async fn new(inspect: &str, users: &str) -> Self {
        let (secrets, told) = (Folder::new(), Folder::new());
        fs::set_permissions(told.path(), fs::Permissions::from_mode(0o777)).expect("a test's own folder");
        let deploy = secret(&secrets, "deploy", &format!("{DEPLOY}\n"));
        let variables = secret(&secrets, "deploy.env", &format!("# of the database\nDB_PASSWORD={DEPLOY_VARIABLE}\n"));
        let (look, fence) = (secret(&secrets, "inspect", INSPECT), secret(&secrets, "fence", FENCE));
        let rules = format!(
            r#"[{{ target = "box@*", name = "box", adapter = "command", {users} credentials = {{
                deploy = {{ files = {{ key = {deploy:?} }}, environment_file = {variables:?} }},
                inspect = {{ files = {{ look = {look:?} }} }},
                fence = {{ files = {{ fence = {fence:?} }} }} }} }}]"#
        )
        .replace('\n', " ");
        let plan = Plan::new(PROGRAM).agents(&["web-01"]).agent_environment("HOLDFAST_RESOURCE", &rules);
        let cluster = plan.start().await;
        fs::set_permissions(cluster.folder().path(), fs::Permissions::from_mode(0o711)).expect("a test's own folder");
        let operator = cluster.operator();
        let inspect = ["/bin/sh".to_owned(), "-c".to_owned(), inspect.to_owned()];
        let with = format!("with = {{ outlives = false, inspect = {inspect:?} }}");
        operator.apply_target(&command_target(BOX, false).replace("with = { outlives = false }", &with)).await;
        Self { cluster, operator, secrets, told }
    }

    fn script(&self, text: &str) -> Vec<String> {
        let path = self.told.write("script.sh", text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a test's own folder");
        vec!["/bin/sh".to_owned(), path.to_str().expect("plain text").to_owned()]
    }

    async fn logs(&self, label: &str) -> String {
        let cli = self.cluster.cli();
        wait::until("the output", wait::SOON, async || {
            let said = cli.run(&["logs", label]).await;
            if said.stdout.contains("the end") {
                Ok(said.stdout)
            } else {
                Err(format!("{}{}", said.stdout, said.stderr))
            }
        })
        .await
    }

    /// Where a canary is: files of agent and coordinator, their logs among them.
    fn found(&self) -> Vec<String> {
        let mut found = Vec::new();
        search(self.cluster.folder().path(), &mut found);
        found
    }
}

fn search(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            search(&entry.path(), found);
        } else if kind.is_file() {
            found.extend(canaries_in(&fs::read(entry.path()).unwrap_or_default(), &entry.path()));
        }
    }
}

fn canaries_in(bytes: &[u8], place: &Path) -> Vec<String> {
    let is_in = |canary: &&&str| bytes.windows(canary.len()).any(|part| part == canary.as_bytes());
    CANARIES.iter().filter(is_in).map(|canary| format!("{canary} in {}", place.display())).collect()
}

/// Every argument list of this machine, and what the processes below that folder have in theirs.
fn in_argument_lists() -> Vec<String> {
    let processes = fs::read_dir("/proc").expect("there is a /proc").flatten();
    processes
        .flat_map(|process| {
            let path = process.path().join("cmdline");
            canaries_in(&fs::read(&path).unwrap_or_default(), &path)
        })
        .collect()
}

const PRINTS_ALL: &str = r#"
key=$(cat $HOLDFAST_CREDENTIALS/key)
echo "file $key"; echo "variable $DB_PASSWORD" >&2
printf %s "$key" | base64; printf 'x%s' "$key" | base64; printf 'xx%sy' "$key" | base64
echo "canary%2Fdeploy%2Bfile%3F1"
printf 'canary-deploy-'; sleep 0.3; echo 'variable-2'
ls -ld $HOLDFAST_CREDENTIALS $HOLDFAST_CREDENTIALS/key | cut -c1-10
ls $HOLDFAST_CREDENTIALS
env | grep -c canary
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn canaries_of_each_set_are_nowhere_but_where_they_belong() {
    assert!(rustix::process::geteuid().is_root(), "commands run as another user only where the agent is root");
    let users = r#"user = "64131:64131", inspect_user = "64132:64132","#;
    let inspect = "cat $HOLDFAST_CREDENTIALS/look >&2; ls $HOLDFAST_CREDENTIALS > /tmp/holdfast-look-$HOLDFAST_TARGET 2>&1; [ -z \"$DB_PASSWORD\" ] && [ -r $HOLDFAST_CREDENTIALS/look ] && [ ! -e $HOLDFAST_CREDENTIALS/key ] && echo v1";
    let host =
        Host::new(&inspect.replace(" ls $HOLDFAST_CREDENTIALS > /tmp/holdfast-look-$HOLDFAST_TARGET 2>&1;", ""), users)
            .await;
    let (at_work, go) = (host.told.join("at-work"), host.told.join("go"));
    let script = format!(
        "{PRINTS_ALL}\ntouch {}; while [ ! -e {} ]; do sleep 0.05; done; echo the end",
        at_work.display(),
        go.display()
    );
    let run = host.script(&script);
    let keys = format!("retry = \"unsafe\"\nwith = {{ revision = \"v1\" }}\nrun = {run:?}\n");
    let label = submit(&host.operator, DeploymentFile::new(BOX, LONG).step("change", &keys).text()).await;
    wait::until_true("the step to be at work", wait::SOON, || at_work.exists()).await;
    assert_eq!(in_argument_lists(), Vec::<String>::new());
    // While it runs the file that it was given is there, and nothing else.
    let while_it_runs = host.found();
    assert!(while_it_runs.len() == 1 && while_it_runs[0].contains("/credentials/key"), "{while_it_runs:#?}");
    fs::write(&go, "").expect("a test's own folder can be written");
    let ended = host.operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
    let change = &last_attempt(&ended).steps[0];
    assert!(change.detail.contains("secrets taken out of its output: 7"), "{}", change.detail);
    let said = host.logs(&label).await;
    for line in [
        "file [redacted key]",
        "variable [redacted DB_PASSWORD]",
        "[redacted DB_PASSWORD]",
        "[redacted key]",
        "dr-x------",
        "-r--------",
    ] {
        let is_there = said.contains(line) || line == "dr-x------" && said.contains("drwx------");
        assert!(is_there, "{line} is not in {said}");
    }
    assert!(!said.contains("look") && !said.contains("fence"), "{said}");
    assert_eq!(host.found(), Vec::<String>::new());
    assert!(!format!("{ended:?}").contains("canary"), "{ended:#?}");
    drop(host.secrets);
}

/// What an inspection prints goes into a reading: never a secret.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_inspection_that_prints_its_secret_tells_it_to_nobody() {
    let host = Host::new("cat $HOLDFAST_CREDENTIALS/look", "").await;
    let run = host.script("echo the end");
    let keys = format!("retry = \"unsafe\"\nwith = {{ revision = \"v1\" }}\nrun = {run:?}\n");
    let label = submit(&host.operator, DeploymentFile::new(BOX, LONG).step("change", &keys).text()).await;
    let told = host
        .operator
        .until(&label, "the look to be told", |found| format!("{found:?}").contains("redacted look"))
        .await;
    assert!(!format!("{told:?}").contains("canary"), "{told:#?}");
    assert_eq!(host.found(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_are_gone_also_where_shim_and_agent_were_killed() {
    let mut host = Host::new("echo v1", "").await;
    let at_work = host.told.join("at-work");
    let run = host.script(&format!("touch {}; sleep 1000", at_work.display()));
    let keys = format!("retry = \"unsafe\"\nwith = {{ revision = \"v1\" }}\nrun = {run:?}\n");
    let label = submit(&host.operator, DeploymentFile::new(BOX, LONG).step("change", &keys).text()).await;
    wait::until_true("the step to be at work", wait::SOON, || at_work.exists()).await;
    assert_eq!(host.found().len(), 1, "{:#?}", host.found());
    host.cluster.agent("web-01").kill();
    for pid in host.cluster.shims("web-01") {
        let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
        let _gone_already = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
    host.cluster.agent("web-01").start();
    wait::until_true("the credentials to be gone", wait::SOON, || host.found().is_empty()).await;
    let told =
        host.operator.until(&label, "the loss to be told", |found| state_of(found) != DeploymentState::Active).await;
    assert!(!format!("{told:?}").contains("canary"), "{told:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_that_others_can_read_keeps_the_agent_from_starting() {
    let host = Host::new("echo v1", "").await;
    let config = host.cluster.folder().join("web-01.toml");
    let (open, short) = (secret(&host.secrets, "open", "canary-open-file"), secret(&host.secrets, "short", "abc"));
    fs::set_permissions(&open, fs::Permissions::from_mode(0o640)).expect("a test's own folder");
    let rules = format!(
        r#"[{{ target = "*", name = "box", adapter = "command", credentials = {{ deploy = {{ files = {{ open = {open:?}, short = {short:?} }} }} }} }}]"#
    );
    for word in ["check-config", "run"] {
        let mut command = std::process::Command::new(PROGRAM);
        command.args(["on-host", word, "--config"]).arg(&config).env("HOLDFAST_RESOURCE", &rules);
        let output = command.output().expect("the program runs");
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(!output.status.success() && text.contains("has mode 0640") && text.contains("chmod 600"), "{text}");
        assert!(!text.contains("canary-open-file"), "{text}");
        let warns = text.contains("short has fewer than 6 bytes: it is not redacted in outputs");
        assert!(warns || word == "run", "{text}");
    }
}

/// What opened it may have been root, and a command is anybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_was_started_with_open_reaches_no_command() {
    let words = ["/bin/sh", "-c", "exec \"$@\" 9</etc/hostname", "sh"].map(str::to_owned);
    let cluster = Plan::new(PROGRAM).agents(&["web-01"]).agent_wrapper(&words).start().await;
    let operator = cluster.operator();
    operator.apply_target(&command_target(BOX, false)).await;
    let told = cluster.folder().join("told");
    let script = format!("ls -l /proc/$$/fd > {}", told.display());
    let file = DeploymentFile::new(BOX, LONG).mutates("look", "unsafe", &["/bin/sh", "-c", &script].map(str::to_owned));
    let done = operator.until_ended(&submit(&operator, file.text()).await).await;
    assert_eq!(state_of(&done), DeploymentState::Succeeded, "{done:#?}");
    let open = fs::read_to_string(&told).expect("told by the command");
    assert!(open.contains(" 0 -> ") && !open.contains("/etc/hostname"), "{open}");
}
