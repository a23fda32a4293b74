//! Reading PEM files, with errors that name the file.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::Error;
use crate::peer::Validity;

/// A certificate chain and its key, with the files they came from.
pub(super) struct Pair {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    certificate_file: PathBuf,
    key_file: PathBuf,
}

impl Pair {
    pub(super) fn read(certificate: &Path, key: &Path) -> Result<Self, Error> {
        Ok(Self {
            chain: certificates("certificate", certificate)?,
            key: private_key(key)?,
            certificate_file: certificate.to_owned(),
            key_file: key.to_owned(),
        })
    }

    /// The certificate's life has begun and is not over.
    pub(super) fn must_be_good_now(&self) -> Result<(), Error> {
        must_be_good_now(&self.chain, &self.certificate_file)
    }

    /// How long the certificate is good; `None` where it can't be read.
    pub(super) fn validity(&self) -> Option<Validity> {
        self.chain.first().and_then(|certificate| Validity::of(certificate))
    }

    /// Hands the pair to a rustls builder and names its files if that fails.
    pub(super) fn give<C>(
        self,
        build: impl FnOnce(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) -> Result<C, rustls::Error>,
    ) -> Result<C, Error> {
        let (certificate, key) = (self.certificate_file, self.key_file);
        build(self.chain, self.key).map_err(|source| {
            if matches!(source, rustls::Error::InconsistentKeys(_)) {
                Error::Mismatch { certificate, key }
            } else {
                Error::Pair { certificate, key, source }
            }
        })
    }
}

/// The authorities of a file, all of which are trusted.
pub(super) fn authorities(file: &Path) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("CA certificate", file)? {
        roots.add(certificate).map_err(|source| Error::Authority { file: file.to_owned(), source })?;
    }
    Ok(roots)
}

/// The authorities of several files, all of which are trusted. Files that are not there yet are left out, but not all of them.
pub(super) fn authorities_of(files: &[PathBuf]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let mut missing = None;
    for file in files {
        match authorities(file) {
            Ok(found) => roots.extend(found.roots),
            Err(Error::Read { source, what, file }) if source.kind() == std::io::ErrorKind::NotFound => {
                missing = Some(Error::Read { source, what, file });
            }
            Err(error) => return Err(error),
        }
    }
    missing.filter(|_| roots.is_empty()).map_or(Ok(roots), Err)
}

/// The life of the first certificate has begun and is not over, by this machine's clock.
pub(super) fn must_be_good_now(chain: &[CertificateDer<'static>], file: &Path) -> Result<(), Error> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_micros();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    match chain.first().and_then(|certificate| Validity::of(certificate)) {
        Some(validity) if now > validity.until.0 => Err(Error::Expired { file: file.to_owned() }),
        Some(validity) if now < validity.from.0 => Err(Error::NotYet { file: file.to_owned() }),
        Some(_) | None => Ok(()),
    }
}

fn certificates(what: &'static str, file: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let text = read(what, file)?;
    let found: Vec<_> =
        CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>().map_err(|source| bad(what, file, source))?;
    if found.is_empty() {
        return Err(Error::Nothing { what, file: file.to_owned() });
    }
    Ok(found)
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    const WHAT: &str = "private key";
    PrivateKeyDer::from_pem_slice(&read(WHAT, file)?).map_err(|source| bad(WHAT, file, source))
}

fn read(what: &'static str, file: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(file).map_err(|source| Error::Read { what, file: file.to_owned(), source })
}

fn bad(what: &'static str, file: &Path, source: pem::Error) -> Error {
    if matches!(source, pem::Error::NoItemsFound) {
        Error::Nothing { what, file: file.to_owned() }
    } else {
        Error::Pem { what, file: file.to_owned(), source }
    }
}
