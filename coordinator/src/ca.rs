//! The coordinator's own authority: two files, and what is signed with them.
//!
//! ```text
//! ca.pem   the certificates that are trusted, the newest first
//! ca.key   the key that signs: that of one of them                      0600, never sent, never shown
//! ```
//!
//! A rotation puts the new certificate before the old ones, then the new key in the place of the old one. Whatever
//! happens between the two, the key belongs to a certificate of the file, and what either signed is trusted.
//!
//! Nothing of a request is taken over but its public key: the name, the purpose and the life are the coordinator's own.

use std::fs;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_common::id::AgentName;
use holdfast_common::spec::hex;
use holdfast_common::time::{Millis, Wall};
use holdfast_net::peer::AGENT_URI_PREFIX;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateSigningRequestDer};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::store::Digest;

/// How far the start of a certificate lies back, for hosts whose clocks are a little behind.
pub const BACKDATE: Millis = Millis::from_secs(10 * 60);

/// How long an authority is good for.
const AUTHORITY_LIFE: Millis = Millis::from_secs(10 * 365 * 86_400);

/// Requests for certificates are a few hundred bytes.
const LARGEST_REQUEST: usize = 16 * 1024;

/// Why something could not be signed, or the authority not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file can't be read.
    #[error("could not read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file can't be written.
    #[error("could not write {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file with something else in it.
    #[error("could not use {}: {why}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// There is an authority already.
    #[error("there is an authority already: {}", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// There is none.
    #[error("there is no authority: {} is missing", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The library refused.
    #[error("could not make a certificate: {0}")]
    Make(#[source] rcgen::Error),
    /// A request that can't be used.
    #[error("the request for a certificate can't be used: {0}")]
    Request(String),
    /// A name that no certificate can have.
    #[error("{0:?} is neither a DNS name nor an IP address")]
    Host(String),
}

/// Where the authority is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The trusted certificates, PEM.
    pub certificates: PathBuf,
    /// The key, PEM.
    pub key: PathBuf,
}

/// An authority that can sign.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    trusted: Vec<CertificateDer<'static>>,
}

/// A certificate that was signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// DER.
    pub certificate: CertificateDer<'static>,
    /// SHA-256 of it, lower-case hex.
    pub fingerprint: String,
    /// Its end.
    pub expires_at: Wall,
}

/// A public key that somebody has shown to have the private one of.
pub struct Request {
    key: rcgen::PublicKey,
}

impl Request {
    /// A PKCS #10 request, DER. Its signature is checked; of the rest only the key counts.
    pub fn read(der: &[u8]) -> Result<Self, Error> {
        if der.len() > LARGEST_REQUEST {
            return Err(Error::Request(format!("it has {} bytes", der.len())));
        }
        let request = CertificateSigningRequestParams::from_der(&CertificateSigningRequestDer::from(der));
        let key = request.map_err(|error| Error::Request(error.to_string()))?.public_key;
        let kind = key.algorithm();
        let taken = [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519];
        if taken.contains(&kind) {
            Ok(Self { key })
        } else {
            Err(Error::Request("its key is of a kind that is not taken".to_owned()))
        }
    }

    /// By which the key is known again.
    #[must_use]
    pub fn key(&self) -> Digest {
        Digest::of_bytes(self.key.der_bytes())
    }
}

impl Files {
    /// The authority, as it is now; `None` where there is no key to sign with.
    pub fn read(&self) -> Result<Option<Authority>, Error> {
        let key = match fs::read_to_string(&self.key) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Read { path: self.key.clone(), source }),
        };
        let bad = |error: rcgen::Error| Error::Content { path: self.key.clone(), why: error.to_string() };
        let key = KeyPair::from_pem(&key).map_err(bad)?;
        let trusted = self.trusted()?;
        let own = trusted.iter().find(|certificate| has_key(certificate, &key)).cloned();
        let certificate = own.ok_or_else(|| Error::Content {
            path: self.certificates.clone(),
            why: format!("none of its certificates is that of {}", self.key.display()),
        })?;
        let issuer = Issuer::from_ca_cert_der(&certificate, key).map_err(Error::Make)?;
        Ok(Some(Authority { issuer, certificate, trusted }))
    }

    /// The certificates that are trusted, the newest first.
    pub fn trusted(&self) -> Result<Vec<CertificateDer<'static>>, Error> {
        let path = &self.certificates;
        let text = fs::read(path).map_err(|source| Error::Read { path: path.clone(), source })?;
        CertificateDer::pem_slice_iter(&text)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| Error::Content { path: path.clone(), why: error.to_string() })
    }

    /// Makes the first authority. Nothing that is there is replaced.
    pub fn create(&self, now: Wall) -> Result<Authority, Error> {
        for path in [&self.key, &self.certificates] {
            if path.exists() {
                return Err(Error::Exists { path: path.clone() });
            }
        }
        self.put(Vec::new(), now)
    }

    /// Makes a new authority. What the old ones signed stays trusted until they end themselves.
    pub fn rotate(&self, now: Wall) -> Result<Authority, Error> {
        let Authority { trusted, .. } = self.read()?.ok_or_else(|| Error::Missing { path: self.key.clone() })?;
        self.put(trusted.into_iter().filter(|certificate| end(certificate) > Some(now)).collect(), now)
    }

    fn put(&self, older: Vec<CertificateDer<'static>>, now: Wall) -> Result<Authority, Error> {
        let new = authority(&name(now), AUTHORITY_LIFE, now)?;
        let older = older.iter().map(pem_of);
        let bundle: String = std::iter::once(new.pem()).chain(older).collect();
        write_private(&self.certificates, &bundle)?;
        write_private(&self.key, &new.key().serialize_pem())?;
        self.read()?.ok_or_else(|| Error::Missing { path: self.key.clone() })
    }
}

impl Authority {
    /// The certificate that signs, DER.
    #[must_use]
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Every certificate that is trusted, the newest first.
    #[must_use]
    pub fn trusted(&self) -> &[CertificateDer<'static>] {
        &self.trusted
    }

    /// A certificate for an agent: for clients only, with its name as the one URI.
    pub fn agent(&self, name: &AgentName, request: &Request, life: Millis, now: Wall) -> Result<Signed, Error> {
        let mut params = leaf(name.as_str(), ExtendedKeyUsagePurpose::ClientAuth, self.within(life, now), now);
        params.subject_alt_names = vec![agent_uri(name)?];
        self.sign(params, &request.key)
    }

    /// A certificate and a key for the coordinator itself, under these names and addresses.
    pub fn server(&self, hosts: &[String], life: Millis, now: Wall) -> Result<(Signed, KeyPair), Error> {
        let first = hosts.first().map_or("holdfast", String::as_str);
        let mut params = leaf(first, ExtendedKeyUsagePurpose::ServerAuth, self.within(life, now), now);
        params.subject_alt_names = hosts.iter().map(|host| host_name(host)).collect::<Result<_, _>>()?;
        let key = KeyPair::generate().map_err(Error::Make)?;
        Ok((self.sign(params, &key)?, key))
    }

    fn sign(&self, params: CertificateParams, key: &impl PublicKeyData) -> Result<Signed, Error> {
        let certificate = params.signed_by(key, &self.issuer).map_err(Error::Make)?.der().clone();
        let fingerprint = fingerprint(&certificate);
        let expires_at = end(&certificate).unwrap_or(Wall(0));
        Ok(Signed { certificate, fingerprint, expires_at })
    }

    /// Nothing outlives who signed it.
    fn within(&self, life: Millis, now: Wall) -> Millis {
        let left = end(&self.certificate).unwrap_or(Wall(0)).0.saturating_sub(now.0);
        life.min(Millis(u64::try_from(left / 1000).unwrap_or_default()))
    }
}

/// A new authority with a key of its own, good from now on.
pub fn authority(name: &str, life: Millis, now: Wall) -> Result<CertifiedIssuer<'static, KeyPair>, Error> {
    let mut params = named(name, life, now);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    CertifiedIssuer::self_signed(params, KeyPair::generate().map_err(Error::Make)?).map_err(Error::Make)
}

/// What a certificate says that is no authority, but its names.
#[must_use]
pub fn leaf(name: &str, usage: ExtendedKeyUsagePurpose, life: Millis, now: Wall) -> CertificateParams {
    let mut params = named(name, life, now);
    params.is_ca = IsCa::ExplicitNoCa;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    params
}

/// The one name by which an agent is known.
pub fn agent_uri(name: &AgentName) -> Result<SanType, Error> {
    let uri = format!("{AGENT_URI_PREFIX}{name}");
    uri.as_str().try_into().map(SanType::URI).map_err(Error::Make)
}

fn host_name(host: &str) -> Result<SanType, Error> {
    match host.parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => host.try_into().map(SanType::DnsName).map_err(|_| Error::Host(host.to_owned())),
    }
}

fn named(name: &str, life: Millis, now: Wall) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.serial_number = Some(SerialNumber::from_slice(Uuid::new_v4().as_bytes()));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let since_1970 = Duration::from_micros(u64::try_from(now.0).unwrap_or_default());
    params.not_before = epoch + since_1970.saturating_sub(BACKDATE.into());
    params.not_after = epoch + since_1970 + Duration::from(life);
    params
}

/// Tells one authority from the next.
fn name(now: Wall) -> String {
    let day: String = crate::grpc::view::instant(now).chars().take(10).collect();
    format!("Holdfast CA {day}")
}

/// SHA-256 of a certificate, lower-case hex.
#[must_use]
pub fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    hex(&Sha256::digest(certificate))
}

/// When a certificate ends; `None` for one that can't be read.
#[must_use]
pub fn end(certificate: &CertificateDer<'_>) -> Option<Wall> {
    let (_, read) = X509Certificate::from_der(certificate).ok()?;
    Some(Wall(read.validity().not_after.timestamp().saturating_mul(1_000_000)))
}

fn has_key(certificate: &CertificateDer<'_>, key: &KeyPair) -> bool {
    let read = X509Certificate::from_der(certificate);
    read.is_ok_and(|(_, read)| read.public_key().subject_public_key.data.as_ref() == key.der_bytes())
}

/// As PEM.
#[must_use]
pub fn pem_of(certificate: &CertificateDer<'_>) -> String {
    pem::encode(&pem::Pem::new("CERTIFICATE", certificate.to_vec()))
}

/// Whole or not at all, for its owner alone. What is there is replaced, never opened.
pub fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    let error = |source| Error::Write { path: path.to_owned(), source };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(error)?;
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    match fs::remove_file(&new) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(error(source)),
        Ok(()) | Err(_) => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).map_err(error)?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&new, path))
        .and_then(|()| fs::File::open(folder)?.sync_all())
        .map_err(error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const NOW: Wall = Wall(1_796_000_000_000_000);

    fn files(folder: &tempfile::TempDir) -> Files {
        Files { certificates: folder.path().join("ca/ca.pem"), key: folder.path().join("ca/ca.key") }
    }

    fn request(key: &KeyPair) -> Vec<u8> {
        let mut params = CertificateParams::new(["evil.example".to_owned()]).expect("a name");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.serialize_request(key).expect("a request").der().to_vec()
    }

    #[test]
    fn nothing_of_a_request_is_taken_over_but_its_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = files(&folder).create(NOW).expect("made");
        let key = KeyPair::generate().expect("a key");
        let request = Request::read(&request(&key)).expect("sound");
        let name = AgentName::new("web-01").expect("a name");
        let signed = authority.agent(&name, &request, Millis::from_secs(86_400), NOW).expect("signed");
        let (_, read) = X509Certificate::from_der(&signed.certificate).expect("a certificate");
        let names = read.subject_alternative_name().expect("readable").expect("there").value;
        let names: Vec<String> = names.general_names.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["URI(holdfast://agent/web-01)"]);
        let usage = read.extended_key_usage().expect("readable").expect("there").value;
        assert!(usage.client_auth && !usage.server_auth && !usage.any);
        assert!(!read.is_ca());
        assert_eq!(read.public_key().subject_public_key.data.as_ref(), key.der_bytes());
        assert_eq!(signed.expires_at, Wall(NOW.0 + 86_400_000_000));
        assert_eq!(read.validity().not_before.timestamp(), NOW.0 / 1_000_000 - 600);
    }

    #[test]
    fn a_request_that_is_damaged_or_of_another_kind_of_key_is_refused() {
        let key = KeyPair::generate().expect("a key");
        let mut damaged = request(&key);
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        for bytes in [Vec::new(), vec![0x30; 40], damaged, vec![0; LARGEST_REQUEST + 1]] {
            assert!(matches!(Request::read(&bytes), Err(Error::Request(_))), "{} bytes", bytes.len());
        }
        let p384 = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).expect("a key");
        let ed25519 = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
        for key in [p384, ed25519] {
            assert!(Request::read(&request(&key)).is_ok());
        }
    }

    #[test]
    fn the_key_is_its_owners_alone_and_is_never_replaced_by_a_second_making() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = files(&folder);
        assert!(files.read().expect("no files are no error").is_none());
        files.create(NOW).expect("made");
        for path in [&files.key, &files.certificates] {
            assert_eq!(fs::metadata(path).expect("there").permissions().mode() & 0o7777, 0o600);
        }
        let before = fs::read(&files.key).expect("there");
        assert!(matches!(files.create(NOW), Err(Error::Exists { .. })));
        assert_eq!(fs::read(&files.key).expect("there"), before);
    }

    #[test]
    fn after_a_rotation_both_are_trusted_and_the_new_one_signs_at_whatever_moment_it_broke_off() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = files(&folder);
        let first = files.create(NOW).expect("made").certificate().clone();
        let old_key = fs::read_to_string(&files.key).expect("there");
        let second = files.rotate(NOW).expect("rotated");
        assert_eq!(second.trusted(), [second.certificate().clone(), first.clone()]);
        // As if the new key had not been written.
        write_private(&files.key, &old_key).expect("written");
        let torn = files.read().expect("sound").expect("there");
        assert_eq!(torn.certificate(), &first);
        assert_eq!(torn.trusted().len(), 2);
        // The first one has ended: it is not carried on.
        let later = Wall(NOW.0 + 11 * 365 * 86_400_000_000);
        let third = files.rotate(later).expect("rotated");
        assert_eq!(third.trusted(), [third.certificate().clone()]);
    }

    #[test]
    fn nothing_outlives_who_signed_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = files(&folder).create(NOW).expect("made");
        let (signed, _) =
            authority.server(&["a.example".to_owned(), "::1".to_owned()], Millis(u64::MAX / 4), NOW).expect("ok");
        assert_eq!(Some(signed.expires_at), end(authority.certificate()));
        assert!(matches!(authority.server(&["ä b".to_owned()], Millis(1), NOW), Err(Error::Host(_))));
    }
}
