//! A resource that commands change: read by its inspection command, where it has one.

use super::{Trial, Verdict, never};
use crate::config::Config;
use crate::hands::{Desk, outside_leases, read_command};
use crate::places::Places;
use crate::policy::Grant;

impl Trial {
    pub(super) fn command(&mut self, config: &Config, inspect: Option<&[String]>, grant: &Grant) {
        let what = "it can be read";
        let Some(argv) = inspect else {
            return self.found(what, Verdict::Gap, "its target declares no inspection command".to_owned());
        };
        let (places, operation) = (Places::below(&config.state_dir), never());
        let environment = outside_leases(&self.target, &operation, None);
        let folder = places.state().to_owned();
        let read = desk(&places, grant).and_then(|desk| read_command(&desk, argv, environment, folder, grant));
        match read {
            Ok(revision) => self.found(what, Verdict::Shown, format!("its revision is {revision}")),
            Err(why) => self.found(what, Verdict::False, why),
        }
    }
}

/// With what is to be kept out of what is shown.
pub(super) fn desk<'a>(places: &'a Places, grant: &Grant) -> Result<Desk<'a>, String> {
    let sets = grant.credentials.named();
    let read = sets.iter().map(|(_, set)| {
        crate::secrets::sources(set).and_then(|sources| sources.read().map_err(|error| error.to_string()))
    });
    let secrets: Vec<_> = read.collect::<Result<_, _>>()?;
    Ok(Desk { places, redactor: crate::secrets::Redactor::of(&secrets) })
}
