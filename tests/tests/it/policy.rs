//! What a host does not allow is refused there, and told on both sides; what runs there as another user reaches nothing of the
//! agent's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdfast_proto::v1::{DeclineReason, DeploymentState, OfferAnswerKind, StepState};
use holdfast_tests::api::{Operator, state_of};
use holdfast_tests::cluster::{Cluster, LONG, Plan};
use holdfast_tests::files::{DeploymentFile, command_target, release_target};
use holdfast_tests::folder::Folder;
use holdfast_tests::hostile::{Hostile, claim, offer};
use holdfast_tests::{site, wait};

use crate::PROGRAM;
use crate::support::{BOX, SHOP, last_attempt, submit};

/// A user of no name that no other test uses, and its group.
const NOBODY: &str = "64123:64123";

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn shell(script: &str) -> Vec<String> {
    argv(&["/bin/sh", "-c", script])
}

/// One agent with that policy, each key as its variable says it.
async fn with_policy(keys: &[(&str, &str)]) -> (Cluster, Operator) {
    let plan = Plan::new(PROGRAM).agents(&["web-01"]).agent_environment("HOLDFAST_LOG_FORMAT", "json");
    let plan = keys.iter().fold(plan, |plan, (key, value)| plan.agent_environment(key, value));
    let cluster = plan.start().await;
    let operator = cluster.operator();
    (cluster, operator)
}

fn log(cluster: &Cluster, name: &str) -> String {
    fs::read_to_string(cluster.folder().join(&format!("{name}.log"))).expect("a log")
}

/// What `holdfast-agent` says of that agent's host.
fn agent_says(cluster: &Cluster, word: &str, environment: &[(&str, &str)]) -> (bool, String) {
    let config = cluster.folder().join("web-01.toml");
    let mut command = Command::new(PROGRAM);
    command.args(["on-host", word, "--config"]).arg(config).envs(environment.iter().copied());
    let output = command.output().expect("the program runs");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

/// It waits, and each side says by which rule and why.
async fn check_refused(cluster: &Cluster, operator: &Operator, label: &str, rule: &str, why: &str) {
    let sentence = format!("refused by {rule} of this host: {why}");
    let waits = operator.until(label, "the refusal to be told", |found| found.waiting.contains(&sentence)).await;
    assert!(waits.waiting.contains("its host's policy forbids it"), "{}", waits.waiting);
    // Between two offers it waits, and says so.
    let cli = cluster.cli();
    wait::until("nobody to hold what was declined", wait::SOON, async || {
        let agents = operator.try_agents().await.map_err(|error| error.to_string())?;
        if agents.iter().all(|agent| agent.holds.is_empty()) { Ok(()) } else { Err(format!("{agents:?}")) }
    })
    .await;
    wait::until("show to say it", wait::SOON, async || {
        let shown = cli.run(&["show", label]).await;
        if shown.stdout.contains(&sentence) { Ok(()) } else { Err(shown.stdout) }
    })
    .await;
    let events = cluster.cli().run(&["events", label]).await;
    assert!(events.stdout.contains(&sentence), "{}{}", events.stdout, events.stderr);
    assert!(log(cluster, "coordinator").contains(&sentence), "the coordinator's log has it");
    let host = log(cluster, "web-01");
    let line = host.lines().find(|line| line.contains("this host does not allow it")).expect("the host's log has it");
    assert!(line.contains("WARN") && line.contains("HF-4030") && line.contains(rule), "{line}");
    let (told, refusals) = agent_says(cluster, "refusals", &[]);
    assert!(told && refusals.contains(&format!("offer  {rule}: {why}")), "{refusals}");
    let attempts = cluster.folder().join("web-01/attempts");
    assert_eq!(fs::read_dir(attempts).map_or(0, Iterator::count), 0, "nothing of it was begun");
    cluster.cli().run(&["cancel", label, "--reason", "refused"]).await;
    operator.until_ended(label).await;
}

/// F42. A coordinator that knows what a host does not take does not offer it: only a hostile one does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_hostile_coordinator_sends_is_refused_by_the_rule_of_the_host_and_kept_there() {
    let refused = [
        ("HOLDFAST_POLICY_TARGETS", r#"["shop@*"]"#, "policy.targets: target box@test is not in it"),
        ("HOLDFAST_POLICY_ADAPTERS", r#"["release"]"#, "policy.adapters: adapter command is not in it"),
        ("HOLDFAST_POLICY_COMMANDS", r#"["/opt/*"]"#, "policy.commands: program"),
        (
            "HOLDFAST_RESOURCE",
            r#"[{ target = "*", name = "site", adapter = "command" }]"#,
            "resource: resource box of box@test is not declared",
        ),
        (
            "HOLDFAST_RESOURCE",
            r#"[{ target = "*", name = "*", adapter = "release" }]"#,
            "resource: resource box of box@test is for adapter release, not command",
        ),
    ];
    for (key, value, why) in refused {
        let mut cluster = Plan::new(PROGRAM).agents(&["web-01"]).agent_environment(key, value).prepare().await;
        let mut hostile = Hostile::start(cluster.server_tls()).await;
        cluster.redirect(hostile.address()).await;
        cluster.agent("web-01").start();
        let mut session = hostile.welcomed().await;
        let answer = session.offer(offer(&claim(10), LONG, &[("change", shell("touch ran"))])).await;
        assert_eq!((answer.kind(), answer.reason()), (OfferAnswerKind::Declined, DeclineReason::HostPolicy), "{why}");
        let (rule, rest) = why.split_once(": ").expect("a rule and why");
        assert!(answer.detail.starts_with(&format!("refused by {rule} of this host: {rest}")), "{}", answer.detail);
        let (told, refusals) = agent_says(&cluster, "refusals", &[]);
        assert!(told && refusals.contains(&format!("offer  {why}")), "{refusals}");
        assert!(log(&cluster, "web-01").contains("HF-4030"), "the host's log has it");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_the_host_does_not_list_is_refused_whatever_it_is_called_by() {
    let (cluster, operator) = with_policy(&[("HOLDFAST_POLICY_COMMANDS", r#"["/bin/echo"]"#)]).await;
    operator.apply_target(&command_target(BOX, false)).await;
    let link = cluster.folder().join("echo");
    std::os::unix::fs::symlink("/bin/sh", &link).expect("a test's own folder can be written");
    let real = Path::new("/bin/sh").canonicalize().expect("there is a shell");
    let why = format!("program {} is not in it", real.display());
    let change = |argv: &[String]| DeploymentFile::new(BOX, LONG).mutates("change", "unsafe", argv).text().to_owned();
    let label = submit(&operator, &change(&argv(&[link.to_str().expect("plain text"), "-c", "true"]))).await;
    check_refused(&cluster, &operator, &label, "policy.commands", &why).await;
    let label = submit(&operator, &change(&argv(&["echo", "hello"]))).await;
    let ended = operator.until_ended(&label).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_comes_to_be_later_is_judged_when_it_is_to_run() {
    let (cluster, operator) = with_policy(&[("HOLDFAST_POLICY_COMMANDS", r#"["/bin/cp", "/bin/ln"]"#)]).await;
    operator.apply_target(&command_target(BOX, false)).await;
    let made = cluster.folder().join("made");
    let path = made.to_str().expect("plain text");
    let file = DeploymentFile::new(BOX, LONG).mutates("make", "unsafe", &argv(&["ln", "-s", "/bin/sh", path])).mutates(
        "use",
        "unsafe",
        &argv(&[path, "-c", "touch ran"]),
    );
    let label = submit(&operator, file.text()).await;
    let ended = operator.until_ended(&label).await;
    let steps = &last_attempt(&ended).steps;
    assert_eq!((state_of(&ended), steps[0].state()), (DeploymentState::Failed, StepState::Applied), "{ended:#?}");
    assert!(steps[1].detail.contains("refused by policy.commands of this host"), "{}", steps[1].detail);
    let (_, refusals) = agent_says(&cluster, "refusals", &[]);
    assert!(refusals.contains("launch  policy.commands"), "{refusals}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_that_the_host_does_not_declare_is_refused_there() {
    let rules = r#"[{ target = "shop@*", name = "site", adapter = "release" }]"#;
    let (cluster, operator) = with_policy(&[("HOLDFAST_RESOURCE", rules)]).await;
    operator.apply_target(&command_target(BOX, false)).await;
    let label =
        submit(&operator, DeploymentFile::new(BOX, LONG).mutates("change", "unsafe", &shell("true")).text()).await;
    check_refused(&cluster, &operator, &label, "resource", "resource box of box@test is not declared").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_outside_the_declared_one_is_refused_also_by_way_of_a_link() {
    let outside = Folder::new();
    let allowed = outside.join("allowed");
    fs::create_dir(&allowed).expect("a test's own folder can be written");
    let rules =
        format!(r#"[{{ target = "shop@*", name = "site", adapter = "release", root = {:?} }}]"#, allowed.display());
    let (cluster, operator) = with_policy(&[("HOLDFAST_RESOURCE", &rules)]).await;
    std::os::unix::fs::symlink(outside.path(), allowed.join("link")).expect("a test's own folder can be written");
    let archive = site::archive(cluster.folder(), "v1");
    let real = outside.path().canonicalize().expect("it is there");
    for root in [outside.join("site"), allowed.join("link/site")] {
        operator.apply_target(&release_target(SHOP, &root, "shared")).await;
        let label = submit(&operator, DeploymentFile::new(SHOP, LONG).release("switch", &archive, "v1").text()).await;
        let why = format!("folder {} is not {} or below", real.join("site").display(), allowed.display());
        check_refused(&cluster, &operator, &label, "resource.root", &why).await;
        assert!(!root.exists());
    }
    operator.apply_target(&release_target(SHOP, &allowed.join("site"), "shared")).await;
    let label = submit(&operator, DeploymentFile::new(SHOP, LONG).release("switch", &archive, "v1").text()).await;
    assert_eq!(state_of(&operator.until_ended(&label).await), DeploymentState::Succeeded);
}

/// A bare repository that was never asked has no ref.
fn repository(folder: &Folder) -> PathBuf {
    let path = folder.path().canonicalize().expect("it is there").join("config.git");
    let made = Command::new("git").args(["init", "--quiet", "--bare", "--initial-branch=main"]).arg(&path).status();
    assert!(made.expect("git is installed").success());
    path
}

fn refs(repository: &Path) -> String {
    let output = Command::new("git").arg("-C").arg(repository).arg("for-each-ref").output().expect("git is installed");
    String::from_utf8(output.stdout).expect("names")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_is_changed_only_where_the_host_lists_it() {
    let (allowed, outside) = (Folder::new(), Folder::new());
    let (listed, other) = (repository(&allowed), repository(&outside));
    let above = listed.parent().expect("it has a folder").to_owned();
    let rules = format!(r#"[{{ target = "shop@*", name = "config", adapter = "git", at = [{above:?}] }}]"#);
    let (cluster, operator) = with_policy(&[("HOLDFAST_RESOURCE", &rules)]).await;
    let target = |url: &Path| {
        format!(
            "schema = \"holdfast/v1\"\nname = {SHOP:?}\nagents = {{ role = \"shop\" }}\n\n[[resource]]\nname = \"config\"\nadapter = \"git\"\n\
             reach = \"shared\"\nwith = {{ url = {url:?}, branches = [\"main\"] }}\n"
        )
    };
    let change = DeploymentFile::new(SHOP, LONG).with("commit", "files = { \"a.txt\" = \"v1\" }, revision = \"v1\"");
    operator.apply_target(&target(&other)).await;
    let label = submit(&operator, change.text()).await;
    let why = format!("{} is not {} or below", other.display(), above.display());
    check_refused(&cluster, &operator, &label, "resource.at", &why).await;
    assert_eq!(refs(&other), "");
    operator.apply_target(&target(&listed)).await;
    let done = operator.until_ended(&submit(&operator, change.text()).await).await;
    assert_eq!(state_of(&done), DeploymentState::Succeeded, "{done:#?}");
    assert!(refs(&listed).contains("refs/holdfast/"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_that_the_host_does_not_have_keeps_the_agent_from_starting() {
    let (cluster, _) = with_policy(&[]).await;
    let (sound, text) = agent_says(&cluster, "check-config", &[("HOLDFAST_POLICY_RUN_AS", "no-such-user")]);
    assert!(!sound && text.contains("policy.run_as: no-such-user is no user of this host"), "{text}");
    let (started, text) = agent_says(&cluster, "run", &[("HOLDFAST_POLICY_RUN_AS", "no-such-user")]);
    assert!(!started && text.contains("no-such-user is no user of this host"), "{text}");
    let (sound, text) = agent_says(&cluster, "check-config", &[("HOLDFAST_POLICY_TARGETS", r#"["shop@*"]"#)]);
    assert!(sound && text.contains("targets    shop@*") && text.contains("run as     the agent's own user"), "{text}");
    assert_eq!(text.contains("warning: commands run as root"), rustix::process::geteuid().is_root(), "{text}");
}

/// T29: the commands of another user.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_of_another_user_reaches_nothing_of_the_agent() {
    assert!(rustix::process::geteuid().is_root(), "commands run as another user only where the agent is root");
    let outside = Folder::new();
    fs::set_permissions(outside.path(), fs::Permissions::from_mode(0o777)).expect("a test's own folder");
    let (mut cluster, operator) = with_policy(&[("HOLDFAST_POLICY_RUN_AS", NOBODY)]).await;
    // The way to the state folder is open, as in /var/lib.
    fs::set_permissions(cluster.folder().path(), fs::Permissions::from_mode(0o711)).expect("a test's own folder");
    operator.apply_target(&command_target(BOX, false)).await;
    let (report, go) = (outside.join("report"), outside.join("go"));
    let (state, agent) = (cluster.agent("web-01").state(), cluster.agent("web-01").pid());
    let key = cluster.agent("web-01").pair().key.clone();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("a test's own folder");
    let first = DeploymentFile::new(BOX, LONG).mutates("first", "unsafe", &shell("echo mine > kept; pwd"));
    let done = operator.until_ended(&submit(&operator, first.text()).await).await;
    assert_eq!(state_of(&done), DeploymentState::Succeeded, "{done:#?}");
    let earlier = last_attempt(&done).id.clone();
    let script = format!(
        r#"exec >{report} 2>&1
id -u; id -g; id -G; umask; echo "$HOME $USER $LOGNAME"; grep NoNewPrivs /proc/self/status
touch in-my-work && echo worked
for file in {key} {state}/journal.sqlite {state}/lock {state}/attempts/{earlier}/work/kept ../steps/probe/launch.json ../../../journal.sqlite /proc/{agent}/environ /proc/{agent}/mem /proc/$PPID/environ /proc/$PPID/mem; do
  if cat $file >/dev/null 2>&1; then echo "READ $file"; else echo "shut $file"; fi
done
for folder in {state} {state}/attempts {state}/locks {state}/archives ..; do
  if ls $folder >/dev/null 2>&1; then echo "LISTED $folder"; else echo "shut $folder"; fi
done
if kill -0 $PPID 2>/dev/null || kill -0 {agent} 2>/dev/null; then echo SIGNALLED; else echo unsignalled; fi
while [ ! -e {go} ]; do sleep 0.05; done"#,
        report = report.display(),
        state = state.display(),
        key = key.display(),
        go = go.display(),
    );
    let program = outside.write("probe.sh", &script);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a test's own folder");
    let probe = argv(&["/bin/sh", program.to_str().expect("plain text")]);
    let second = DeploymentFile::new(BOX, LONG).mutates("probe", "unsafe", &probe);
    let label = submit(&operator, second.text()).await;
    let seen = || fs::read_to_string(&report).unwrap_or_default();
    wait::until_true("the report of the step", wait::SOON, || seen().contains("signalled\n")).await;
    let shims = cluster.shims("web-01");
    for pid in shims.iter().copied().chain([i32::try_from(agent).expect("a pid")]) {
        let (traced, text) = traced_by_nobody(pid);
        let is_own = fs::metadata(format!("/proc/{pid}"))
            .is_ok_and(|found| std::os::unix::fs::MetadataExt::uid(&found) == 64123);
        assert!(is_own || !traced, "{pid} was traced: {text}");
    }
    fs::write(&go, "").expect("a test's own folder can be written");
    let ended = operator.until_ended(&label).await;
    let told = seen();
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{told}{ended:#?}");
    let lines: Vec<&str> = told.lines().collect();
    let who = ["64123", "64123", "64123", "0077", "/ 64123 64123", "NoNewPrivs:\t1", "worked"];
    assert_eq!(lines[..who.len()], who, "{told}");
    assert!(!told.contains("READ") && !told.contains("LISTED") && told.contains("unsignalled"), "{told}");
    assert_eq!(told.matches("shut ").count(), 15, "{told}");
}

/// Whether a process of that user could attach to it: asked of the kernel by reading where its memory lies.
fn traced_by_nobody(pid: i32) -> (bool, String) {
    use std::os::unix::process::CommandExt;
    let read = format!("cat /proc/{pid}/maps >/dev/null && readlink /proc/{pid}/exe");
    let output = Command::new("/bin/sh").args(["-c", &read]).uid(64123).gid(64123).output().expect("a shell runs");
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// T29: so do inspection commands, and health checks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn looks_run_as_the_user_that_the_host_names_for_them() {
    assert!(rustix::process::geteuid().is_root(), "commands run as another user only where the agent is root");
    let outside = Folder::new();
    fs::set_permissions(outside.path(), fs::Permissions::from_mode(0o777)).expect("a test's own folder");
    let rules = r#"[{ target = "box@*", name = "box", adapter = "command", user = "64123:64123", inspect_user = "64124:64124" }]"#;
    let (cluster, operator) =
        with_policy(&[("HOLDFAST_RESOURCE", rules), ("HOLDFAST_POLICY_RUN_AS", "64125:64125")]).await;
    fs::set_permissions(cluster.folder().path(), fs::Permissions::from_mode(0o711)).expect("a test's own folder");
    let who = |name: &str| format!("id -u > {}", outside.join(name).display());
    let inspect = shell(&format!("{}; echo v1", who("inspect")));
    let with = format!("with = {{ outlives = false, inspect = {inspect:?} }}");
    operator.apply_target(&command_target(BOX, false).replace("with = { outlives = false }", &with)).await;
    let file = DeploymentFile::new(BOX, LONG)
        .step(
            "change",
            &format!("retry = \"unsafe\"\nwith = {{ revision = \"v1\" }}\nrun = {:?}\n", shell(&who("change"))),
        )
        .verify(&format!("name = \"up\"\ncommand = {:?}\n", shell(&who("check"))));
    let ended = operator.until_ended(&submit(&operator, file.text()).await).await;
    assert_eq!(state_of(&ended), DeploymentState::Succeeded, "{ended:#?}");
    let read = |name: &str| fs::read_to_string(outside.join(name)).expect("it ran").trim().to_owned();
    assert_eq!([read("change"), read("inspect"), read("check")], ["64123", "64124", "64125"]);
}

/// T41: what stands in a file is text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_file_reads_neither_a_file_nor_the_environment() {
    let (cluster, operator) = with_policy(&[]).await;
    operator.apply_target(&command_target(BOX, false)).await;
    let mut submitted = 0;
    for text in [
        "${env.HOME}",
        "${HOME}",
        "${file:/etc/passwd}",
        "${file(\"/etc/passwd\")}",
        "${inputs.${env.X}}",
        "{{ env.HOME }}",
        "$(cat /etc/passwd)",
    ] {
        let file = DeploymentFile::new(BOX, LONG).mutates("change", "unsafe", &argv(&["echo", text]));
        let path = cluster.folder().write("box.deploy.toml", file.text());
        let deployed = cluster.cli().run(&["deploy", path.to_str().expect("plain text")]).await;
        if text.starts_with("${") {
            assert_eq!(deployed.code, 2, "{text}: {}{}", deployed.stdout, deployed.stderr);
            assert!(!format!("{}{}", deployed.stdout, deployed.stderr).contains("root:"), "{text}");
        } else {
            // No form of ours: it reaches the command as it stands.
            deployed.expect(0);
            let label = format!("{BOX}#{}", {
                submitted += 1;
                submitted
            });
            let said = cluster.cli().run(&["logs", &label]).await;
            assert!(said.stdout.contains(text), "{text}: {}", said.stdout);
        }
    }
}
