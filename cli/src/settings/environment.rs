use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// The variables of a process. A value of its own, so that commands can be called with another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// Of this process.
    #[must_use]
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// What `name` is set to, unless that is empty or no text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.raw(name)?.clone().into_string().ok()
    }

    /// What a person should know who keeps contexts while variables are set: commands go where those say.
    #[must_use]
    pub fn comes_before_contexts(&self) -> Option<String> {
        const VARIABLES: [&str; 6] = [
            "HOLDFAST_ADDRESS",
            "HOLDFAST_CONTEXT",
            "HOLDFAST_CA",
            "HOLDFAST_SERVER_NAME",
            "HOLDFAST_TOKEN",
            "HOLDFAST_TOKEN_FILE",
        ];
        let set: Vec<&str> = VARIABLES.into_iter().filter(|name| self.raw(name).is_some()).collect();
        (!set.is_empty()).then(|| {
            let names = set.join(", ");
            format!("note: set here and taken before the current context: {names}; --context NAME is taken whole")
        })
    }

    /// Where the operator's configuration is looked for; none where there is no home.
    #[must_use]
    pub fn config_file(&self) -> Option<PathBuf> {
        let configs = self
            .raw("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| self.raw("HOME").map(|home| PathBuf::from(home).join(".config")))?;
        Some(configs.join("holdfast").join("config.toml"))
    }

    fn raw(&self, name: &str) -> Option<&OsString> {
        self.0.get(std::ffi::OsStr::new(name)).filter(|value| !value.is_empty())
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}
