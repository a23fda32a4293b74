//! A coordinator in this process, its authority, and clients that dial it.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_common::id::OperatorName;
use holdfast_common::problem::Problem;
use holdfast_common::time::{Millis, Wall};
use holdfast_coordinator::auth::{Grant, Role};
use holdfast_coordinator::config::{Config, Heartbeat, Lease, Listen, Log, Output, Span, Tls};
use holdfast_coordinator::serve::{serve, wall};
use holdfast_coordinator::tokens;
use holdfast_net::bearer::Bearer;
use holdfast_net::channel;
use holdfast_net::ops::{Address, Settings};
use holdfast_net::tls::ClientTls;
use holdfast_proto::v1::agent_service_client::AgentServiceClient;
use holdfast_proto::v1::operator_service_client::OperatorServiceClient;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    SanType,
};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

pub(crate) const BOUND: Duration = Duration::from_secs(10);

pub(crate) type Operators = OperatorServiceClient<InterceptedService<Channel, Bearer>>;

/// Waits with a bound.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, future).await.unwrap_or_else(|_| panic!("{what}: nothing within {BOUND:?}"))
}

pub(crate) struct World {
    pub(crate) folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    server: JoinHandle<anyhow::Result<()>>,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let issuer = authority();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("ca.pem"), issuer.pem()).unwrap();
        let names =
            vec![SanType::DnsName("localhost".try_into().unwrap()), SanType::IpAddress(Ipv4Addr::LOCALHOST.into())];
        sign(&issuer, folder.path(), "server", names, ExtendedKeyUsagePurpose::ServerAuth);
        let own = std::fs::read_to_string(at("server.pem")).unwrap();
        std::fs::write(at("server.pem"), format!("{own}{}", issuer.pem())).unwrap();
        let mut config = Config {
            data_dir: at("data"),
            listen: Listen { address: SocketAddr::from(([127, 0, 0, 1], 0)), address_file: Some(at("address")) },
            tls: Tls { cert: at("server.pem"), key: at("server.key"), client_ca: Some(at("ca.pem")) },
            ca: holdfast_coordinator::config::Ca::default(),
            enrol: holdfast_coordinator::config::Enrol::default(),
            lease: Lease::default(),
            heartbeat: Heartbeat { interval: Span(Millis(1_000)) },
            output: Output::default(),
            archives: holdfast_coordinator::config::Archives::default(),
            disk: holdfast_coordinator::config::Disk { reserve_bytes: 64 * 1024 },
            audit: holdfast_coordinator::config::Audit::default(),
            agents: holdfast_coordinator::config::Agents::default(),
            mass_loss: holdfast_coordinator::config::MassLoss::default(),
            log: Log::default(),
            ops: Settings { address: Some(Address::Off), ..Settings::default() },
        };
        change(&mut config);
        let stop = CancellationToken::new();
        let server = tokio::spawn(serve(config, stop.clone()));
        let address = soon("the address", address(&at("address"))).await;
        Self { folder, issuer, address, stop, server }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.data().join("holdfast.db")
    }

    /// Made directly in the store's file, beside the running coordinator.
    pub(crate) fn token(&self, name: &str, role: Role, life: Millis, made: Wall) -> String {
        let name = OperatorName::new(name).unwrap();
        let grants = [Grant::everywhere(role)];
        tokens::create(&self.store(), &name, &grants, life, made).expect("a token").reveal().to_owned()
    }

    /// A token with grants like `operator:shop@*`, for a minute.
    pub(crate) fn granted(&self, name: &str, grants: &[&str]) -> String {
        let name = OperatorName::new(name).unwrap();
        let grants: Vec<Grant> = grants.iter().map(|grant| grant.parse().expect("a grant")).collect();
        let secret = tokens::create(&self.store(), &name, &grants, Millis::from_secs(60), wall());
        secret.expect("a token").reveal().to_owned()
    }

    pub(crate) async fn channel(&self, agent: Option<&str>) -> Channel {
        let pair = agent.map(|name| {
            let uri = SanType::URI(format!("holdfast://agent/{name}").as_str().try_into().unwrap());
            sign(&self.issuer, self.folder.path(), name, vec![uri], ExtendedKeyUsagePurpose::ClientAuth);
            (self.folder.path().join(format!("{name}.pem")), self.folder.path().join(format!("{name}.key")))
        });
        let identity = pair.as_ref().map(|(certificate, key)| (certificate.as_path(), key.as_path()));
        let tls = ClientTls::from_files(&self.folder.path().join("ca.pem"), identity, None).expect("sound files");
        let (address, limits) = (self.address.to_string(), channel::Limits::default());
        soon("a connection", channel::connect(&address, &tls, &limits)).await.expect("a server is there")
    }

    /// With a certificate that this coordinator signed.
    pub(crate) async fn channel_showing(&self, certificate: &[u8], key: &KeyPair) -> Channel {
        let name = uuid::Uuid::new_v4();
        let at = |end: &str| self.folder.path().join(format!("{name}.{end}"));
        std::fs::write(at("pem"), pem::encode(&pem::Pem::new("CERTIFICATE", certificate))).unwrap();
        std::fs::write(at("key"), key.serialize_pem()).unwrap();
        let identity = Some((at("pem"), at("key")));
        let identity = identity.as_ref().map(|(certificate, key)| (certificate.as_path(), key.as_path()));
        let tls = ClientTls::from_files(&self.folder.path().join("ca.pem"), identity, None).expect("sound files");
        let (address, limits) = (self.address.to_string(), channel::Limits::default());
        soon("a connection", channel::connect(&address, &tls, &limits)).await.expect("a server is there")
    }

    pub(crate) async fn operators(&self, token: &str) -> Operators {
        OperatorServiceClient::with_interceptor(self.channel(None).await, Bearer::new(token).expect("sound"))
    }

    /// An operator who may everything.
    pub(crate) async fn admin(&self) -> Operators {
        let token = self.token("anna", Role::Admin, Millis::from_secs(3600), wall());
        self.operators(&token).await
    }

    pub(crate) async fn agents(&self, name: &str) -> AgentServiceClient<Channel> {
        AgentServiceClient::new(self.channel(Some(name)).await)
    }

    /// An orderly end, within its bound.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        soon("an orderly end", &mut self.server).await.expect("no panic").expect("a clean end");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn address(file: &Path) -> SocketAddr {
    loop {
        match std::fs::read_to_string(file) {
            Ok(text) => return text.parse().expect("an address"),
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a CA")
}

fn sign(
    issuer: &CertifiedIssuer<'static, KeyPair>,
    folder: &Path,
    name: &str,
    names: Vec<SanType>,
    usage: ExtendedKeyUsagePurpose,
) {
    let mut params = CertificateParams::default();
    params.subject_alt_names = names;
    params.extended_key_usages = vec![usage];
    let key = KeyPair::generate().expect("a key");
    let certificate = params.signed_by(&key, issuer).expect("a certificate");
    std::fs::write(folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
    std::fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

/// The problem that a refusal carries.
pub(crate) fn problem(status: &tonic::Status) -> Problem {
    holdfast_proto::problem::from_status(status).unwrap_or_else(|| panic!("no problem in {status:?}"))
}
