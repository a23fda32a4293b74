//! TLS to the server: its certificate and its name are verified, always.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::adapters::system::Failure;

/// Whom to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Roots {
    /// Whom this machine trusts.
    Machine,
    /// The certificates in a PEM file.
    File(PathBuf),
}

pub(super) fn connector(roots: &Roots) -> Result<MakeRustlsConnect, Failure> {
    let store = match roots {
        Roots::Machine => of_machine(),
        Roots::File(path) => of_file(path)?,
    };
    if store.is_empty() {
        return Err(Failure::Resource(
            "there is no certificate to trust: PGSSLROOTCERT names a file with some".to_owned(),
        ));
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().expect("the provider has what it brings");
    Ok(MakeRustlsConnect::new(builder.with_root_certificates(store).with_no_client_auth()))
}

/// One that can't be read is one that is not trusted.
fn of_machine() -> RootCertStore {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    store
}

fn of_file(path: &Path) -> Result<RootCertStore, Failure> {
    let unfit = |why: String| Failure::Resource(format!("could not use {}: {why}", path.display()));
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unfit(error.to_string()))? {
        let certificate = certificate.map_err(|error| unfit(error.to_string()))?;
        store.add(certificate).map_err(|error| unfit(error.to_string()))?;
    }
    Ok(store)
}
