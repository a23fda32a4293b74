//! Handshakes that nobody of ours makes: in crumbs, cut anywhere, with chains that lead nowhere.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_net::channel;
use holdfast_net::tls::{ClientTls, ServerTls};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CrlDistributionPoint, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType,
};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::certificates::Pair;
use crate::connections::{BOUND, World, peer_of};

const AGENT: &str = "holdfast://agent/web-07";

/// A client's side of TLS, to be written out by hand.
fn client(world: &World) -> ClientConnection {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&world.ca.file).expect("a CA")).expect("a CA");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    ClientConnection::new(Arc::new(config), ServerName::try_from("localhost").expect("a name")).expect("a client")
}

fn outgoing(connection: &mut ClientConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while connection.wants_write() {
        connection.write_tls(&mut bytes).expect("memory can be written");
    }
    bytes
}

/// The same handshake message in records of one byte each.
fn crumbs(record: &[u8]) -> Vec<Vec<u8>> {
    let (header, body) = record.split_at(5);
    assert_eq!((header[0], usize::from(u16::from_be_bytes([header[3], header[4]]))), (0x16, body.len()), "one record");
    body.iter().map(|byte| vec![0x16, 3, 1, 0, 1, *byte]).collect()
}

/// Goes on with a handshake that has begun, to its end.
async fn finish(connection: &mut ClientConnection, socket: &mut TcpStream) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    while connection.is_handshaking() {
        let length = socket.read(&mut buffer).await?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut read = &buffer[..length];
        while !read.is_empty() {
            connection.read_tls(&mut read)?;
            connection.process_new_packets().map_err(io::Error::other)?;
        }
        socket.write_all(&outgoing(connection)).await?;
    }
    Ok(())
}

/// T28.
#[tokio::test]
async fn a_client_hello_in_crumbs_is_read_whole() {
    let world = World::new().await;
    let mut connection = client(&world);
    let mut socket = TcpStream::connect(world.address).await.expect("a server is there");
    socket.set_nodelay(true).expect("a socket");
    for record in crumbs(&outgoing(&mut connection)) {
        for byte in record {
            socket.write_all(&[byte]).await.expect("an open socket");
        }
    }
    let finished = tokio::time::timeout(BOUND, finish(&mut connection, &mut socket)).await;
    finished.expect("in time").expect("a whole handshake");
    assert_eq!(connection.alpn_protocol(), Some(&b"h2"[..]));
    assert_eq!(world.peer_with(&[AGENT]).await, "web-07 64");
}

/// T24, T28.
#[tokio::test]
async fn a_client_hello_that_is_cut_or_changed_anywhere_stops_nobody() {
    let world = World::new().await;
    let hello = outgoing(&mut client(&world));
    for at in 0..hello.len() {
        let mut changed = hello.clone();
        changed[at] ^= 0xff;
        for bytes in [&hello[..at], &changed] {
            let mut socket = TcpStream::connect(world.address).await.expect("a server is there");
            socket.write_all(bytes).await.expect("an open socket");
            if at % 2 == 0 {
                socket.set_zero_linger().expect("a socket");
            }
        }
    }
    assert_eq!(world.peer_with(&[AGENT]).await, "web-07 64");
}

/// Authorities that sign each other in every pair, and a certificate below them.
fn tangle(world: &World, authorities: usize, root: Option<&str>, leaf: &CertificateParams) -> Pair {
    let issuers: Vec<(KeyPair, CertifiedIssuer<'_, KeyPair>)> = (0..authorities)
        .map(|number| {
            let key = KeyPair::generate().expect("a key");
            let name = root.map_or_else(|| format!("tangle {number}"), str::to_owned);
            let again = KeyPair::from_pem(&key.serialize_pem()).expect("the same key");
            (again, CertifiedIssuer::self_signed(authority(&name), key).expect("a CA"))
        })
        .collect();
    let mut chain = String::new();
    for (subject, (key, _)) in issuers.iter().enumerate() {
        let name = root.map_or_else(|| format!("tangle {subject}"), str::to_owned);
        for (_, (_, issuer)) in issuers.iter().enumerate().filter(|(signer, _)| *signer != subject) {
            chain.push_str(&authority(&name).signed_by(key, issuer).expect("a certificate").pem());
        }
    }
    let (_, issuer) = issuers.first().expect("some");
    let key = KeyPair::generate().expect("a key");
    let own = leaf.signed_by(&key, issuer).expect("a certificate").pem();
    Pair {
        certificate: world.folder.write("tangle.pem", &format!("{own}{chain}")),
        key: world.folder.write("tangle.key", &key.serialize_pem()),
    }
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn leaf() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.subject_alt_names = vec![SanType::URI(AGENT.try_into().expect("plain text"))];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}

async fn is_refused(world: &World, pair: &Pair) {
    let tls = world.client_tls(Some(pair));
    if let Ok(channel) = channel::connect(&world.address.to_string(), &tls, &channel::Limits::default()).await {
        peer_of(channel).await.expect_err("that certificate leads to nobody");
    }
}

/// Walking every way through eight authorities takes many times as long.
const BOUNDED: Duration = Duration::from_secs(3);

/// T26: loops that multiply the ways through a chain, some of them under the trusted authority's own name; a chain that is
/// merely long; one that is too large for any handshake.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chain_without_end_is_refused_within_a_bound_and_delays_nobody() {
    let world = World::new().await;
    // Two authorities are two certificates, which is few enough to be looked at; 24 are more than fit into a message.
    for (authorities, root) in [(2, None), (2, Some("ca")), (3, None), (8, None), (10, Some("ca")), (24, None)] {
        let pair = tangle(&world, authorities, root, &leaf());
        let begun = Instant::now();
        let (_, other) = tokio::join!(is_refused(&world, &pair), world.peer_with(&[AGENT]));
        assert_eq!(other, "web-07 64");
        assert!(begun.elapsed() < BOUNDED, "{authorities} {root:?}: {:?}", begun.elapsed());
    }
}

/// T26, the other way round: whoever answers an agent may present one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_servers_chain_without_end_is_refused_within_a_bound() {
    let world = World::new().await;
    let mut leaf = CertificateParams::new(["localhost".to_owned()]).expect("a name");
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let pair = tangle(&world, 10, None, &leaf);
    let tls = ServerTls::from_files(&pair.certificate, &pair.key, &world.ca.file).expect("sound files");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("localhost:{}", listener.local_addr().expect("a bound socket").port());
    tokio::spawn(async move {
        while let Ok((stream, from)) = listener.accept().await {
            let _refused = tls.accept(stream, from).await;
        }
    });
    let begun = Instant::now();
    let connected = channel::connect(&address, &world.client_tls(None), &channel::Limits::default()).await;
    let error = connected.expect_err("its authority is nobody's").to_string();
    assert!(error.contains("could not agree on TLS with"), "{error}");
    assert!(begun.elapsed() < BOUNDED, "{:?}", begun.elapsed());
}

/// T27: what a certificate says of revocation lists is not followed: there are none here, and nothing is fetched for a peer.
#[tokio::test]
async fn no_revocation_list_is_fetched_whatever_a_certificate_says() {
    let world = World::new().await;
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let mut params = leaf();
    let list = format!("http://{}/list.crl", elsewhere.local_addr().expect("a bound socket"));
    params.crl_distribution_points = vec![CrlDistributionPoint { uris: vec![list] }];
    let key = KeyPair::generate().expect("a key");
    let certificate = world.ca.signed(&params, &key);
    let pair = Pair {
        certificate: world.folder.write("listed.pem", &certificate),
        key: world.folder.write("listed.key", &key.serialize_pem()),
    };
    let tls: ClientTls = world.client_tls(Some(&pair));
    assert_eq!(peer_of(world.channel(&tls).await).await.expect("answered"), "web-07 64");
    let asked = tokio::time::timeout(Duration::ZERO, elsewhere.accept()).await;
    assert!(asked.is_err(), "somebody went to fetch a list");
}

/// An orderly stop says so on every connection, so that its peer goes elsewhere instead of waiting for a silence.
#[tokio::test]
async fn a_stop_sends_goaway() {
    const GOAWAY: u8 = 7;
    const PREFACE_AND_SETTINGS: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let mut world = World::new().await;
    let socket = TcpStream::connect(world.address).await.expect("a server is there");
    let name = ServerName::try_from("localhost").expect("a name");
    let mut stream = world.client_tls(None).connect(name, socket).await.expect("a sound handshake");
    stream.write_all(PREFACE_AND_SETTINGS).await.expect("open");
    let mut stop = world.stop.take();
    let read = async {
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await.expect("a frame");
            let mut body = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            stream.read_exact(&mut body).await.expect("a whole frame");
            if head[3] == GOAWAY {
                return body;
            }
            // It has answered: the connection stands.
            if let Some(stop) = stop.take() {
                stop.send(()).expect("a running server");
            }
        }
    };
    let body = tokio::time::timeout(BOUND, read).await.expect("in time");
    assert_eq!(body[4..8], [0; 4], "no error");
}
