//! From the first child's start to the last one's end.

use std::io::Write;

use holdfast_common::code::ExitCode;
use holdfast_common::text::one_line;
use tokio::sync::mpsc;

use super::api::{Access, Api};
use super::args::Args;
use super::child::Child;
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
        stay(services, control, narrator, signals).await?;
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
    narrator.line(&format!("  holdfast dev cut {}    and: holdfast dev heal {}", AGENTS[0], AGENTS[0]))?;
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
    _pointer: Pointer,
}

impl Control {
    fn start(folder: &Folder, lines: Lines) -> anyhow::Result<Self> {
        let server = Server::bind(folder.path())?;
        let pointer = Pointers::of_user()?.set(folder.path())?;
        let (tell, done) = mpsc::unbounded_channel();
        let act = async move |request: Request| {
            let answer = lines.act(&request).await;
            if let Answer::Done { detail } = &answer {
                // Nobody listens during the tour's last breath.
                let _ = tell.send(detail.clone());
            }
            answer
        };
        Ok(Self { server: tokio::spawn(server.serve(act)), done, _pointer: pointer })
    }
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
        (child, status) = services.death(&[]) => anyhow::bail!("{}", obituary(child, status)),
        () = signals.next() => Ok(false),
    }
}

async fn stay(
    services: &Services,
    mut control: Control,
    narrator: &mut Narrator,
    signals: &mut Signals,
) -> anyhow::Result<()> {
    narrator.line("\nIt stays up until Ctrl-C.")?;
    let mut told: Vec<String> = Vec::new();
    loop {
        tokio::select! {
            () = signals.next() => return Ok(()),
            Some(done) = control.done.recv() => narrator.line(&done)?,
            (child, status) = services.death(&told) => {
                narrator.line(&obituary(child, status))?;
                child.last_words(5).iter().try_for_each(|line| narrator.line(&format!("  {}", one_line(line))))?;
                told.push(child.name().to_owned());
            }
        }
    }
}

fn obituary(child: &Child, status: Option<std::process::ExitStatus>) -> String {
    let status = status.map_or_else(|| "an unknown status".to_owned(), |status| status.to_string());
    format!(
        "{} ended by itself with {status}; it is not started again. Its log: {}",
        child.name(),
        child.log().display()
    )
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
            complain(&format!("\nerror: {}", one_line(&format!("{error:#}"))));
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
