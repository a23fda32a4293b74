//! What a look needs of its host: its places, and every secret that is to be taken out of what it says.

use super::Bench;
use crate::places::Places;
use crate::secrets::{self, Redactor, Sources};

/// What a look needs of its host.
#[derive(Debug)]
pub(crate) struct Desk<'a> {
    pub(crate) places: &'a Places,
    pub(crate) redactor: Redactor,
}

impl Bench {
    pub(super) fn desk(&self) -> Result<Desk<'_>, String> {
        Ok(Desk { places: &self.places, redactor: self.redactor()? })
    }

    /// Takes every secret of this host out of a text.
    fn redactor(&self) -> Result<Redactor, String> {
        let read = self.all_sources()?.iter().map(Sources::read).collect::<Result<Vec<_>, _>>();
        Ok(Redactor::of(&read.map_err(|error| error.to_string())?))
    }

    /// Every set of this host: a command may come by what is not its own.
    pub(super) fn all_sources(&self) -> Result<Vec<Sources>, String> {
        let sets = self.host.credentials().flat_map(|sets| sets.named().map(|(_, set)| set.clone()));
        let all = sets.map(|set| secrets::sources(&set)).collect::<Result<Vec<_>, _>>()?;
        Ok(all.into_iter().filter(|sources| !sources.is_empty()).collect())
    }
}
