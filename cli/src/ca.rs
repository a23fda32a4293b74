//! A throw-away certificate authority for `dev` and tests.
//!
//! Its key is never written down: what it signed is good for 30 days, and nothing more can be signed once the process
//! that made it has ended. Keys are files of mode 0600 in folders of mode 0700.

use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use holdfast_common::id::AgentName;
use holdfast_net::peer::AGENT_URI_PREFIX;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};

/// How long what it signs is good for.
pub const VALIDITY: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How far the start lies back, for hosts whose clocks are a little behind.
const BEFORE: Duration = Duration::from_secs(60 * 60);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library refused.
    #[error("could not make the certificate {name:?}: {source}")]
    Make {
        /// The common name.
        name: String,
        /// What rcgen said.
        source: rcgen::Error,
    },
    /// A file or folder could not be written.
    #[error("could not write {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// File of the certificate.
    pub certificate: PathBuf,
    /// File of the private key.
    pub key: PathBuf,
}

/// An authority that signs for one folder.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
    certificate: PathBuf,
}

impl Authority {
    /// Makes a new authority and writes its certificate to `ca.pem` in `folder`, which is made if it is not there.
    /// Files of an older one are replaced.
    pub fn create(folder: &Path) -> Result<Self, Error> {
        const NAME: &str = "Holdfast throw-away CA";
        private_folder(folder)?;
        let mut params = params(NAME);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let make = |source| Error::Make { name: NAME.to_owned(), source };
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().map_err(make)?).map_err(make)?;
        let certificate = folder.join("ca.pem");
        write_private(&certificate, &issuer.pem())?;
        Ok(Self { issuer, folder: folder.to_owned(), certificate })
    }

    /// File of the authority's certificate.
    #[must_use]
    pub fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// `NAME.pem` and `NAME.key` for a server on this machine: `localhost`, `127.0.0.1` and `::1`. It presents the
    /// authority too, so that `holdfast login` can pin it.
    pub fn server(&self, name: &str) -> Result<Pair, Error> {
        let localhost = "localhost".try_into().map_err(|source| Error::Make { name: name.to_owned(), source })?;
        let names = vec![
            SanType::DnsName(localhost),
            SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            SanType::IpAddress(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        ];
        let pair = self.sign(name, names, ExtendedKeyUsagePurpose::ServerAuth)?;
        let own = fs::read_to_string(&pair.certificate)
            .map_err(|source| Error::Write { path: pair.certificate.clone(), source })?;
        write_private(&pair.certificate, &format!("{own}{}", self.issuer.pem()))?;
        Ok(pair)
    }

    /// `NAME.pem` and `NAME.key` for an agent: its identity is the URI `holdfast://agent/NAME`.
    pub fn agent(&self, name: &AgentName) -> Result<Pair, Error> {
        let uri = format!("{AGENT_URI_PREFIX}{name}");
        let uri = uri.as_str().try_into().map_err(|source| Error::Make { name: name.to_string(), source })?;
        self.sign(name.as_str(), vec![SanType::URI(uri)], ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(&self, name: &str, names: Vec<SanType>, usage: ExtendedKeyUsagePurpose) -> Result<Pair, Error> {
        let mut params = params(name);
        params.subject_alt_names = names;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let make = |source| Error::Make { name: name.to_owned(), source };
        let key = KeyPair::generate().map_err(make)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(make)?;
        let pair =
            Pair { certificate: self.folder.join(format!("{name}.pem")), key: self.folder.join(format!("{name}.key")) };
        write_private(&pair.key, &key.serialize_pem())?;
        write_private(&pair.certificate, &certificate.pem())?;
        Ok(pair)
    }
}

fn params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(BEFORE);
    params.not_after = epoch + now + VALIDITY;
    params
}

fn private_folder(folder: &Path) -> Result<(), Error> {
    let error = |source| Error::Write { path: folder.to_owned(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(error)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).map_err(error)
}

/// Never opens what is there: a file of another mode, or a link, is replaced as a whole.
fn write_private(path: &Path, text: &str) -> Result<(), Error> {
    let error = |source| Error::Write { path: path.to_owned(), source };
    let new = path.with_extension("new");
    match fs::remove_file(&new) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(error(source)),
        Ok(()) | Err(_) => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).map_err(error)?;
    file.write_all(text.as_bytes()).and_then(|()| fs::rename(&new, path)).map_err(error)
}

#[cfg(test)]
mod tests {
    use holdfast_net::tls::{ClientTls, ServerTls};
    use x509_parser::pem::parse_x509_pem;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("holdfast-ca-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("was written").permissions().mode() & 0o7777
    }

    #[tokio::test]
    async fn what_it_signs_makes_a_connection_whose_peer_is_the_agent() {
        let folder = Folder::new("connection");
        let ca = Authority::create(&folder.0.join("tls")).expect("a CA");
        let name = AgentName::new("web-07").expect("a name");
        let (server, agent) = (ca.server("coordinator").expect("signed"), ca.agent(&name).expect("signed"));
        let server = ServerTls::from_files(&server.certificate, &server.key, ca.certificate()).expect("sound files");
        let identity = Some((agent.certificate.as_path(), agent.key.as_path()));
        for host in ["localhost", "127.0.0.1", "::1"] {
            let client = ClientTls::from_files(ca.certificate(), identity, None).expect("sound files");
            let (near, far) = tokio::io::duplex(64 * 1024);
            let host = host.to_owned().try_into().expect("a server name");
            let address = "127.0.0.1:1".parse().expect("an address");
            let (client, server) = tokio::join!(client.connect(host, near), server.accept(far, address));
            client.expect("the server is trusted");
            assert_eq!(server.expect("the agent is trusted").peer().agent.as_ref(), Some(&name));
        }
    }

    #[test]
    fn nobody_else_can_read_the_keys() {
        let folder = Folder::new("modes");
        fs::create_dir(&folder.0).expect("a new folder");
        fs::write(folder.0.join("server.key"), "readable before").expect("written");
        fs::set_permissions(folder.0.join("server.key"), fs::Permissions::from_mode(0o644)).expect("changed");
        let ca = Authority::create(&folder.0).expect("a CA");
        let pair = ca.server("server").expect("signed");
        assert_eq!(mode(&folder.0), 0o700);
        assert_eq!([mode(&pair.key), mode(&pair.certificate), mode(ca.certificate())], [0o600; 3]);
        let mut names: Vec<_> = fs::read_dir(&folder.0).expect("ours").map(|e| e.expect("ours").file_name()).collect();
        names.sort();
        assert_eq!(names, ["ca.pem", "server.key", "server.pem"], "the CA's key stays in memory");
    }

    #[test]
    fn certificates_are_good_now_and_for_thirty_days() {
        let folder = Folder::new("validity");
        let ca = Authority::create(&folder.0).expect("a CA");
        let pair = ca.agent(&AgentName::new("web-07").expect("a name")).expect("signed");
        for file in [ca.certificate(), &pair.certificate] {
            let text = fs::read(file).expect("was written");
            let (_, pem) = parse_x509_pem(&text).expect("PEM");
            let certificate = pem.parse_x509().expect("a certificate");
            assert!(certificate.validity().is_valid());
            let left = certificate.validity().time_to_expiration().expect("not expired");
            let days = left.whole_hours() as f64 / 24.0;
            assert!((29.9..=30.0).contains(&days), "{days}");
        }
    }
}
