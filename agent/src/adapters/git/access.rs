//! What git is let know: who we are to the remote, and nothing else of this host.
//!
//! | credential | for |
//! | --- | --- |
//! | variables `GIT_PASSWORD` and `GIT_USERNAME` (`git` without it) | `https://`, `http://` |
//! | variable `GIT_SSL_CAINFO`, or file `ca.pem` | the authority of an `https://` server |
//! | file `ssh_key`, and file `known_hosts`, the only hosts then | `ssh://` |
//! | variables `GIT_AUTHOR_NAME`, `GIT_AUTHOR_EMAIL` | whose name commits bear |
//!
//! Which repository may be asked the host's policy has decided before (`resource.at`).
//!
//! Git asks for a password through a credential helper that is this very program. The password is in its environment alone,
//! and it is told only for the host that the target declares.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use super::run::Git;
use crate::adapters::system::{Credentials, Failure};
use crate::internal::{INTERNAL, name};

/// Taken over as they are.
const INHERITED: [&str; 13] = [
    "PATH",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
];
/// No repository of this host but the one that a call names: without a `GIT_DIR` git would look for one where it runs and above.
const NO_REPOSITORY: &str = "/dev/null";
const FIXED: [(&str, &str); 12] = [
    ("LC_ALL", "C"),
    ("HOME", "/nonexistent"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_DIR", NO_REPOSITORY),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ALLOW_PROTOCOL", "file:http:https:ssh"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_SSH_VARIANT", "ssh"),
];
const USERNAME: &str = "GIT_USERNAME";
const PASSWORD: &str = "GIT_PASSWORD";
/// The helper's own variables: which program it is, and for which server it may speak.
const HELPER: &str = "HOLDFAST_GIT_HELPER";
const SERVER: &str = "HOLDFAST_GIT_SERVER";

/// Git, as it may go to that remote with those credentials.
pub(super) fn git(url: &str, credentials: &Credentials, time: Option<Duration>) -> Result<Git, Failure> {
    let text = |name: &&str| Some(((*name).to_owned(), credentials.variable(name)?.to_owned()));
    let mut environment: BTreeMap<String, String> = INHERITED.iter().filter_map(text).collect();
    environment.extend(FIXED.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    environment.extend(author(credentials));
    let mut settings = vec!["credential.helper=".to_owned()];
    let mut secrets = Vec::new();
    match server(url)? {
        Server::Path => {}
        Server::Http(server) => {
            if let Some(path) = credentials.file("ca.pem") {
                environment.insert("GIT_SSL_CAINFO".to_owned(), path.to_string_lossy().into_owned());
            }
            if let Some(password) = credentials.variable(PASSWORD) {
                settings.push(format!("credential.helper=!\"${HELPER}\" {INTERNAL} {}", name::GIT_CREDENTIAL));
                environment.extend(helper(server, password, credentials.variable(USERNAME)));
                secrets.push(password.to_owned());
            }
        }
        Server::Ssh => {
            environment.insert("GIT_SSH_COMMAND".to_owned(), ssh(credentials));
        }
    }
    Ok(Git::new(environment, settings, secrets, time))
}

/// The target's file had a stricter rule; what git could take for more than one name is looked at once more.
pub(super) fn refuse_odd_branches(branches: &[String]) -> Result<(), Failure> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/+@".contains(c);
    let part =
        |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with('.') && !part.ends_with(".lock");
    let odd = |name: &&String| !name.chars().all(plain) || name.contains("..") || !name.split('/').all(part);
    match branches.iter().find(odd) {
        Some(name) => Err(Failure::Resource(format!("{name:?} is no branch's name"))),
        None => Ok(()),
    }
}

/// How a remote is reached.
#[derive(Debug, PartialEq, Eq)]
enum Server<'a> {
    Path,
    /// Scheme and authority.
    Http(&'a str),
    Ssh,
}

/// The target's file had the same rule; what reaches git is looked at once more.
fn server(url: &str) -> Result<Server<'_>, Failure> {
    let refused = || Failure::Resource("the repository's URL is none that may be asked".to_owned());
    if url.starts_with('/') {
        return Ok(Server::Path);
    }
    let (scheme, rest) = url.split_once("://").ok_or_else(refused)?;
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match scheme {
        _ if host.is_empty() || host.starts_with('-') || authority.starts_with('-') => Err(refused()),
        "http" | "https" if !authority.contains('@') => Ok(Server::Http(&url[..scheme.len() + 3 + authority.len()])),
        "ssh" => Ok(Server::Ssh),
        _ => Err(refused()),
    }
}

fn author(credentials: &Credentials) -> [(String, String); 4] {
    let name = credentials.variable("GIT_AUTHOR_NAME").unwrap_or("Holdfast");
    let email = credentials.variable("GIT_AUTHOR_EMAIL").unwrap_or("holdfast@localhost");
    [("AUTHOR_NAME", name), ("AUTHOR_EMAIL", email), ("COMMITTER_NAME", name), ("COMMITTER_EMAIL", email)]
        .map(|(key, value)| (format!("GIT_{key}"), value.to_owned()))
}

fn helper(server: &str, password: &str, username: Option<&str>) -> [(String, String); 4] {
    // A path to this process's own file, that stays right when the file was replaced by a newer one.
    let program = format!("/proc/{}/exe", std::process::id());
    [(HELPER, program.as_str()), (SERVER, server), (USERNAME, username.unwrap_or("git")), (PASSWORD, password)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
}

/// Asks nobody, knows only hosts that were made known, and shows only the key that it was given.
fn ssh(credentials: &Credentials) -> String {
    let mut command = "ssh -F /dev/null -o BatchMode=yes -o StrictHostKeyChecking=yes -o IdentitiesOnly=yes \
                       -o IdentityAgent=none -o ConnectTimeout=20 -o ServerAliveInterval=15"
        .to_owned();
    // As of an authority: what the set brings is all that counts, and without it the host's own list is.
    command.push_str(&match credentials.file("known_hosts") {
        Some(known) => format!(" -o GlobalKnownHostsFile=/dev/null -o UserKnownHostsFile={}", quoted(&known)),
        None => " -o UserKnownHostsFile=/dev/null".to_owned(),
    });
    match credentials.file("ssh_key") {
        Some(key) => command.push_str(&format!(" -i {}", quoted(&key))),
        // Else it would show the keys of the agent's user.
        None => command.push_str(" -o PubkeyAuthentication=no"),
    }
    command
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', "'\\''"))
}

/// The credential helper: `get` with what is asked on standard input. Everything else that git tells a helper is not for us.
pub(crate) fn credential_main(action: &str) -> ExitCode {
    let asked: BTreeMap<String, String> = std::io::stdin()
        .lock()
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| line.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())))
        .collect();
    let variable = |name| std::env::var(name).ok();
    if let (Some(server), Some(username), Some(password)) = (variable(SERVER), variable(USERNAME), variable(PASSWORD))
        && let Some(answer) = answer(action, &asked, &server, &username, &password)
    {
        // Where git is gone there is nobody to tell.
        let _ = std::io::stdout().write_all(answer.as_bytes());
    }
    ExitCode::SUCCESS
}

fn answer(
    action: &str,
    asked: &BTreeMap<String, String>,
    server: &str,
    username: &str,
    password: &str,
) -> Option<String> {
    let by = format!("{}://{}", asked.get("protocol")?, asked.get("host")?);
    let fits = |text: &str| !text.contains(['\n', '\r', '\0']);
    let tells = action == "get" && by == server && fits(username) && fits(password);
    tells.then(|| format!("username={username}\npassword={password}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(protocol: &str, host: &str) -> BTreeMap<String, String> {
        [("protocol", protocol), ("host", host)].map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }

    #[test]
    fn the_password_is_told_to_the_declared_server_alone_and_only_when_asked_for() {
        let told = |action, asked: &_| answer(action, asked, "https://git.example:8443", "deploy", "geheim");
        let right = asked("https", "git.example:8443");
        assert_eq!(told("get", &right).as_deref(), Some("username=deploy\npassword=geheim\n"));
        for (action, asked) in [
            ("store", right.clone()),
            ("erase", right),
            ("get", asked("http", "git.example:8443")),
            ("get", asked("https", "git.example")),
            ("get", asked("https", "evil.example:8443")),
            ("get", BTreeMap::new()),
        ] {
            assert_eq!(told(action, &asked), None, "{action} {asked:?}");
        }
        let right = asked("https", "a");
        assert_eq!(answer("get", &right, "https://a", "x", "two\nlines"), None);
    }

    #[test]
    fn only_what_runs_no_command_is_a_server() {
        assert_eq!(server("/srv/shop.git").unwrap(), Server::Path);
        assert_eq!(server("https://git.example:8443/a/b").unwrap(), Server::Http("https://git.example:8443"));
        assert_eq!(server("ssh://git@git.example/a").unwrap(), Server::Ssh);
        for url in [
            "ext::sh -c id",
            "--upload-pack=/bin/sh",
            "fd::7",
            "https://",
            "ssh://-oProxyCommand=id/x",
            "ssh://git@-oProxyCommand=id/x",
            "https://a:b@git.example/",
            "git@git.example:a",
            "shop.git",
            "file:///srv/shop.git",
        ] {
            assert!(server(url).is_err(), "{url}");
        }
    }

    /// A folder that goes away.
    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new() -> Self {
            let path = std::env::temp_dir().join(format!("holdfast-git-{}", uuid::Uuid::new_v4().simple()));
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn path() -> (String, String) {
        ("PATH".to_owned(), std::env::var("PATH").unwrap())
    }

    #[test]
    fn of_a_repository_where_git_runs_or_above_nothing_counts() {
        let folder = Folder::new();
        let (above, below) = (folder.0.join("above"), folder.0.join("above/below"));
        std::fs::create_dir_all(&below).unwrap();
        let git = git("/srv/shop.git", &Credentials::of([path()].into()), None).unwrap();
        let own = above.join(".git");
        git.command("init").args(["--quiet", "--bare", "--"]).args([&own]).output().unwrap();
        std::fs::write(own.join("config"), "[url \"/elsewhere\"]\ninsteadOf = /srv\n").unwrap();
        for place in [&above, &below] {
            let said =
                git.command("ls-remote").args(["--get-url", "--", "/srv/shop.git"]).folder(place).line().unwrap();
            assert_eq!(said, "/srv/shop.git", "{}", place.display());
        }
    }

    /// Asked of ssh itself.
    #[test]
    fn where_a_set_brings_its_known_hosts_no_others_count() {
        let folder = Folder::new();
        let files = |line: &str, credentials: &Credentials| {
            let output =
                std::process::Command::new("sh").args(["-c", &format!("{} -G git.example", ssh(credentials))]).output();
            let text = String::from_utf8(output.unwrap().stdout).unwrap();
            text.lines().find_map(|said| said.strip_prefix(line)).map(str::to_owned)
        };
        let folder_of_set = ("HOLDFAST_CREDENTIALS".to_owned(), folder.0.to_str().unwrap().to_owned());
        let set = Credentials::of([folder_of_set].into());
        let known = folder.0.join("known_hosts");
        let (global, user) = ("globalknownhostsfile ", "userknownhostsfile ");
        assert_eq!(files(user, &set).as_deref(), Some("/dev/null"));
        assert!(files(global, &set).is_some_and(|files| files.starts_with("/etc/ssh/ssh_known_hosts")));
        std::fs::write(&known, "git.example ssh-ed25519 AAAA\n").unwrap();
        assert_eq!(files(user, &set).as_deref(), known.to_str());
        assert_eq!(files(global, &set).as_deref(), Some("/dev/null"));
    }
}
