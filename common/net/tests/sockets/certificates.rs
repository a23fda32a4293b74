//! Certificates in a folder that goes away with its owner.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    SanType,
};

pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("holdfast-net-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a new folder");
        Self(path)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file in our own folder");
        path
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A certificate and its key as files.
pub(crate) struct Pair {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

impl Pair {
    pub(crate) fn files(&self) -> Option<(&Path, &Path)> {
        Some((&self.certificate, &self.key))
    }
}

pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pub(crate) file: PathBuf,
}

impl Authority {
    pub(crate) fn new(folder: &Folder, name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a CA");
        let file = folder.write(&format!("{name}.pem"), &issuer.pem());
        Self { issuer, file }
    }

    pub(crate) fn server(&self, folder: &Folder, dns: &str) -> Pair {
        let names = vec![SanType::DnsName(dns.try_into().unwrap()), SanType::IpAddress(Ipv4Addr::LOCALHOST.into())];
        self.sign(folder, &format!("server-{dns}"), names, ExtendedKeyUsagePurpose::ServerAuth)
    }

    pub(crate) fn client(&self, folder: &Folder, name: &str, uris: &[&str]) -> Pair {
        let names = uris.iter().map(|uri| SanType::URI((*uri).try_into().unwrap())).collect();
        self.sign(folder, name, names, ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// A certificate in PEM of exactly that.
    pub(crate) fn signed(&self, params: &CertificateParams, key: &KeyPair) -> String {
        params.signed_by(key, &self.issuer).expect("a certificate").pem()
    }

    fn sign(&self, folder: &Folder, name: &str, names: Vec<SanType>, usage: ExtendedKeyUsagePurpose) -> Pair {
        let mut params = CertificateParams::default();
        params.subject_alt_names = names;
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Pair {
            certificate: folder.write(&format!("{name}.pem"), &certificate.pem()),
            key: folder.write(&format!("{name}.key"), &key.serialize_pem()),
        }
    }
}
