use std::io;
use std::path::PathBuf;

use rustls_pki_types::pem;

/// Why certificates and keys could not be used. Each names the file and the step that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not there or may not be read.
    #[error("could not read the {what} {}: {source}", file.display())]
    Read {
        /// What the file should hold.
        what: &'static str,
        /// Where it was looked for.
        file: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is there, but a PEM section in it is damaged.
    #[error("could not decode the {what} {} as PEM: {source}", file.display())]
    Pem {
        /// What the file should hold.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// What is wrong with the text.
        source: pem::Error,
    },
    /// The file has no PEM section of the kind that is needed.
    #[error("could not find a {what} in {}: the file has no such PEM section", file.display())]
    Nothing {
        /// What the file should hold.
        what: &'static str,
        /// The file.
        file: PathBuf,
    },
    /// A certificate that can't be trusted as an authority.
    #[error("could not use {} as a certificate authority: {source}", file.display())]
    Authority {
        /// The file.
        file: PathBuf,
        /// What rustls said.
        source: rustls::Error,
    },
    /// The authorities of the file can't be used to verify certificates.
    #[error("could not verify certificates against {}: {source}", file.display())]
    Verifier {
        /// The file.
        file: PathBuf,
        /// What rustls said.
        source: rustls::server::VerifierBuilderError,
    },
    /// The key is not the certificate's.
    #[error("the private key {} does not belong to the certificate {}", key.display(), certificate.display())]
    Mismatch {
        /// File of the certificate.
        certificate: PathBuf,
        /// File of the key.
        key: PathBuf,
    },
    /// Certificate and key can't be used for another reason, like an unsupported kind of key.
    #[error("could not use the certificate {} with the key {}: {source}", certificate.display(), key.display())]
    Pair {
        /// File of the certificate.
        certificate: PathBuf,
        /// File of the key.
        key: PathBuf,
        /// What rustls said.
        source: rustls::Error,
    },
    /// The certificate's life is over.
    #[error("the certificate {} has expired by this machine's clock", file.display())]
    Expired {
        /// Its file.
        file: PathBuf,
    },
    /// The certificate's life has not begun.
    #[error("the certificate {} is not valid yet by this machine's clock", file.display())]
    NotYet {
        /// Its file.
        file: PathBuf,
    },
    /// Neither a DNS name nor an IP address.
    #[error("{text:?} is not a server name: expected a DNS name or an IP address")]
    ServerName {
        /// What was given.
        text: String,
    },
    /// The provider has no cipher suite for TLS 1.3.
    #[error("could not set up TLS 1.3: {0}")]
    Protocol(#[source] rustls::Error),
}
