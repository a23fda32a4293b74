//! TLS to the server.

use std::collections::BTreeMap;
use std::fs;

use holdfast_tests_postgres::Server;
use rcgen::{CertificateParams, KeyPair};

use super::shop::{Role, Shop, ran, reading};

#[test]
fn a_server_is_verified_by_its_certificate_and_its_name() {
    let key = KeyPair::generate().unwrap();
    let made = |name: &str| CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap().pem();
    let (right, wrong) = (made("127.0.0.1"), made("db.example.org"));
    let shop = Shop::on(Server::start().with_tls(&right, &key.serialize_pem()));
    let (trusted, other) = (shop.folder.0.join("right.pem"), shop.folder.0.join("wrong.pem"));
    fs::write(&trusted, &right).unwrap();
    fs::write(&other, &wrong).unwrap();
    let asked = |more: &[(&'static str, &str)]| {
        let mut said = BTreeMap::from([("PGUSER", Role::Inspect.name().to_owned()), ("PGPASSWORD", Role::Inspect.password())]);
        said.extend(more.iter().map(|(key, value)| (*key, (*value).to_owned())));
        shop.command(&shop.to(1, "0001"), &said)
    };
    let mut fine = asked(&[("PGSSLROOTCERT", trusted.to_str().unwrap())]);
    let _ = reading(&fine.output().unwrap());
    for refused in [
        vec![("PGSSLROOTCERT", other.to_str().unwrap())],
        vec![("PGSSLMODE", "require")],
        vec![("PGSSLROOTCERT", "/nowhere")],
    ] {
        let (exit, text) = ran(asked(&refused));
        assert_eq!(exit, Some(78), "{refused:?}: {text}");
    }
    let plain = Shop::new();
    let said = BTreeMap::from([("PGUSER", "x".to_owned()), ("PGSSLROOTCERT", trusted.to_str().unwrap().to_owned())]);
    let (exit, text) = ran(plain.command(&plain.to(1, "0001"), &said));
    assert_eq!(exit, Some(78), "a server without TLS gets nothing: {text}");
}
