//! The API behind TLS that wants a certificate of its client: each connection is taken apart here and forwarded.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use holdfast_agent::adapters::system::Call;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::TRANSIENT;
use super::api::INSPECT;
use super::proxy::{forward, message};
use super::scene::{Ended, Scene, change};

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn signed(issuer: &Issuer, name: &str, purpose: ExtendedKeyUsagePurpose) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.extended_key_usages = vec![purpose];
    (params.signed_by(&key, issuer).unwrap(), key)
}

fn front(authority: &Issuer, upstream: SocketAddr) -> SocketAddr {
    let (certificate, key) = signed(authority, "localhost", ExtendedKeyUsagePurpose::ServerAuth);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider)).build().unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let (listener, config) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::new(config));
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // Who is not let in ends its own connection only.
            let _ = serve(client, Arc::clone(&config), upstream);
        }
    });
    address
}

fn serve(client: TcpStream, config: Arc<ServerConfig>, upstream: SocketAddr) -> std::io::Result<()> {
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = StreamOwned::new(connection, client);
    let request = message(&mut stream)?;
    stream.write_all(&forward(upstream, &request)?)?;
    stream.conn.send_close_notify();
    stream.flush()
}

#[test]
fn an_api_behind_tls_is_asked_by_who_trusts_it_and_is_trusted() {
    let mut scene = Scene::new();
    let authority = authority();
    let address = front(&authority, scene.api.address);
    scene.http.url = format!("https://localhost:{}", address.port());
    let set = scene.folder.0.join("set");
    std::fs::create_dir(&set).unwrap();
    let run = |scene: &Scene| {
        let mut command = scene.command(&change(1), Call::Inspect, INSPECT);
        Ended::of(command.env("HOLDFAST_CREDENTIALS", &set).output().unwrap())
    };
    // Neither knows the other.
    run(&scene).with(TRANSIENT);
    std::fs::write(set.join("ca.pem"), authority.pem()).unwrap();
    run(&scene).with(TRANSIENT);
    let (certificate, key) = signed(&authority, "agent", ExtendedKeyUsagePurpose::ClientAuth);
    std::fs::write(set.join("client.pem"), certificate.pem() + &key.serialize_pem()).unwrap();
    run(&scene).reading();
    // Another authority's API is not this one.
    let other = self::authority();
    scene.http.url = format!("https://localhost:{}", front(&other, scene.api.address).port());
    run(&scene).with(TRANSIENT);
    std::fs::write(set.join("ca.pem"), "no PEM").unwrap();
    assert!(run(&scene).with(super::REFUSED_RESOURCE).said.contains("ca.pem"));
}
