//! TLS to the server.

use std::collections::BTreeMap;
use std::fs;

use holdfast_common::system::System;
use holdfast_tests_postgres::Server;
use rcgen::{CertificateParams, KeyPair};

use super::shop::{Role, Shop, ran, reading};

#[test]
fn a_server_is_verified_by_its_certificate_and_its_name() {
    let made = |name: &str| {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    };
    let ((right, key), (wrong, _)) = (made("localhost"), made("localhost"));
    let shop = Shop::alone(Server::start().with_tls(&right, &key));
    let (trusted, other) = (shop.folder.0.join("right.pem"), shop.folder.0.join("wrong.pem"));
    fs::write(&trusted, &right).unwrap();
    fs::write(&other, &wrong).unwrap();
    let (trusted, other) = (trusted.to_str().unwrap(), other.to_str().unwrap());
    let asked = |host: &str, more: &[(&'static str, &str)]| {
        let mut said =
            BTreeMap::from([("PGUSER", Role::Inspect.name().to_owned()), ("PGPASSWORD", Role::Inspect.password())]);
        said.extend(more.iter().map(|(key, value)| (*key, (*value).to_owned())));
        let mut order = shop.to(1, "0001");
        if let System::Postgres(system) = &mut order.system {
            system.server = Some(format!("{host}:{}", shop.server.port()));
        }
        shop.command(&order, &said)
    };
    let _ = reading(&asked("localhost", &[("PGSSLROOTCERT", trusted)]).output().unwrap());
    for (host, said) in [
        ("localhost", ("PGSSLROOTCERT", other)),
        ("127.0.0.1", ("PGSSLROOTCERT", trusted)),
        ("localhost", ("PGSSLMODE", "require")),
        ("localhost", ("PGSSLROOTCERT", "/nowhere")),
    ] {
        let (exit, text) = ran(asked(host, &[said]));
        assert_eq!(exit, Some(78), "{host} {said:?}: {text}");
    }
    let plain = Shop::new();
    let said = BTreeMap::from([("PGUSER", "x".to_owned()), ("PGSSLROOTCERT", trusted.to_owned())]);
    let (exit, text) = ran(plain.command(&plain.to(1, "0001"), &said));
    assert_eq!(exit, Some(78), "a server without TLS gets nothing: {text}");
}
