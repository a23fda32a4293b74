//! The contexts of the configuration file: listed, written, chosen, removed.
//!
//! What a person wrote into the file besides stays as it is. Every file that is written is its owner's alone (0600), and
//! is there whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use holdfast_common::code::Code;
use holdfast_common::problem::Problem;
use toml_edit::{DocumentMut, Item, Table, value};

use super::file::{Context, File, TokenPlace};
use super::{Connection, Environment, Token};
use crate::failure::Failure;

/// Longest name of a context.
const MAX_NAME: usize = 64;

/// The configuration file and where it is.
#[derive(Debug)]
pub struct Contexts {
    path: PathBuf,
    file: File,
}

/// What is known of a context without asking anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub name: String,
    /// Whether it is taken where none is named.
    pub current: bool,
    /// Where its coordinator is.
    pub address: String,
    /// The CA that signs the coordinator's certificate.
    pub ca: PathBuf,
    /// What the certificate must be valid for, where that is not the host.
    pub server_name: Option<String>,
    /// Where its token is, for people.
    pub token: String,
}

/// A context to write.
#[derive(Clone, Debug)]
pub struct New<'a> {
    /// Its name.
    pub name: &'a str,
    /// Where its coordinator is.
    pub address: &'a str,
    /// The CA, PEM.
    pub ca: &'a str,
    /// What the certificate must be valid for, where that is not the host.
    pub server_name: Option<&'a str>,
    /// The operator's token.
    pub token: &'a Token,
}

impl Contexts {
    /// Of this operator. A file that is not there has none.
    pub fn of(environment: &Environment) -> Result<Self, Failure> {
        let path = environment.config_file().ok_or_else(|| {
            Problem::new(Code::Config, "there is no home folder to keep contexts in")
                .so("nothing was written")
                .next("set HOME or XDG_CONFIG_HOME")
        })?;
        Ok(Self { file: File::read(Some(&path))?, path })
    }

    /// The configuration file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All of them, by name.
    #[must_use]
    pub fn all(&self) -> Vec<About> {
        self.file.context.iter().map(|(name, context)| self.about(name, context)).collect()
    }

    /// The one of that name, if there is one.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<About> {
        self.file.context.get(name).map(|context| self.about(name, context))
    }

    /// The one of that name, or a refusal that names those there are.
    pub fn named(&self, name: &str) -> Result<About, Failure> {
        self.file.named(name).map(|context| self.about(name, &context))
    }

    /// The name that is chosen by `--context`, else by `HOLDFAST_CONTEXT`, else by the file.
    #[must_use]
    pub fn chosen(&self, options: &Connection, environment: &Environment) -> Option<String> {
        let given = options.context.clone().or_else(|| environment.text("HOLDFAST_CONTEXT"));
        given.or_else(|| self.file.current.clone())
    }

    fn about(&self, name: &str, context: &Context) -> About {
        About {
            name: name.to_owned(),
            current: self.file.current.as_deref() == Some(name),
            address: context.address.clone(),
            ca: context.ca.clone(),
            server_name: context.server_name.clone(),
            token: match context.token_place() {
                TokenPlace::Here => "in the configuration file".to_owned(),
                TokenPlace::File(path) => path.display().to_string(),
                TokenPlace::Nowhere => "none".to_owned(),
            },
        }
    }

    /// Writes a context, its CA and its token, and makes it the current one.
    pub fn save(&self, new: &New<'_>) -> Result<(), Failure> {
        sound_name(new.name)?;
        let (ca, token) = (ca_name(new.name), token_name(new.name));
        self.write(&ca, new.ca)?;
        self.write(&token, &format!("{}\n", new.token.reveal()))?;
        self.edit(|document| {
            document["current"] = value(new.name);
            let contexts = document.entry("context").or_insert_with(empty);
            let mut table = Table::new();
            table["address"] = value(new.address);
            table["ca"] = value(&ca);
            if let Some(name) = new.server_name {
                table["server_name"] = value(name);
            }
            table["token_file"] = value(&token);
            contexts[new.name] = Item::Table(table);
        })
    }

    /// Makes it the current one.
    pub fn choose(&self, name: &str) -> Result<About, Failure> {
        let about = self.named(name)?;
        self.edit(|document| document["current"] = value(name))?;
        Ok(About { current: true, ..about })
    }

    /// Takes it out, with the files that [`Contexts::save`] wrote for it. Other files that it names stay.
    pub fn remove(&self, name: &str) -> Result<About, Failure> {
        let about = self.named(name)?;
        self.edit(|document| {
            if let Some(contexts) = document.get_mut("context").and_then(Item::as_table_like_mut) {
                contexts.remove(name);
            }
            if about.current {
                document.remove("current");
            }
        })?;
        for own in [ca_name(name), token_name(name)] {
            let path = self.folder().join(own);
            let named = path == about.ca || path.display().to_string() == about.token;
            match fs::remove_file(&path) {
                Err(error) if named && error.kind() != io::ErrorKind::NotFound => return Err(unwritten(&path, &error)),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(about)
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    fn edit(&self, change: impl FnOnce(&mut DocumentMut)) -> Result<(), Failure> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(unwritten(&self.path, &error)),
        };
        let mut document: DocumentMut = text.parse().map_err(|_| {
            Problem::new(Code::Config, format!("{} is no TOML any more", self.path.display())).so("nothing was written")
        })?;
        change(&mut document);
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.write(&name, &document.to_string())
    }

    fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let path = self.folder().join(name);
        whole(self.folder(), &path, text).map_err(|error| unwritten(&path, &error))
    }
}

fn empty() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn ca_name(context: &str) -> String {
    format!("{context}.ca.pem")
}

fn token_name(context: &str) -> String {
    format!("{context}.token")
}

/// Two files are called by it, so it must be a name of one.
fn sound_name(name: &str) -> Result<(), Failure> {
    let fits = (1..=MAX_NAME).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if fits {
        return Ok(());
    }
    Err(Problem::new(Code::InvalidValue, format!("{name:?} can't be the name of a context"))
        .known(format!("it has 1 to {MAX_NAME} letters, digits, . _ and -, and starts with a letter or digit"))
        .so("nothing was written")
        .next("--context NAME")
        .into())
}

fn whole(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Problem::new(Code::Config, format!("could not write {}: {error}", path.display())).into()
}
