//! Reading PEM files, with errors that name the file.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::Error;

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
