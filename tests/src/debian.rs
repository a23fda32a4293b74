//! A small Debian in a folder, to install packages into. Made once by debootstrap and kept packed below `target`; every command
//! in it has mounts of its own, so none is left behind.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::fs::{FlockOperation, flock};

use crate::folder::Folder;
use crate::process::{Launch, Process, without_holdfast};

const MIRROR: &str = "http://deb.debian.org/debian";

/// Whether packages can be installed here.
#[must_use]
pub fn can_be_made() -> bool {
    rustix::process::geteuid().is_root()
}

/// What a command in it came to.
#[derive(Clone, Debug)]
pub struct Said {
    /// Whether it ended with 0.
    pub done: bool,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Said {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { done: output.status.success(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Both.
    #[must_use]
    pub fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }
}

/// It.
#[derive(Debug)]
pub struct Debian {
    folder: Folder,
    root: PathBuf,
    environment: BTreeMap<String, String>,
}

impl Debian {
    /// A fresh one, of the release that this machine has. `cache` is where the packed one is kept.
    #[must_use]
    pub fn new(cache: &Path) -> Self {
        let packed = packed(cache);
        let folder = Folder::new();
        let root = folder.join("debian");
        fs::create_dir(&root).expect("a folder of the test's own");
        done(Command::new("tar").arg("-xf").arg(&packed).arg("-C").arg(&root));
        let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
        let environment =
            [("PATH", path), ("HOME", "/root"), ("DEBIAN_FRONTEND", "noninteractive"), ("LC_ALL", "C.UTF-8")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let debian = Self { folder, root, environment };
        debian.starts(false);
        fs::write(debian.at("/etc/hosts"), "127.0.0.1 localhost\n").expect("its root can be written");
        debian
    }

    /// A file in it, as this machine sees it.
    #[must_use]
    pub fn at(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// Its root.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What commands in it find in their environment from now on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.environment.insert(name.to_owned(), value.to_owned());
    }

    /// Whether packages may start and stop services, by its `policy-rc.d`.
    pub fn starts(&self, may: bool) {
        let code = if may { 0 } else { 101 };
        self.script("/usr/sbin/policy-rc.d", &format!("#!/bin/sh\nexit {code}\n"));
    }

    /// Writes a program into it.
    pub fn script(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::write(&path, text).expect("its root can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }

    /// Runs a command in it to its end.
    #[must_use]
    pub fn run(&self, words: &[&str]) -> Said {
        let mut command = Command::new("unshare");
        command.args(self.apart()).args(words);
        without_holdfast(&mut command);
        command.env_clear().envs(&self.environment).current_dir("/");
        Said::of(&command.output().expect("unshare is there"))
    }

    /// The same, which must end with 0. Answers its standard output.
    pub fn expect(&self, words: &[&str]) -> String {
        let said = self.run(words);
        assert!(said.done, "{words:?}: {}", said.all());
        said.out
    }

    /// Starts a service in it.
    #[must_use]
    pub fn start(&self, name: &str, program: &str, words: &[&str]) -> Process {
        let wrapper = ["env", "-i"].map(str::to_owned).into_iter();
        let environment = self.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let apart = ["unshare".to_owned()].into_iter().chain(self.apart());
        Process::start(&Launch {
            name: name.to_owned(),
            wrapper: wrapper.chain(environment).chain(apart).collect(),
            program: program.into(),
            arguments: words.iter().map(|word| (*word).to_owned()).collect(),
            environment: BTreeMap::new(),
            folder: self.folder.path().to_owned(),
            log: self.folder.join(&format!("{name}.log")),
        })
    }

    /// Its root, a `/proc`, and nothing that stays mounted.
    fn apart(&self) -> [String; 4] {
        let root = format!("--root={}", self.root.display());
        ["--mount".to_owned(), "--mount-proc=/proc".to_owned(), root, "--".to_owned()]
    }
}

/// The packed one, which is made if it is not there.
fn packed(cache: &Path) -> PathBuf {
    fs::create_dir_all(cache).expect("a folder below target");
    let lock = fs::File::create(cache.join("lock")).expect("a file of our own");
    flock(&lock, FlockOperation::LockExclusive).expect("nobody keeps it for long");
    let release = fs::read_to_string("/etc/os-release").expect("this is a Debian");
    let release = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME=")).expect("a released one");
    let packed = cache.join(format!("{release}.tar"));
    if packed.exists() {
        return packed;
    }
    let new = cache.join(format!("{release}.new"));
    // In mounts of its own: whatever becomes of it, nothing of it stays mounted here. In memory, where no sync takes its time.
    let script = "mount -t tmpfs tmpfs \"$1\" && debootstrap --variant=minbase \"$2\" \"$1\" \"$3\" &&
        rm -rf \"$1\"/var/cache/apt/* \"$1\"/var/lib/apt/lists/* && tar -cf \"$4\" -C \"$1\" .";
    let (root, apart) = (Folder::new(), ["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh"]);
    done(Command::new("unshare").args(apart).arg(root.path()).args([release, MIRROR]).arg(&new));
    fs::rename(&new, &packed).expect("both are in one folder");
    packed
}

/// Runs it, and it must end with 0.
pub fn done(command: &mut Command) -> String {
    let output =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; ./test installs what is needed"));
    let said = Said::of(&output);
    assert!(said.done, "{command:?}: {}", said.all());
    said.out
}
