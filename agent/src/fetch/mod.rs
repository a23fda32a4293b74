//! Brings an archive to the host before its step asks for a permit.
//!
//! ```text
//! https://… ─┐                                   ┌─ link ─▶ attempts/<attempt>/archives/<sha256>
//!            ├─▶ archives/<sha256>.part ─▶ archives/<sha256>
//! coordinator┘     goes on after a cut      its digest is right; the oldest go when there are too many
//! ```
//!
//! What an archive is, its digest alone says; where it came from proves nothing. A fetch is bounded in size and time, goes on
//! where it was cut, and holds no credentials: URLs with any are refused, redirects lead to https only. A link keeps an archive
//! for its attempt whatever the cache does. Nothing here changes a resource.

mod https;
mod part;
mod session;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use holdfast_common::archive::ArchiveSource;
use holdfast_common::claim::Claim;
use holdfast_common::id::{AttemptId, StepName};
use holdfast_net::backoff::Backoff;
use holdfast_net::channel::Addresses;
use holdfast_net::tls::ClientTls;
use tokio::runtime::Handle;

use crate::config::{Config, Fetch};
use crate::durable;
use crate::places::Places;
use part::Part;

/// Why an archive is not here.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another try would find the same.
    #[error("could not fetch the archive: {0}")]
    Final(String),
    /// It did not come in time.
    #[error("could not fetch the archive within {} s: {last}", within.as_secs())]
    Late {
        /// The bound.
        within: Duration,
        /// What went wrong last.
        last: String,
    },
    /// This host's disk.
    #[error("could not keep the archive on this host")]
    Disk(#[from] io::Error),
}

impl Error {
    /// Whether another try would find the same.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Error::Final(_) => true,
            Error::Late { .. } | Error::Disk(_) => false,
        }
    }
}

/// What came of one try.
#[derive(Debug)]
enum Trouble {
    /// Another try would find the same.
    Final(String),
    /// It may go better.
    Passing(String),
    Disk(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Disk(error)
    }
}

/// Fetches. Its calls block.
#[derive(Debug)]
pub struct Fetcher {
    places: Places,
    config: Fetch,
    addresses: Addresses,
    tls: ClientTls,
    runtime: Handle,
}

impl Fetcher {
    /// On that runtime, which must not be the session's.
    #[must_use]
    pub fn new(config: &Config, tls: &ClientTls, places: Places, runtime: Handle) -> Self {
        Self {
            places,
            config: config.fetch.clone(),
            addresses: config.coordinator.address.clone(),
            tls: tls.clone(),
            runtime,
        }
    }

    /// Where the archive of an attempt's step is, or will be once [`Self::bring`] has brought it.
    #[must_use]
    pub fn path(places: &Places, attempt: AttemptId, archive: &str, sha256: &str) -> PathBuf {
        match ArchiveSource::of(archive) {
            Ok(ArchiveSource::Https(_) | ArchiveSource::Upload(_)) => places.archives_of(attempt).join(sha256),
            // What is no source was refused by the coordinator; here it is a file that is not there.
            Ok(ArchiveSource::Host(_)) | Err(_) => places.work(attempt).join(archive),
        }
    }

    /// Brings the archive into the attempt's folder, if it is not a file of the host's.
    pub fn bring(&self, claim: Claim, step: &StepName, archive: &str, sha256: &str) -> Result<(), Error> {
        let source = ArchiveSource::of(archive).map_err(|why| Error::Final(why.to_string()))?;
        if matches!(source, ArchiveSource::Host(_)) {
            return Ok(());
        }
        self.places.make_attempt(claim.attempt)?;
        let folder = self.places.archives_of(claim.attempt);
        durable::ensure_dir(&folder)?;
        let wanted = folder.join(sha256);
        let whole = self.places.archives().join(sha256);
        let end = Instant::now() + Duration::from(self.config.timeout.0);
        while !wanted.exists() {
            if !whole.exists() {
                self.fill(claim, step, source, sha256, end)?;
            }
            match fs::hard_link(&whole, &wanted) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // The cache has let it go in between.
                Err(error) if error.kind() == io::ErrorKind::NotFound && Instant::now() < end => {}
                Err(error) => return Err(error.into()),
            }
        }
        let _only_its_age = fs::File::open(&wanted).and_then(|file| file.set_modified(SystemTime::now()));
        self.tidy();
        Ok(())
    }

    /// The attempt needs it no more.
    pub fn drop_link(&self, attempt: AttemptId, sha256: &str) {
        let _may_never_have_been = fs::remove_file(self.places.archives_of(attempt).join(sha256));
    }

    /// What was fetched is not what its digest says, after all: nobody shall use it.
    pub fn distrust(&self, attempt: AttemptId, sha256: &str) {
        self.drop_link(attempt, sha256);
        let _may_be_gone = fs::remove_file(self.places.archives().join(sha256));
    }

    /// Tries until it is there, or can't come, or time is up.
    fn fill(
        &self,
        claim: Claim,
        step: &StepName,
        source: ArchiveSource<'_>,
        sha256: &str,
        end: Instant,
    ) -> Result<(), Error> {
        let Some(mut part) = Part::open(&self.places.archives(), sha256, self.config.max_bytes)? else { return Ok(()) };
        let mut backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(15), rand::random());
        loop {
            let before = part.length();
            let last = match self.once(claim, step, source, &mut part, end) {
                Ok(()) => return part.finish().map_err(|trouble| self.told(trouble)),
                Err(Trouble::Passing(last)) => last,
                Err(trouble) => return Err(self.told(trouble)),
            };
            tracing::debug!(last, "an archive did not come whole");
            if part.length() > before {
                backoff.reset();
            }
            let pause = backoff.next();
            if Instant::now() + pause >= end {
                return Err(Error::Late { within: self.config.timeout.0.into(), last });
            }
            std::thread::sleep(pause);
        }
    }

    fn once(
        &self,
        claim: Claim,
        step: &StepName,
        source: ArchiveSource<'_>,
        part: &mut Part,
        end: Instant,
    ) -> Result<(), Trouble> {
        self.runtime.block_on(async {
            let fetched = tokio::time::timeout_at(end.into(), async {
                match source {
                    ArchiveSource::Https(url) => https::fetch(&self.config, url, part).await,
                    ArchiveSource::Upload(_) => session::fetch(&self.addresses, &self.tls, claim, step, part).await,
                    ArchiveSource::Host(_) => Ok(()),
                }
            });
            fetched.await.unwrap_or_else(|_| Err(Trouble::Passing("time is up".to_owned())))
        })
    }

    fn told(&self, trouble: Trouble) -> Error {
        match trouble {
            Trouble::Final(why) => Error::Final(why),
            Trouble::Passing(last) => Error::Late { within: self.config.timeout.0.into(), last },
            Trouble::Disk(error) => Error::Disk(error),
        }
    }

    /// The oldest go until the rest fits. Links keep what attempts need.
    fn tidy(&self) {
        if let Err(error) = part::evict(&self.places.archives(), self.config.cache_bytes) {
            tracing::warn!(%error, "could not make room among fetched archives");
        }
    }
}
