//! TLS to the server: its certificate and its name are verified, always. It may be shown one of ours.
//!
//! A file that is not what it should be is never quoted: it may hold a key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::adapters::system::Failure;

/// How it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tls {
    pub(super) roots: Roots,
    /// Shown to a server that asks for it.
    pub(super) client: Option<Client>,
}

/// PEM files that prove who connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// Whom to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Roots {
    /// Whom this machine trusts.
    Machine,
    /// The certificates in a PEM file.
    File(PathBuf),
}

pub(super) fn connector(tls: &Tls) -> Result<MakeRustlsConnect, Failure> {
    let store = match &tls.roots {
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
    let builder = builder.with_root_certificates(store);
    let config = match &tls.client {
        None => builder.with_no_client_auth(),
        Some(Client { certificate, key }) => builder
            .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
            .map_err(|error| unfit(certificate, &error.to_string()))?,
    };
    Ok(MakeRustlsConnect::new(config))
}

/// One that can't be read is one that is not trusted.
fn of_machine() -> RootCertStore {
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    store
}

fn of_file(path: &Path) -> Result<RootCertStore, Failure> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(path)? {
        store.add(certificate).map_err(|error| unfit(path, &error.to_string()))?;
    }
    Ok(store)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read.map_err(|error| unread(path, &error, "certificate"))? {
        none if none.is_empty() => Err(unread(path, &pem::Error::NoItemsFound, "certificate")),
        certificates => Ok(certificates),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Failure> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| unread(path, &error, "private key"))
}

fn unread(path: &Path, error: &pem::Error, what: &str) -> Failure {
    match error {
        pem::Error::Io(error) => unfit(path, &error.to_string()),
        _ => unfit(path, &format!("it holds no {what}, as PEM")),
    }
}

fn unfit(path: &Path, why: &str) -> Failure {
    Failure::Resource(format!("could not use {}: {why}", path.display()))
}
