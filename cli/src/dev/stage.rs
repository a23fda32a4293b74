//! From the first child's start to the last one's end.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_common::code::ExitCode;
use holdfast_common::text::{chain, one_line};
use tokio::sync::{mpsc, oneshot};

use super::api::{Access, Api};
use super::args::Args;
use super::control::{Answer, Request, Server};
use super::folder::Folder;
use super::leftovers;
use super::lines::Lines;
use super::narrator::Narrator;
use super::pointer::{Pointer, Pointers};
use super::services::{AGENTS, Services, ops_addresses, quoted};
use super::signals::Signals;
use super::tour::{self, Plot, Untrue};
use crate::output::{Options, exit};

/// How it came to its end.
enum End {
    /// As it was asked for: the tour is over, or everything was up.
    Over,
    /// Somebody asked for it while it just stood there.
    Asked,
    /// Somebody asked for it in the middle of the tour or of the start.
    BrokenOff,
    /// A statement of the tour did not hold.
    Untrue(Untrue),
    /// Something could not be done.
    Failed(anyhow::Error),
}

/// Starts everything, plays the tour where that is wanted, stays up till told, and ends everything.
pub(super) async fn run(args: &Args, output: &Options) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::new()?;
    leftovers::inherit()?;
    let folder = Folder::open(args.data.as_deref())?;
    let mut narrator = Narrator::new(output);
    let mut services = Services::default();
    let end = act(args, &folder, &mut services, &mut narrator, &mut signals).await;
    clear_up(&services, &mut signals).await;
    conclude(end, folder, &services)
}

async fn act(
    args: &Args,
    folder: &Folder,
    services: &mut Services,
    narrator: &mut Narrator,
    signals: &mut Signals,
) -> End {
    let started = tokio::select! {
        started = services.start(folder, args.port) => started,
        () = signals.next() => return End::BrokenOff,
    };
    let played = async {
        let access = started?;
        introduce(&access, folder, narrator)?;
        let control = Control::start(folder, services.lines())?;
        if args.tour && !play(args, &access, folder, services, narrator, signals).await? {
            return Ok(End::BrokenOff);
        }
        if args.exit {
            return Ok(End::Over);
        }
        stay(services, folder, control, narrator, signals).await?;
        Ok(End::Asked)
    };
    played.await.unwrap_or_else(|error: anyhow::Error| match error.downcast::<Untrue>() {
        Ok(untrue) => End::Untrue(untrue),
        // Whoever read along has had enough.
        Err(error) if exit::is_closed_pipe(&error) => End::BrokenOff,
        Err(error) => End::Failed(error),
    })
}

/// How another terminal gets in.
fn introduce(access: &Access, folder: &Folder, narrator: &mut Narrator) -> anyhow::Result<()> {
    let environment = format!(
        "export HOLDFAST_ADDRESS={}\nexport HOLDFAST_CA={}\nexport HOLDFAST_TOKEN={}\n",
        shell(&access.address),
        shell(&access.ca.display().to_string()),
        shell(&access.token)
    );
    let file = folder.write("environment", &environment)?;
    folder.write("config.toml", &context(access))?;
    let kept = if folder.is_temporary() { "removed at the end; --data DIR keeps it" } else { "kept" };
    narrator.line(&format!("A whole Holdfast runs here: a coordinator, and the agents {}.", AGENTS.join(" and ")))?;
    narrator.line(&format!("  address  {}", access.address))?;
    narrator.line(&format!("  folder   {} ({kept})", folder.path().display()))?;
    for (name, address) in ops_addresses(folder) {
        narrator.line(&format!("  {name:<11}  http://{address}/readyz?verbose   http://{address}/metrics"))?;
    }
    narrator.line("In another terminal:")?;
    narrator.line(&format!("  . {}", shell(&file.display().to_string())))?;
    environment.lines().try_for_each(|line| narrator.line(&format!("  {line}")))?;
    narrator.line(&format!("  holdfast dev cut {}    and: heal, pause, resume, kill, start", AGENTS[0]))?;
    Ok(())
}

/// In the form of the command line's own configuration.
fn context(access: &Access) -> String {
    let text = |text: &str| quoted(std::path::Path::new(text));
    format!(
        "current = \"dev\"\n\n[context.dev]\naddress = {}\nca = {}\ntoken = {}\n",
        text(&access.address),
        quoted(&access.ca),
        text(&access.token)
    )
}

/// A word that a POSIX shell takes as it is.
fn shell(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// The control socket, and what was done through it. Both end with it.
struct Control {
    server: tokio::task::JoinHandle<()>,
    done: mpsc::UnboundedReceiver<String>,
    /// What is about processes: those are started and ended on the main thread, while nothing else plays.
    asked: mpsc::UnboundedReceiver<(Request, oneshot::Sender<Answer>)>,
    open: Arc<AtomicBool>,
    _pointer: Pointer,
}

impl Control {
    fn start(folder: &Folder, lines: Lines) -> anyhow::Result<Self> {
        let server = Server::bind(folder.path())?;
        let pointer = Pointers::of_user()?.set(folder.path())?;
        let (tell, done) = mpsc::unbounded_channel();
        let (ask, asked) = mpsc::unbounded_channel();
        let open = Arc::new(AtomicBool::new(false));
        let is_open = Arc::clone(&open);
        let act = async move |request: Request| {
            let answer = match lines.act(&request).await {
                Some(answer) => answer,
                None if is_open.load(Ordering::Relaxed) => of_process(&ask, request).await,
                None => {
                    Answer::Refused { detail: "the tour is playing: only lines can be cut and healed now".to_owned() }
                }
            };
            if let Answer::Done { detail } = &answer {
                // Nobody listens during the tour's last breath.
                let _ = tell.send(detail.clone());
            }
            answer
        };
        Ok(Self { server: tokio::spawn(server.serve(act)), done, asked, open, _pointer: pointer })
    }
}

async fn of_process(ask: &mpsc::UnboundedSender<(Request, oneshot::Sender<Answer>)>, request: Request) -> Answer {
    let (reply, answer) = oneshot::channel();
    let _gone = ask.send((request, reply));
    answer.await.unwrap_or_else(|_| Answer::Refused { detail: "it is just ending".to_owned() })
}

impl Drop for Control {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Says whether the tour came to its end; a signal breaks it off.
async fn play(
    args: &Args,
    access: &Access,
    folder: &Folder,
    services: &Services,
    narrator: &mut Narrator,
    signals: &mut Signals,
) -> anyhow::Result<bool> {
    let api = Api::new(access)?;
    let plot = if args.without_cut { Plot::WithoutCut } else { Plot::Whole };
    let lines = services.lines();
    tokio::select! {
        played = tour::play(&api, &lines, folder, plot, narrator) => played.map(|()| true),
        (child, status) = services.death(&[]) => anyhow::bail!("{}", obituary(services, &child, status)),
        () = signals.next() => Ok(false),
    }
}

async fn stay(
    services: &mut Services,
    folder: &Folder,
    mut control: Control,
    narrator: &mut Narrator,
    signals: &mut Signals,
) -> anyhow::Result<()> {
    narrator.line("\nIt stays up until Ctrl-C.")?;
    control.open.store(true, Ordering::Relaxed);
    let mut told: Vec<String> = Vec::new();
    loop {
        tokio::select! {
            () = signals.next() => return Ok(()),
            Some(done) = control.done.recv() => narrator.line(&done)?,
            Some((request, reply)) = control.asked.recv() => {
                let refused = || Answer::Refused { detail: "nothing here does that".to_owned() };
                let answer = services.act(&request, folder).await.unwrap_or_else(refused);
                told.retain(|name| !services.runs(name));
                // Whoever asked may have left.
                let _ = reply.send(answer);
            }
            (name, status) = services.death(&told) => {
                if !services.was_killed(&name) {
                    narrator.line(&obituary(services, &name, status))?;
                    let words = services.child(&name).map(|child| child.last_words(5)).unwrap_or_default();
                    words.iter().try_for_each(|line| narrator.line(&format!("  {}", one_line(line))))?;
                }
                told.push(name);
            }
        }
    }
}

fn obituary(services: &Services, name: &str, status: Option<std::process::ExitStatus>) -> String {
    let status = status.map_or_else(|| "an unknown status".to_owned(), |status| status.to_string());
    let log = services.child(name).map(|child| child.log().display().to_string()).unwrap_or_default();
    let again = if AGENTS.contains(&name) { format!(": holdfast dev start {name}") } else { String::new() };
    format!("{name} ended by itself with {status}; it is not started again by itself{again}. Its log: {log}")
}

/// Ends all children, in order and gently; a second signal ends them at once.
async fn clear_up(services: &Services, signals: &mut Signals) {
    tokio::select! {
        () = services.stop() => {}
        () = signals.next() => services.kill().await,
    }
    for leftover in leftovers::end().await {
        complain(&format!("a step was still at work and was ended: {}", leftover.command));
    }
}

/// What failed stays for a look; else a temporary folder goes.
fn conclude(end: End, folder: Folder, services: &Services) -> anyhow::Result<ExitCode> {
    let code = match end {
        End::Over | End::Asked => ExitCode::Done,
        End::BrokenOff => ExitCode::Interrupted,
        End::Untrue(untrue) => {
            complain("\nerror: the tour met something that is not so");
            complain(&format!("  expected  {}", one_line(&untrue.expected)));
            complain(&format!("  seen      {}", one_line(&untrue.seen)));
            return Ok(keep(&folder, services));
        }
        End::Failed(error) => {
            complain(&format!("\nerror: {}", one_line(&chain(error.as_ref()))));
            return Ok(keep(&folder, services));
        }
    };
    folder.remove()?;
    Ok(code)
}

fn keep(folder: &Folder, services: &Services) -> ExitCode {
    for (name, log, lines) in services.last_words() {
        complain(&format!("\nlast lines of {name} ({}):", log.display()));
        lines.iter().for_each(|line| complain(&format!("  {}", one_line(line))));
    }
    complain(&format!("\neverything was kept for a look: {}", folder.path().display()));
    ExitCode::Unexpected
}

/// On stderr. A terminal that is gone must not keep the children from being ended.
fn complain(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_survive_a_shell() {
        for text in ["/tmp/holdfast-dev-1", "/tmp/it's \"here\" $HOME `x` \\", ""] {
            let script = format!("printf %s {}", shell(text));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&output.stdout), text);
        }
    }
}
